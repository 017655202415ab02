"""What a fabric consists of: hosts, switches, their links, and the paths between hosts."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address

from mrc_testbed.topos import names, usid
from mrc_testbed.topos.graph import SwitchPlace, Way

FIRST_IFINDEX = 1000
FIRST_UDP_PORT = 0xC000
UDP_PORTS = 0x3F00
_LINK_LOCAL = 0xFE80 << 112


@dataclass(frozen=True, slots=True)
class Interface:
    """One end of a link. `ifindex` is unique in the whole fabric; `mac` and `link_local` derive from it."""

    node: str
    name: str
    ifindex: int

    @property
    def mac(self) -> str:
        """Locally administered, unicast, ifindex in the last four bytes."""
        return "02:00:" + self.ifindex.to_bytes(4, "big").hex(":")

    @property
    def link_local(self) -> str:
        """The next-hop address for neighbours; the interface need not hold it, because the neighbour entry is
        static."""
        return str(IPv6Address(_LINK_LOCAL | self.ifindex))


@dataclass(frozen=True, slots=True)
class Link:
    """A link. `near` is the end closer to the hosts, `far` the other; `rate_bps` is that of each way."""

    name: str
    plane: int
    near: Interface
    far: Interface
    rate_bps: int

    @property
    def ends(self) -> tuple[Interface, Interface]:
        """Both ends, the nearer first."""
        return self.near, self.far

    @property
    def is_host_link(self) -> bool:
        """True for a NIC port, False for a link between switches."""
        return names.parse_host(self.near.node) is not None


@dataclass(frozen=True, slots=True)
class Host:
    """A host: number `index` of the fabric, on downlink `downlink` of the T0s of group `group`."""

    name: str
    index: int
    group: int
    downlink: int

    @property
    def udp_port(self) -> int:
        """The source port of its data socket: EV[15:0]."""
        return FIRST_UDP_PORT + self.index % UDP_PORTS

    @property
    def address(self) -> str:
        """The address outside the EV scheme."""
        return usid.plain_address(self.index)


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch of a plane: `tier` 0 (T0, `index` = group) or above, and its number in that tier."""

    name: str
    tier: int
    plane: int
    index: int

    @property
    def usid(self) -> int:
        """Its 16-bit uSID."""
        return usid.switch_usid(self.plane, self.place)

    @property
    def place(self) -> SwitchPlace:
        """The same in every plane."""
        return SwitchPlace(self.tier, self.index)


@dataclass(frozen=True, slots=True)
class Path:
    """One path between two hosts: its EV half, its switches, the destination of the sender (inner), its uSID list
    (outer)."""

    id: usid.PathId
    way: Way
    inner: str
    outer: str
