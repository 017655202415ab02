"""Names of hosts, switches, interfaces and links: building and parsing."""

from __future__ import annotations

import re

_HOST = re.compile(r"h(0|[1-9]\d*)", re.ASCII)
_SWITCH = re.compile(r"p(0|[1-9]\d*)-t([0-3])-(0|[1-9]\d*)", re.ASCII)


def host_name(index: int) -> str:
    """`h3`."""
    return f"h{index}"


def switch_name(plane: int, tier: int, index: int) -> str:
    """`p0-t1-3`: plane 0, T1 number 3; for a T0 the number is its group."""
    return f"p{plane}-t{tier}-{index}"


def link_name(end: str, other: str) -> str:
    """`h3:p0-t0-1` or `p0-t0-1:p0-t1-3`: the end nearer to the hosts first."""
    return f"{end}:{other}"


def parse_host(name: str) -> int | None:
    """The index of a host name, None for any other text."""
    match = _HOST.fullmatch(name)
    return int(match[1]) if match else None


def parse_switch(name: str) -> tuple[int, int, int] | None:
    """(plane, tier, index) of a switch name, None for any other text."""
    match = _SWITCH.fullmatch(name)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def port_of_plane(plane: int) -> str:
    """The NIC port of a host in a plane."""
    return f"port{plane}"


def uplink_port(index: int) -> str:
    """The interface of a switch towards the switch above it that is number `index` of those it is linked to."""
    return f"up{index}"


def downlink_port(index: int) -> str:
    """The interface of a switch towards what is number `index` below it: its hosts, then its switches."""
    return f"down{index}"
