"""The addresses that programs see, apart from the fabric's.

Host n has 10.64.0.0 + n + 1 and fd00:3::(n + 1) on `mrc0`, whose packets the transport carries, and 10.65.0.0 + n + 1
on `mgmt0`, the management network, which no fault and no limit touches.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from mrc_testbed.topos.names import host_name

DEVICE = "mrc0"
"""The interface that has them."""
MANAGEMENT = "mgmt0"
"""The interface of the management network."""
MANAGEMENT_NETWORK = "10.65.0.0/16"
MANAGEMENT_ROUTER = "10.65.255.254"
NETWORK_4 = "10.64.0.0/16"
NETWORK_6 = "fd00:3::/64"
_MANAGED_4 = IPv4Address(MANAGEMENT_NETWORK.partition("/")[0])
_FIRST4 = IPv4Address(NETWORK_4.partition("/")[0])
_FIRST6 = IPv6Address(NETWORK_6.partition("/")[0])


def ipv4(host: int) -> str:
    """The IPv4 address of a host by its number, in 10.64.0.0/16."""
    return str(_FIRST4 + host + 1)


def ipv6(host: int) -> str:
    """The IPv6 address of a host by its number, in fd00:3::/64."""
    return str(_FIRST6 + host + 1)


def management(host: int) -> str:
    """The address of a host in the management network, 10.65.0.0/16."""
    return str(_MANAGED_4 + host + 1)


def names(host: int) -> dict[str, str]:
    """The name of each address of a host, as /etc/hosts has them."""
    name = host_name(host)
    return {ipv4(host): name, ipv6(host): name, management(host): f"{name}-mgmt"}
