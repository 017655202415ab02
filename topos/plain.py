"""Addresses of a fabric whose switches choose the path: one address a host and plane, one prefix a T0 group.

`fd00:1:PLANE:GROUP::N`, where N is the downlink of the host plus 1: `::0` is every router's anycast address (RFC 4291,
2.6.1). A T1 routes by the /64 of a group, a T0 towards its T1s by the /48 of the plane. Switches that talk BGP have
`fd00:2::IFINDEX` at their ends of a link.
"""

from __future__ import annotations

from ipaddress import IPv6Address

_BASE = 0xFD00_0001 << 96
_PLANE_SHIFT = 80
_GROUP_SHIFT = 64
_FIRST_HOST = 1
_TRANSFER_BASE = 0xFD00_0002 << 96
TRANSFER_BITS = 127
"""Length of the prefix of a link between switches. The index of its near end is even and that of its far end the next
one (topos/plan.py), so both lie in one prefix, and in no other."""


def host_address(plane: int, group: int, downlink: int) -> str:
    """The address of a host's port in a plane. Raises ValueError for a number that its field does not hold."""
    return str(IPv6Address(_base(plane, group) | _fits("downlink", downlink + _FIRST_HOST)))


def plane_prefix(plane: int) -> str:
    """All hosts' ports in a plane."""
    return f"{IPv6Address(_base(plane, 0))}/48"


def group_prefix(plane: int, group: int) -> str:
    """The ports in a plane of the hosts of one T0 group."""
    return f"{IPv6Address(_base(plane, group))}/64"


def transfer_address(ifindex: int) -> str:
    """The address of a switch at its end of a link to another switch, where they talk BGP."""
    return str(IPv6Address(_TRANSFER_BASE | ifindex))


def host_bits(group: int, downlink: int) -> int:
    """What the port program makes of a host's address in any plane: its group, and its last 16 bits."""
    return _fits("group", group) << 16 | _fits("downlink", downlink + _FIRST_HOST)


def _base(plane: int, group: int) -> int:
    return _BASE | _fits("plane", plane) << _PLANE_SHIFT | _fits("group", group) << _GROUP_SHIFT


def _fits(what: str, value: int) -> int:
    if not 0 <= value <= 0xFFFF:
        raise ValueError(f"{what} {value} does not fit 16 bits")
    return value
