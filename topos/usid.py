"""uSID and address arithmetic: EV <-> (plane, uplink) <-> inner address <-> outer uSID address.

uSID container (RFC 9800 NEXT-C-SID, F3216): block `fcbb:bb00::/32`, then 16-bit uSIDs `tier(4) plane(4) index(8)`. A
path is its switches and the host: `block:T0src:T1:T0dst:host` over two tiers, inside one T0 group `block:T0:host`;
zeros end the list.

EV, 32 bit: [31:28] 0, [27:24] plane, [23:16] number of the way in that plane (`mrc_testbed.topos.graph`; over two tiers
that is the T0's uplink, and the T1's index), [15:0] UDP source port of the endpoint.

Inner address for an EV: `fd00:0:0:HOST:0:PLANE:0:UPLINK`; its host part selects the path in the sender's kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address

from mrc_testbed.topos.graph import MAX_TIERS, SwitchPlace, Way

BLOCK = 0xFCBBBB00
"""The 32-bit locator block."""
BLOCK_PREFIX = "fcbb:bb00::/32"
TIER_T0 = 0x1
"""Of a T0; the tiers above follow."""
TIER_HOST = 0xD
"""Tier of a host downlink as the last uSID."""
LCBLOCK_BITS = 32
LCNODE_FN_BITS = 16

_HOST_PREFIX = 0xFD00 << 112


@dataclass(frozen=True, slots=True)
class PathId:
    """One path between two hosts: the plane, and the number of the way in it (0 inside one T0 group, which has one).

    `uplink`: that number. Over two tiers it is the index of the T1.
    """

    plane: int
    uplink: int

    def __post_init__(self) -> None:
        # A value too wide would silently be another path.
        _fits("plane", self.plane, 4)
        _fits("uplink", self.uplink, 8)

    @property
    def flow_label(self) -> int:
        """EV[31:16], carried as the flow label of both IPv6 headers."""
        return self.plane << 8 | self.uplink


@dataclass(frozen=True, slots=True)
class Segments:
    """A path as its uSIDs name it: the switches of a plane that a packet crosses, and the downlink of its host."""

    plane: int
    way: Way
    downlink: int


def usid(tier: int, plane: int, index: int) -> int:
    """Pack a 16-bit uSID. Raises ValueError for a value out of range, which would give another node's uSID."""
    _fits("tier", tier, 4)
    _fits("plane", plane, 4)
    _fits("index", index, 8)
    return tier << 12 | plane << 8 | index


def split_usid(value: int) -> tuple[int, int, int]:
    """The (tier, plane, index) of a uSID."""
    return value >> 12, value >> 8 & 0xF, value & 0xFF


def ev(path: PathId, udp_port: int) -> int:
    """The 32-bit entropy value of a path for an endpoint that sends from `udp_port`."""
    _fits("udp_port", udp_port, 16)
    return path.flow_label << 16 | udp_port


def split_ev(value: int) -> tuple[PathId, int]:
    """The path and the UDP source port of an EV. Raises ValueError when the version nibble is not 0."""
    if value >> 28:
        raise ValueError(f"EV {value:#010x}: version {value >> 28} is not known")
    return PathId(value >> 24 & 0xF, value >> 16 & 0xFF), value & 0xFFFF


def locator(value: int) -> str:
    """The /48 of one uSID: what a switch matches and what its static route covers."""
    return f"{IPv6Address(BLOCK << 96 | value << 80)}/48"


_BLOCK_TEXT = f"{BLOCK >> 16:x}:{BLOCK & 0xFFFF:x}:"


def is_in_block(address: str) -> bool:
    """True for an address or prefix of uSIDs."""
    return address.startswith(_BLOCK_TEXT)


def switch_usid(plane: int, place: SwitchPlace) -> int:
    """The uSID of a switch."""
    return usid(TIER_T0 + place.tier, plane, place.number)


def switch_address(value: int) -> str:
    """The address of a switch that answers: a list that ends at it, and what its own packets come from."""
    return container([value])


def switch_of_address(address: str) -> tuple[int, SwitchPlace]:
    """The inverse of switch_address: plane and place. Raises ValueError for any other address."""
    uids = split_container(address)
    tier, plane, number = split_usid(uids[0]) if len(uids) == 1 else (0, 0, 0)
    if not TIER_T0 <= tier < TIER_T0 + MAX_TIERS:
        raise ValueError(f"{address} is the address of no switch")
    return plane, SwitchPlace(tier - TIER_T0, number)


def outer_address(path: Segments) -> str:
    """The uSID list of a path as the IPv6 destination address that leaves the sender. Raises ValueError for a way with
    more than five switches."""
    switches = [switch_usid(path.plane, place) for place in path.way]
    return container([*switches, usid(TIER_HOST, path.plane, path.downlink)])


def loop_address(plane: int, way: Way, downlink: int) -> str:
    """The uSID list of a packet from the host on this downlink of the first switch to the last one, and back over the
    same ones. Raises ValueError for a way with more than three switches."""
    switches = [switch_usid(plane, place) for place in (*way, *way[-2::-1])]
    return container([*switches, usid(TIER_HOST, plane, downlink)])


def container(uids: list[int]) -> str:
    """An address holding up to six uSIDs after the block."""
    if len(uids) > 6:
        raise ValueError(f"an address holds 6 uSIDs, not {len(uids)}")
    value = BLOCK
    for uid in uids:
        value = value << 16 | uid
    return str(IPv6Address(value << 16 * (6 - len(uids))))


def split_container(address: str) -> list[int]:
    """The uSIDs left in an address, first one first. Raises ValueError for another block."""
    value = int(IPv6Address(address))
    if value >> 96 != BLOCK:
        raise ValueError(f"{address} is not in the uSID block fcbb:bb00::/32")
    uids = [value >> shift & 0xFFFF for shift in range(80, -1, -16)]
    while uids and uids[-1] == 0:
        uids.pop()
    return uids


def split_outer(address: str) -> Segments:
    """The inverse of outer_address. Raises ValueError if the tiers or planes do not form a path."""
    parts = [split_usid(value) for value in split_container(address)]
    tiers, planes = [tier for tier, _, _ in parts], {plane for _, plane, _ in parts}
    way = tuple(SwitchPlace(tier - TIER_T0, index) for tier, _, index in parts[:-1])
    along = {place.tier for place in way} <= set(range(MAX_TIERS)) and {
        place.tier for place in (*way[:1], *way[-1:])
    } == {0}
    if len(planes) != 1 or tiers[-1] != TIER_HOST or not along:
        raise ValueError(f"{address} is not a path: tiers {tiers}, planes {sorted(planes)}")
    return Segments(planes.pop(), way, parts[-1][2])


def inner_address(host: int, path: PathId) -> str:
    """The address of host number `host` that the sender's kernel maps to `path`."""
    return str(IPv6Address(_host_base(host) | path.plane << 32 | path.uplink))


def split_inner(address: str) -> tuple[int, PathId]:
    """The inverse of inner_address. Raises ValueError for any other address."""
    value = int(IPv6Address(address))
    host, plane, uplink = value >> 64 & 0xFFFF, value >> 32 & 0xF, value & 0xFF
    if value != _HOST_PREFIX | host << 64 | plane << 32 | uplink:
        raise ValueError(f"{address} is not an EV address of a host")
    return host, PathId(plane, uplink)


def host_of_address(address: str) -> int:
    """The number of the host that an address, of the EV scheme or not, is of. Raises ValueError for any other."""
    value = int(IPv6Address(address))
    host = value >> 64 & 0xFFFF
    if value >> 64 != _host_base(host) >> 64:
        raise ValueError(f"{address} is not the address of a host")
    return host


def host_prefix(host: int) -> str:
    """All addresses of a host: it accepts every one of them (AnyIP)."""
    return f"{IPv6Address(_host_base(host))}/64"


def outside_prefix(host: int) -> str:
    """All addresses of a host outside the EV scheme: from any of them it may ask switches."""
    return f"{IPv6Address(_host_base(host) | 1 << 48)}/80"


def asking_address(host: int, number: int) -> str:
    """One of those addresses. Switches that have several ways back choose one by it."""
    _fits("number", number, 16)
    return str(IPv6Address(_host_base(host) | 1 << 48 | number))


def plain_address(host: int) -> str:
    """The address of a host outside the EV scheme: outer source address, `ping`, name resolution."""
    return str(IPv6Address(_host_base(host) | 1 << 48 | 1))


ALL_HOSTS = f"{IPv6Address(_HOST_PREFIX)}/48"
"""All addresses of all hosts."""


def _host_base(host: int) -> int:
    _fits("host", host, 16)
    return _HOST_PREFIX | host << 64


def _fits(what: str, value: int, bits: int) -> None:
    if value < 0 or value >> bits:
        raise ValueError(f"{what} {value} does not fit {bits} bits")
