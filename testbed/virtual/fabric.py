"""A plan in virtual time: what mrc_testbed.testbed.fabric.fabric.Fabric builds on a kernel, computed packet by packet.

Every port is a queue (port.py), every change is there at once, and nothing drifts from the plan by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from mrc_testbed.hosts.rc import wire as rc
from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.switching.adaptive import looks_of
from mrc_testbed.testbed.switching.ecmp import PlainFlow
from mrc_testbed.testbed.switching.expected import Unplanned
from mrc_testbed.testbed.switching.options import FabricOptions, control_queue_bytes, level_bdp_bytes
from mrc_testbed.testbed.switching.port_counts import (
    COUNTS,
    IpCounts,
    PortCounts,
    PortHits,
    SidCounts,
    counts_of,
    hits_of,
)
from mrc_testbed.testbed.switching.port_rules import PortRule, RuleHandle, RuleTable, as_seen_by_program
from mrc_testbed.testbed.switching.tables import Misled
from mrc_testbed.testbed.switching.thresholds import FLAWLESS, LevelFlaws, PauseThresholds
from mrc_testbed.testbed.virtual.adaptive import AdaptiveWays
from mrc_testbed.testbed.virtual.frames import Frames
from mrc_testbed.testbed.virtual.lossless import (
    FIRST_AND_LAST_BYTES,
    REACTIONS_PER_T,
    LosslessPort,
    PauseRules,
    headroom_bytes,
)
from mrc_testbed.testbed.virtual.nic import Nic
from mrc_testbed.testbed.virtual.packet import ENCAPSULATED_BYTES, Headers
from mrc_testbed.testbed.virtual.port import NIC_LIMITS, Deliver, Port, QueueLimits
from mrc_testbed.testbed.virtual.port_row import BYTES_AT
from mrc_testbed.testbed.virtual.readings import by_sid, pause_counts, seen, sid_counts
from mrc_testbed.testbed.virtual.rules import ActiveRule, PortDice
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.testbed.virtual.tap import VirtualTap
from mrc_testbed.testbed.virtual.ways import HashedWays, SourceWays, Topology, Ways
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan

HearCarrier = Callable[[int, bool], None]
"""Told of a plane on which the host's port has lost (False) or found its carrier."""
HearPaused = Callable[[int, bool], None]
"""Told of a plane on which the host's port was paused (True) or may go on."""
_FIX = "run it on the kernel, without --virtual"
_NO_COUNTS = (0,) * COUNTS
"""At egress the port of a host counts nothing."""


class VirtualFabric:
    """See mrc_testbed.testbed.switching.interface.FabricLike. Hosts that are not attached lose what comes for them
    (`socket_losses`).

    `seed`: of all that is left to chance, and of the switches' hash where the options have none.
    """

    def __init__(self, plan: Plan, options: FabricOptions, scheduler: Scheduler, seed: int) -> None:
        """Raises ValueError for ports that do not run the port program."""
        if not options.port_program:
            raise ValueError("the switch ports of a virtual fabric do what the port program does, nothing less")
        self.plan = plan
        self.options = options
        self.unplanned: Collection[Unplanned] = ()
        self._scheduler = scheduler
        self._headers = Headers(ENCAPSULATED_BYTES if plan.by_usid else rc.FRAME_BYTES, options)
        self.pause_rules = None if options.pause is None else pause_rules(plan, options.pause, plan.shape.port_rate_bps)
        """Of ports with the port rate, where they pause each other."""
        self._ports = _make_ports(plan, options, self._headers, scheduler, seed)
        self.topology = Topology(plan, self._ports)
        self._ways = self._make_ways(self.topology, seed)
        self._rules = RuleTable(_Slots(self._ports))
        self._rates_bps: dict[str, int] = {}
        self._flaws: dict[str, LevelFlaws] = {}
        self._sids_before: dict[Interface, SidCounts] = {}
        self._misled: dict[Interface, Interface | None] = {}
        self._lost_at: Counter[str] = Counter()
        self._carriers: dict[str, HearCarrier] = {}
        self._planes = {end: link.plane for link in plan.links for end in link.ends}
        for own, port in self._ports.items():
            port.choose = self._ways.choose
            if own.node in plan.host_by_name:
                port.deliver = self._nobody(own.node)

    def _make_ways(self, topology: Topology, seed: int) -> Ways:
        plan, options = self.plan, self.options
        if plan.by_usid:
            return SourceWays(plan, topology)
        if options.adaptive:
            looks = looks_of(plan.shape)
            return AdaptiveWays(plan, options, topology, seed, looks, lambda: self._scheduler.now_ns)
        return HashedWays(plan, options, topology, seed)

    @property
    def pids(self) -> Mapping[str, int]:
        """Raises MissingCapability: nodes have no process."""
        raise MissingCapability("nodes of a virtual network have no process", _FIX)

    def node(self, name: str) -> Any:
        """Raises MissingCapability: a node has no shell."""
        raise MissingCapability(f"{name} has no shell in a virtual network", _FIX)

    def _nobody(self, host: str) -> Deliver:
        def lose(*_packet: object) -> None:
            self._lost_at[host] += 1

        return lose

    def attach(self, host: str, deliver: Deliver, carrier: HearCarrier, paused: HearPaused | None = None) -> Nic:
        """Give a host its packets and the state of its ports; returns what it sends by.

        It is told at once of ports without carrier, as faults at cold start leave them; the others have it.
        """
        for own, _ in self.plan.ports[host]:
            port = self._ports[own]
            port.deliver = deliver
            if isinstance(port, LosslessPort) and paused is not None:
                port.hear_pause = partial(paused, self._planes[own])
            if not port.live:
                carrier(self._planes[own], False)
        self._carriers[host] = carrier
        return Nic(self.plan.host_by_name[host], self._ways, self._headers, self._scheduler)

    def tap(self, link: str, snap_bytes: int, wall_ahead_ns: int, ready: Callable[[], None]) -> VirtualTap:
        """A tap on a link, both ways, as seen at its end nearer to the hosts. It captures nothing until `listen`.

        `wall_ahead_ns`: wall time less that of the scheduler. `ready` is called when the tap has blocks.
        """
        near = self._ports[self.plan.link_by_name[link].near]
        return VirtualTap(near, Frames(self.plan), snap_bytes, wall_ahead_ns, ready)

    def sample_ports(self) -> Iterator[tuple[str, str, int, int, int, int, int, int]]:
        """Interface counters of every port now. A packet counts when its last bit has left."""
        for own, port in self._ports.items():
            yield (own.node, own.name, *seen(port.into.row()), *seen(port.peer.into.row()))

    def ip_counts(self) -> Mapping[str, IpCounts]:
        """Raises MissingCapability: nodes have no kernel that counts."""
        raise MissingCapability("nodes of a virtual network have no kernel that counts", _FIX)

    def port_counts(self) -> dict[tuple[str, str], PortCounts]:
        """What every (node, port) did, by class of packet."""
        return {
            (own.node, own.name): counts_of(self._egress(own, port), port.into.row())
            for own, port in self._ports.items()
        }

    def port_hits(self) -> Iterator[tuple[tuple[str, str], PortHits]]:
        """Marked, trimmed, dropped, lost and corrupted packets at every (node, port)."""
        for own, port in self._ports.items():
            yield (own.node, own.name), hits_of(self._egress(own, port), port.into.row())

    def _egress(self, own: Interface, port: Port) -> Sequence[int]:
        return _NO_COUNTS if own.node in self.plan.host_by_name else port.out.row()

    def queues(self) -> dict[str, dict[str, dict[str, int]]]:
        """Packets sent and dropped by every port's queues."""
        found: dict[str, dict[str, dict[str, int]]] = {node: {} for node in self.plan.node_names}
        for own, port in self._ports.items():
            sent = sum(port.peer.into.row()[:BYTES_AT])
            drops = {"drops": port.high_drops, "control_drops": port.high_drops}
            found[own.node][own.name] = {"sent_packets": sent, **drops, **pause_counts(port)}
        return found

    def backlog_ns(self, node: str, port: str) -> int:
        """How long it takes to send what waits at a port."""
        return next(self._ports[own].backlog_ns() for own, _ in self.plan.ports[node] if own.name == port)

    def watermarks(self) -> dict[tuple[str, str], int]:
        """The longest queue that a packet has met at every switch port, in bytes."""
        switches = self.plan.switch_by_name
        return {
            (own.node, own.name): port.watermark_bytes() for own, port in self._ports.items() if own.node in switches
        }

    def sid_counts(self) -> dict[str, dict[str, SidCounts]]:
        """Packets and bytes that each uSID of every node has taken; a switch that has been off begins again."""
        return sid_counts(self.plan, self._ports, self._planes, self._sids_before)

    def without_sid(self) -> dict[str, int]:
        """By switch, packets for whose destination it had neither a uSID nor a route."""
        none = self.no_routes()
        return {switch: none.get(switch, 0) for switch in self.plan.switch_by_name}

    def receive_drops(self) -> int:
        """Nothing reads too late here."""
        return 0

    def socket_losses(self) -> dict[str, int]:
        """Datagrams that reached a host which is not attached."""
        return {node: self._lost_at[node] for node in self.plan.node_names}

    def predicted_uplinks(self, flows: Sequence[PlainFlow]) -> list[int]:
        """The number of the way that switches choose for each flow now; 0 within a T0 group. It is what they will take.

        Raises MissingCapability where the choice depends on more, or is the hosts'; FabricError without a way.
        """
        return self._ways.predicted(flows)

    def verify(self, only: Iterable[str] | None = None) -> None:
        """There is nothing to compare: the state of the ports is the only one there is."""

    def converge(self) -> None:
        """Routes are there at once."""

    def count_route_updates(self) -> None:
        """There are none."""

    def route_updates(self) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
        """None."""
        return {}

    def has_all_routes(self) -> bool:
        """Always."""
        return True

    def freeze_routes(self) -> None:
        """Nobody changes them."""

    def route_changes(self) -> Sequence[tuple[int, str, int, int]]:
        """None."""
        return ()

    def prepare_faults(self, on_nodes: Iterable[str]) -> None:
        """Nothing needs to be opened."""

    def ports_down(self, ports: Iterable[Interface]) -> None:
        """Take these ports down: what waits at both ends is lost, and hosts at the other end are told."""
        self._set_up(ports, False)

    def ports_up(self, ports: Iterable[Interface]) -> None:
        """Bring these ports up; their links work if the other ends are up, and hosts there are told."""
        self._set_up(ports, True)

    def _set_up(self, ports: Iterable[Interface], up: bool) -> None:
        changed: list[Port] = []
        for own in ports:
            port = self._ports[own]
            port.up = up
            live = up and port.peer.up
            if port.live != live:
                changed += port, port.peer
                port.set_live(live)
                port.peer.set_live(live)
        for port in changed:
            port.flush()
        self._ways.ports_changed()
        for port in changed:
            hear = self._carriers.get(port.interface.node)
            if hear is not None:
                hear(self._planes[port.interface], up)

    def switch_off(self, switch: str) -> int:
        """Take all ports of a switch down. Returns 0: no route is left."""
        self.ports_down(own for own, _ in self.plan.ports[switch])
        return 0

    def switch_on(self, switch: str, ports: Iterable[Interface]) -> None:
        """Bring these ports up, with the table."""
        for own, _ in self.plan.ports[switch]:
            self._sids_before[own] = by_sid(self._ports[own])
        self.ports_up(ports)

    def ports_held_down(self) -> list[Interface]:
        """Ports that are currently held down."""
        return sorted((own for own, port in self._ports.items() if not port.up), key=lambda own: own.ifindex)

    def set_rate(self, link: str, rate_bps: int) -> None:
        """Set the rate of a link both ways. What is on the wire leaves at the old one; queues keep their bytes."""
        self._rates_bps[link] = rate_bps
        for end in self.plan.link_by_name[link].ends:
            self._ports[end].set_rate(rate_bps)

    def rate_bps(self, link: str) -> int:
        """The current rate of a link."""
        return self._rates_bps.get(link, self.plan.link_by_name[link].rate_bps)

    def mislead(self, switch: str, entries: Misled) -> None:
        """Let these entries of a switch lead elsewhere, and all others where they should."""
        held = [own for own in self._misled if own.node == switch]
        for own in held:
            del self._misled[own]
        self._misled |= entries
        for own in {*held, *entries}:
            instead = self._misled.get(own, own)
            self._ports[own].lead(None if instead is None else self._ports[instead])

    def no_routes(self) -> dict[str, int]:
        """By node, packets for which it had no route; those nodes that had any."""
        found: Counter[str] = Counter()
        for own, port in self._ports.items():
            found[own.node] += port.strange + port.no_route
        return {node: count for node, count in found.items() if count}

    def set_flaws(self, switch: str, flaws: LevelFlaws) -> None:
        """Let the ports of a switch judge packets by their levels with these flaws."""
        self._flaws[switch] = flaws
        for own, peer in self.plan.ports[switch]:
            self._ports[own].set_limits(_switch_limits(self.plan, self.options, peer, self.plan.rates_bps[own], flaws))

    def verify_flaws(self, flaws: Mapping[str, LevelFlaws]) -> None:
        """Compare the flaws of every switch with these. Raises FabricError naming one that differs."""
        for switch, held in self._flaws.items():
            if held != flaws.get(switch, FLAWLESS):
                raise FabricError(switch, "read-back of its levels", f"{held} hold")

    def add_rule(self, link: str, toward: Literal["near", "far"], rule: PortRule) -> RuleHandle:
        """Lose or corrupt packets that arrive at one end of a link; "far" is that of packets away from the hosts.

        Raises FabricError if the port holds eight rules, ValueError for a rule by the number of a way, where
        packets do not say theirs.
        """
        ends = self.plan.link_by_name[link]
        port = ends.near if toward == "near" else ends.far
        return self._rules.add(port, as_seen_by_program(rule, port, self.plan))

    def remove_rule(self, handle: RuleHandle) -> int:
        """Remove a rule. Returns how many packets it hit. Raises ValueError if it was already removed."""
        return self._rules.remove(handle)

    def verify_rules(self, handles: Iterable[RuleHandle]) -> None:
        """Compare the rules of every port with `handles`. Raises FabricError naming a port that differs."""
        self._rules.verify(self._ports, handles)

    def silence(self, switch: str, of_hosts: bool = False) -> list[RuleHandle]:
        """A switch loses everything that arrives while its ports stay up; all of it is `of_hosts`."""
        return [self._rules.add(own, PortRule("drop", of_hosts=of_hosts)) for own, _ in self.plan.ports[switch]]


def _make_ports(
    plan: Plan, options: FabricOptions, headers: Headers, scheduler: Scheduler, seed: int
) -> dict[Interface, Port]:
    """Every port, joined to its other end. Each has a chance of its own, so that a rule at one changes no other."""
    made: dict[Interface, Port] = {}
    pauses: dict[int, PauseRules] = {}
    ends = [end for node in plan.node_names for end in plan.ports[node]]
    for own, peer in ends:
        rate_bps = plan.rates_bps[own]
        rest = rate_bps, headers, scheduler, PortDice(seed << 32 | own.ifindex)
        if options.pause is not None:
            if rate_bps not in pauses:
                pauses[rate_bps] = pause_rules(plan, options.pause, rate_bps)
            made[own] = LosslessPort(own, pauses[rate_bps], *rest)
        else:
            limits = NIC_LIMITS if own.node in plan.host_by_name else _switch_limits(plan, options, peer, rate_bps)
            made[own] = Port(own, limits, *rest)
    for own, peer in ends:
        made[own].join(made[peer])
    return made


def _switch_limits(
    plan: Plan, options: FabricOptions, peer: Interface, rate_bps: int, flaws: LevelFlaws = FLAWLESS
) -> QueueLimits:
    bdp_bytes = level_bdp_bytes(plan.shape, rate_bps)
    levels = options.thresholds.in_bytes(bdp_bytes, last_hop=peer.node in plan.host_by_name)
    return QueueLimits(flaws.of(levels, bdp_bytes), control_queue_bytes(plan.shape, rate_bps))


def pause_rules(plan: Plan, pause: PauseThresholds, rate_bps: int) -> PauseRules:
    """Those of the ports at both ends of a link of this rate."""
    shape = plan.shape
    levels, reaction_ns = pause.in_bytes(level_bdp_bytes(shape, rate_bps)), shape.rtt_ns // REACTIONS_PER_T
    room_bytes = headroom_bytes(shape.wire_bytes + FIRST_AND_LAST_BYTES, rate_bps, reaction_ns)
    return PauseRules(levels, reaction_ns, levels.xoff + room_bytes)


class _Slots:
    """The rules of virtual ports (mrc_testbed.testbed.switching.port_rules.RuleSlots), each port's in the order of
    their slots."""

    def __init__(self, ports: Mapping[Interface, Port]) -> None:
        self._ports = ports

    def write(self, port: Interface, slot: int, rule: PortRule) -> None:
        """Let a rule hold."""
        at = self._ports[port]
        at.rules = tuple(sorted((*at.rules, ActiveRule(slot, rule)), key=lambda each: each.slot))

    def active(self, port: Interface) -> set[int]:
        """The slots whose rules hold."""
        return {rule.slot for rule in self._ports[port].rules}

    def clear(self, port: Interface, slot: int) -> int:
        """End a rule; how often it hit."""
        at = self._ports[port]
        ended = next(rule for rule in at.rules if rule.slot == slot)
        at.rules = tuple(rule for rule in at.rules if rule is not ended)
        return ended.hits
