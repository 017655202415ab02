"""The port program in the kernel: loaded once per run, attached to every port, configured and read via shared
memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric import port_object
from mrc_testbed.testbed.fabric.libbpf import BpfObject
from mrc_testbed.testbed.fabric.port_choices import PortChoices
from mrc_testbed.testbed.fabric.port_maps import (
    VALUE_BYTES,
    SharedArray,
    SharedRules,
    keep_watermark,
    late_arrivals,
    port_counts,
    port_entry,
    port_hits,
    queue_ns,
    settings_entry,
    stretch_queue,
    take_last_lateness,
    watermark_bytes,
)
from mrc_testbed.testbed.fabric.sandbox import mount_bpffs
from mrc_testbed.testbed.switching.adaptive import looks_of
from mrc_testbed.testbed.switching.options import FabricOptions, level_bdp_bytes
from mrc_testbed.testbed.switching.port_counts import LateArrivals, PortCounts, PortHits
from mrc_testbed.testbed.switching.port_rules import RuleTable
from mrc_testbed.testbed.switching.thresholds import FLAWLESS, LevelFlaws
from mrc_testbed.topos import names
from mrc_testbed.topos.nodes import FIRST_IFINDEX, Interface
from mrc_testbed.topos.plan import Plan

SWITCH_HOOKS = {"port_ingress": "ingress", "port_egress": "egress"}
"""The programs of a switch port, and where they are attached."""
NIC_HOOKS = {"nic_ingress": "ingress", "nic_egress": "egress"}
"""The same of a host's port."""

LOOKED_AT = ("ports", "queues", "egress_counts", "ingress_counts")
"""Maps that other processes may look into: a prompt in a run."""

LEAST_LATE_NS = 1_250_000
"""What a shaper's burst of a millisecond makes good is not late."""


@dataclass(frozen=True, slots=True)
class LoadedPrograms:
    """The pin folder and the program ids by name."""

    folder: Path
    ids: dict[str, int]


def load(entries: int, options: FabricOptions, plain: bool = False) -> tuple[LoadedPrograms, dict[str, SharedArray]]:
    """Load programs and maps for `entries` interfaces, pinned in a bpffs of this sandbox.

    `plain`: those for packets without encapsulation. `options`: what they go by.

    Raises MissingCapability without compiler, libbpf, intact object or bpffs, FabricError if the kernel refuses.
    """
    loaded = BpfObject(port_object.object_file(plain))
    try:
        for name, size in VALUE_BYTES.items():
            if loaded.map_value_bytes(name) != size:
                raise FabricError("fabric", f"read map {name}", "its layout in port.bpf.c is not that of port_maps.py")
        loaded.set_constants(settings_entry(options))
        loaded.load(dict.fromkeys(VALUE_BYTES, entries))
        folder = mount_bpffs()
        ids = {name: loaded.pin(name, folder / name) for name in (*SWITCH_HOOKS, *NIC_HOOKS)}
        for name in LOOKED_AT:
            loaded.pin_map(name, folder / name)
        maps = {name: SharedArray(loaded.map_descriptor(name), entries, size) for name, size in VALUE_BYTES.items()}
    finally:
        loaded.close()
    return LoadedPrograms(folder, ids), maps


def late_ns(rtt_ns: int, queue_ns: int) -> int:
    """From when on a packet is late on its wire: T/4, as timers of hosts may be, or a twelfth of what the queue holds,
    which is as much for 3 BDP. Where packets wait for seconds, a quarter of T is nothing."""
    return max(rtt_ns // 4, queue_ns // 12, LEAST_LATE_NS)


def is_last_hop(node: str, peer: str) -> bool:
    """True for the port of a switch towards a host."""
    return names.parse_host(node) is None and names.parse_host(peer) is not None


class PortProgram:
    """The programs of a plan's ports. `attach_lines` attaches them; everything else is memory access."""

    def __init__(self, plan: Plan, options: FabricOptions) -> None:
        """Load, and configure every port. Raises as `load` does."""
        self.programs, maps = load(2 * len(plan.links), options, not plan.by_usid)
        self._ports, self._queues = maps["ports"], maps["queues"]
        self._egress, self._ingress = maps["egress_counts"], maps["ingress_counts"]
        self._latenesses = maps["latenesses"]
        self.rules = RuleTable(SharedRules(maps["port_rules"]))
        self._flaws: dict[int, LevelFlaws] = {}
        self._bdp_bytes = {own.ifindex: level_bdp_bytes(plan.shape, rate) for own, rate in plan.rates_bps.items()}
        self._levels = {
            own.ifindex: options.thresholds.in_bytes(self._bdp_bytes[own.ifindex], is_last_hop(node, peer.node))
            for node, ports in plan.ports.items()
            for own, peer in ports
        }
        self._nic_delay_ns = options.one_way_delay_ns(plan.shape) if options.delay == "netem" else 0
        self._rtt_ns = plan.shape.rtt_ns
        self._nics = {own.ifindex for host in plan.hosts for own, _ in plan.ports[host.name]}
        for own, rate_bps in plan.rates_bps.items():
            self._write(own.ifindex, rate_bps)
        self._choices = PortChoices(maps["choices"], plan, looks_of(plan.shape)) if options.adaptive else None

    def _write(self, ifindex: int, rate_bps: int) -> None:
        entry = self._entry(ifindex, rate_bps, self._flaws.get(ifindex, FLAWLESS))
        start = self._ports.at(ifindex - FIRST_IFINDEX)
        self._ports.memory[start : start + len(entry)] = entry

    def _entry(self, ifindex: int, rate_bps: int, flaws: LevelFlaws) -> bytes:
        delay_ns = self._nic_delay_ns if ifindex in self._nics else 0
        planned = self._levels[ifindex]
        late_after_ns = late_ns(self._rtt_ns, planned.drop * 8 * 10**9 // rate_bps)
        return port_entry(flaws.of(planned, self._bdp_bytes[ifindex]), rate_bps, delay_ns, late_after_ns)

    def set_flaws(self, rates_bps: Mapping[Interface, int], flaws: LevelFlaws) -> None:
        """Let these ports, at their rates, judge packets by their levels with these flaws."""
        for port, rate_bps in rates_bps.items():
            self._flaws[port.ifindex] = flaws
            self._write(port.ifindex, rate_bps)

    def verify_flaws(self, rates_bps: Mapping[Interface, int], flaws: LevelFlaws) -> None:
        """Compare what the program reads of these ports with their levels and these flaws. Raises FabricError."""
        for port, rate_bps in rates_bps.items():
            entry, start = self._entry(port.ifindex, rate_bps, flaws), self._ports.at(port.ifindex - FIRST_IFINDEX)
            if self._ports.memory[start : start + len(entry)] != entry:
                raise FabricError(port.node, "read-back", f"the levels of {port.name} are not those that should hold")

    def set_rate(self, port: Interface, old_bps: int, new_bps: int) -> None:
        """Drain the virtual queue of a port at another rate. Its levels in bytes do not change."""
        keep_watermark(self._queues, port.ifindex - FIRST_IFINDEX, old_bps)
        self._write(port.ifindex, new_bps)
        stretch_queue(self._queues, port.ifindex - FIRST_IFINDEX, old_bps, new_bps)
        if self._choices is not None:
            self._choices.set_rate(port, new_bps)

    def set_down(self, down: Collection[Interface]) -> None:
        """Switches that choose packet by packet leave out links with one of these ends, and no others."""
        if self._choices is not None:
            self._choices.set_down(down)

    def backlog_ns(self, port: Interface) -> int:
        """Backlog of a port's virtual queue, as time at the port's rate."""
        return queue_ns(self._queues, port.ifindex - FIRST_IFINDEX)

    def watermark_bytes(self, port: Interface, rate_bps: int) -> int:
        """The longest queue that a packet has met at a port, which has this rate now."""
        return watermark_bytes(self._queues, port.ifindex - FIRST_IFINDEX, rate_bps)

    def counts(self, port: Interface) -> PortCounts:
        """The counts of one port so far."""
        return port_counts(self._egress, self._ingress, port.ifindex - FIRST_IFINDEX)

    def late_arrivals(self, port: Interface) -> LateArrivals:
        """Packets that came in at one port more than `late_ns` after they had left their link."""
        return late_arrivals(self._latenesses, port.ifindex - FIRST_IFINDEX)

    def take_last_lateness(self, port: Interface) -> int:
        """How late the last data packet was that came in at one port, in ns; 0 without one since the last call."""
        return take_last_lateness(self._latenesses, port.ifindex - FIRST_IFINDEX)

    def hits(self, port: Interface) -> PortHits:
        """Packets of one port that were marked, trimmed, dropped, lost or corrupted."""
        return port_hits(self._egress, self._ingress, port.ifindex - FIRST_IFINDEX)


def attach_lines(plan: Plan, node: str, folder: Path) -> Iterator[str]:
    """`tc -batch` text that attaches the pinned programs to the ports of a node."""
    for own, _ in plan.ports[node]:
        yield f"qdisc add dev {own.name} clsact"
        for program, hook in hooks(node):
            yield filter_line(own.name, hook, folder / program)


def filter_line(device: str, hook: str, pinned: Path) -> str:
    """`tc` text that attaches one pinned program."""
    return f"filter add dev {device} {hook} prio 1 handle 1 bpf direct-action object-pinned {pinned}"


def hooks(node: str) -> Iterator[tuple[str, str]]:
    """(program, hook) of every port of a node."""
    yield from (SWITCH_HOOKS if names.parse_host(node) is None else NIC_HOOKS).items()
