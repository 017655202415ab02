"""What a route of a fabric is, and who chooses the path of a packet. What each node has: `mrc_testbed.topos.tables`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

SID_DEVICE = "sid0"
"""The device of uSID routes. It never goes down; on `lo` the kernel would turn them into reject routes."""


class Routing(StrEnum):
    """Who chooses the path of a packet. The values are the words of the scenario key `routing`."""

    SRV6 = "srv6"
    """The sender: the packet's address lists the switches."""
    ECMP_STATIC = "ecmp-static"
    """Each switch, by a hash of the packet over all its next hops, which never change but with its own ports."""
    BGP = "bgp"
    """Switches tell each other by BGP what they reach: hosts, whose packets they hash over all next hops found, or each
    other, where the sender chooses the path."""


class Carries(StrEnum):
    """What BGP carries between switches. The values are the words of the scenario key `bgp.carries`."""

    HOSTS = "hosts"
    """Routes to the plain addresses of hosts."""
    LOCATORS = "locators"
    """Routes to the uSIDs of switches: where the next one on a packet's list is, each switch has learned."""


class RouteKind(Enum):
    """The kind of a route in the kernel."""

    END = "End"
    """Shift the uSID list and look up the new address (a switch's own uSID)."""
    DT6 = "End.DT6"
    """Remove the outer header (a host's own uSID)."""
    VIA = "via"
    """Plain next hop towards a neighbour's uSID."""
    ENCAP = "encap"
    """Add the outer header with a path's uSID list."""
    LOCAL = "local"
    """Accept a whole prefix as local."""
    MULTIPATH = "multipath"
    """One of several next hops, by a hash of the packet."""
    BLACKHOLE = "blackhole"
    """Throw away what no longer route covers."""


@dataclass(frozen=True, slots=True)
class NextHop:
    """A neighbour, and the port towards it."""

    gateway: str
    device: str


@dataclass(frozen=True, slots=True)
class Route:
    """One route. `target` is the gateway (VIA) or the outer address (ENCAP), else empty.

    `hops`: the next hops of MULTIPATH, whose `device` is empty. `source`: the address that packets of this node itself
    get, where the route says so.
    """

    kind: RouteKind
    prefix: str
    device: str
    target: str = ""
    source: str = ""
    hops: tuple[NextHop, ...] = ()
