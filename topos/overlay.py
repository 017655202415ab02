"""The addresses that programs see: one IPv4 and one IPv6 address a host, on one interface, apart from the fabric's.

Host n has 10.64.0.0 + n + 1 and fd00:3::(n + 1).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

DEVICE = "mrc0"
"""The interface that has them."""
NETWORK_4 = "10.64.0.0/16"
NETWORK_6 = "fd00:3::/64"
_FIRST4 = IPv4Address(NETWORK_4.partition("/")[0])
_FIRST6 = IPv6Address(NETWORK_6.partition("/")[0])


def ipv4(host: int) -> str:
    """The IPv4 address of a host by its number, in 10.64.0.0/16."""
    return str(_FIRST4 + host + 1)


def ipv6(host: int) -> str:
    """The IPv6 address of a host by its number, in fd00:3::/64."""
    return str(_FIRST6 + host + 1)
