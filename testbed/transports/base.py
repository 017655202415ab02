"""What a transport is: everything that the rest of the testbed must know of one, as a value.

A transport is asked for a property and never for its name (tests/unit/transports/test_transports.py). Those of ours are
one file each beside this one; a plugin can bring another (docs/extend.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from mrc_testbed.testbed.expect.vocabulary import Known
from mrc_testbed.testbed.switching.classes import DataPackets
from mrc_testbed.testbed.switching.thresholds import PauseThresholds
from mrc_testbed.topos.cost import Cost
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.usid import PathId


class FabricLayout(StrEnum):
    """How the planes of `fabric` are built: as they are written, or as one plane whose ports have the rate of all."""

    AS_WRITTEN = "as-written"
    FOLDED = "folded"


class Chooser(StrEnum):
    """Who chooses the path of a packet, and how."""

    SENDER = "sender"
    """The sender, for each packet, by an address that names the path."""
    ENTROPY = "entropy"
    """The sender, for each packet, by a source port that switches hash: which path it is, it does not know."""
    SWITCH = "switch"
    """Switches hash the flow."""


class Sockets(StrEnum):
    """What a daemon has a sending socket of its own for."""

    HOST = "host"
    QP = "qp"
    EV = "ev"


class SoftwareTimer(NamedTuple):
    """A timer that software sets in seconds, whatever the network's round trip."""

    what: str
    ns: int


class PortNeeds(NamedTuple):
    """What a transport asks of switch ports beside what is usual.

    `drop`: data is dropped above this backlog at the least, in plane-BDP; None: as usual. `pause`: levels of lossless
    ports. `why`: what needs the port program, and how to do without; empty: nothing does. `unless_repath`: it does not
    with `ecmp.repath`.
    """

    drop: float | None = None
    pause: PauseThresholds | None = None
    why: str = ""
    unless_repath: bool = False


class SettingsBeside(NamedTuple):
    """What a transport's settings must go together with. `planes`: as the fabric is built. `hosts_hash`: hosts choose a
    port for each QP by a hash. `verbs`: programs have QPs of their own."""

    planes: int
    folded: bool
    hosts_hash: bool
    verbs: bool


TimeWords = Callable[[float], str]
"""What people read of a time in ns."""


def _nothing(_settings: Any) -> Iterator[SoftwareTimer]:
    return iter(())


def _zero(_settings: Any) -> int:
    return 0


def _no_needs(_settings: Any) -> PortNeeds:
    return PortNeeds()


def _no_contradictions(_settings: Any, _around: SettingsBeside) -> Iterator[tuple[str, str]]:
    return iter(())


def _no_words(_settings: Any, *_how: Any) -> str:
    return ""


@dataclass(frozen=True, eq=False, repr=False)
class Transport(str):
    """A transport. It is its word in scenarios and documents, so it goes into files and texts as it is.

    Functions take its own settings: the group of the scenario that `group` names.
    """

    word: str
    protocol: str
    """What `configure` asks of a daemon: the protocol by its name in mrc_testbed.hosts.protocols."""
    group: str
    routings: tuple[Routing, ...]
    """Those it can run over, the usual one first."""
    layout: FabricLayout
    """The usual one."""
    chooser: Chooser
    cost: Cost
    """CPU time that it takes of the machine."""
    full_packet: Callable[[int, Any], tuple[int, int]]
    """Data and headers of a full data packet on a veth, in bytes, by the payload of our endpoints and its settings."""
    called: Callable[[Any], str]
    """Its name where people read of it: `MRC`, `RoCE, lossy`."""
    request: Callable[[Any, Mapping[str, Any]], dict[str, Any]]
    """Its part of the request `configure`, by its settings and those of `endpoint`."""
    counted: Mapping[str, str]
    """What its endpoints count of losses, as titles of a report, and the counters, or patterns, that are summed."""
    endpoint: str = ""
    """Of a plugin: the function in its file that makes the network of a host's daemon, as `Make` in hosts/configure.py;
    empty: `protocol` is one of ours."""
    of_kernel: bool = False
    """The kernel makes the packets: virtual time has no kernel, and no daemon counts them."""
    has_paths: bool = False
    """Its endpoints have EVs, which they retire, probe and restore, and say so."""
    data: DataPackets = field(default_factory=DataPackets)
    """How switches know its data packets, in both worlds; those of kernel TCP they know by their payload."""
    answer_bytes: int = 0
    """What acknowledges a message, on a veth; 0: not known."""
    can_be_trimmed: bool = False
    """Switches may cut the payload off its data packets."""
    subflows: bool = False
    """A connection has a subflow in each plane."""
    sockets: Sockets = Sockets.QP
    settings: Callable[[], Any] = field(default=lambda: None)
    """Its usual settings; None where they are those of `endpoint`."""
    needs: Callable[[Any], PortNeeds] = field(default=_no_needs)
    contradictions: Callable[[Any, SettingsBeside], Iterator[tuple[str, str]]] = field(default=_no_contradictions)
    """Which of its keys make no sense with the rest of the scenario: why, and what to write."""
    timers: Callable[[Any], Iterator[SoftwareTimer]] = field(default=_nothing)
    """Timers of software that decide how long an outage lasts."""
    settings_words: Callable[[Any, TimeWords], str] = field(default=_no_words)
    """How it is set, beside its name, where it is a baseline; with the words for times in ns."""
    buffers: Callable[[Any], str] = field(default=_no_words)
    """What it supposes of switches' buffers: `lossy`, `deep`, `pfc`; empty: nothing."""
    any_order: Callable[[Any], bool] = field(default=lambda _settings: False)
    """It takes packets in any order; others may take one that was overtaken for lost."""
    resends_all: Callable[[Any], bool] = field(default=lambda _settings: False)
    """After a gap it sends again all that was under way."""
    cut_bytes: Callable[[Any], int] = field(default=_zero)
    """It cuts each message evenly over the ports of a host, in parts of a multiple of this; 0: it does not."""
    cut_by_marks: Callable[[Any], bool] = field(default=lambda _settings: False)
    """It relies on marks alone to be cut, as DCQCN does."""
    timeout_code_ns: int = 0
    """Its timeout is so long, times two to the power of a code that people set, whatever T is; 0: it follows T."""

    def __new__(cls, word: str, *_facts: Any, **_more: Any) -> Transport:
        return str.__new__(cls, word)

    def __reduce__(self) -> tuple[Callable[[str], Transport], tuple[str]]:
        from mrc_testbed.testbed.transports.registry import named

        return named, (self.word,)

    def __deepcopy__(self, _memo: Any) -> Transport:
        return self

    @property
    def usual_routing(self) -> Routing:
        """What `routing` is where the scenario does not say."""
        return self.routings[0]

    @property
    def names_paths(self) -> bool:
        """The address of each packet names its path."""
        return self.chooser is Chooser.SENDER

    def may_cross(self, plan: Plan, src: Host, dst: Host, path: PathId) -> list[str]:
        """Names of the links that packets on an EV may cross: those of its path, or of all of its plane where switches
        hash them to one. None for an EV that the fabric does not have, as a folder may name it."""
        if self.names_paths:
            known = path.uplink < len(plan.ways(src, dst))
            return plan.links_on_path(src, dst, path) if known else []
        ids = [one.id for one in plan.paths(src, dst) if one.id.plane == path.plane]
        return list(dict.fromkeys(link for one in ids for link in plan.links_on_path(src, dst, one)))

    @property
    def known(self) -> frozenset[Known]:
        """What figures can be known of it."""
        packets = () if self.of_kernel else (Known.PACKETS,)
        return frozenset((*packets, Known.PATHS) if self.has_paths else packets)


def program_need(transport: Transport, routing: Routing, settings: Any, repath: bool, adaptive: bool) -> str:
    """What only the port program can do for this transport, and how to do without; empty if nothing."""
    if adaptive:
        return "ecmp.choose: adaptive (without it: `choose: hash`)"
    if routing is Routing.BGP:
        return "bgp (its packets go before data; without it: `routing: ecmp-static`)"
    needs = transport.needs(settings)
    return "" if needs.unless_repath and repath else needs.why
