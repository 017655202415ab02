"""What the switches of a fabric have counted until now, read by its pids and the maps that its port program shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from mrc_testbed.testbed.fabric.counters import PortCounters, queue_counters, sid_counts, without_sid
from mrc_testbed.testbed.fabric.libbpf import pinned_map
from mrc_testbed.testbed.fabric.port_maps import VALUE_BYTES, SharedArray, port_counts, port_rate_bps, watermark_bytes
from mrc_testbed.testbed.fabric.port_program import LOOKED_AT
from mrc_testbed.testbed.switching.classes import TrimRules
from mrc_testbed.testbed.switchview.reading import PortReading, SwitchReading, plain_shaper_counts, sid_prefix
from mrc_testbed.topos.nodes import FIRST_IFINDEX, Interface
from mrc_testbed.topos.plan import Plan

_INTERFACE = ("rx_bytes", "rx_packets", "rx_drops", "tx_bytes", "tx_packets", "tx_drops")


class SwitchReader:
    """Reads switches. `programs`: the folder where the fabric's port program has pinned its maps; without them its
    switch ports are plain shapers."""

    def __init__(self, plan: Plan, pids: Mapping[str, int], programs: Path, trimming: TrimRules | None) -> None:
        self.plan = plan
        self._pids, self._programs, self._trimming = pids, programs, trimming

    def reading(self, switch: str) -> SwitchReading:
        """The counts of a switch now."""
        own = {switch: self._pids[switch]}
        drops = queue_counters(own)[switch]
        interfaces = {port: dict(zip(_INTERFACE, counts, strict=True)) for _, port, *counts in _frames(own)}
        maps = self._maps()
        ports = tuple(
            PortReading(
                port.name, peer.node, {**interfaces.get(port.name, {}), **_counted(maps, port, drops.get(port.name))}
            )
            for port, peer in self.plan.ports[switch]
        )
        sid = sid_prefix(self.plan, switch)
        sids = sid_counts(own)[switch] if sid else None
        return SwitchReading(switch, ports, sid, self._trimming, sids, without_sid(own)[switch] if sid else None)

    def _maps(self) -> dict[str, SharedArray]:
        if not (self._programs / LOOKED_AT[0]).exists():
            return {}
        entries = 2 * len(self.plan.links)
        return {name: SharedArray(pinned_map(self._programs / name), entries, VALUE_BYTES[name]) for name in LOOKED_AT}


def _frames(pids: dict[str, int]) -> list[tuple[str, str, int, int, int, int, int, int]]:
    counters = PortCounters(pids)
    try:
        return list(counters.read())
    finally:
        counters.close()


def _counted(maps: Mapping[str, SharedArray], port: Interface, queue: Mapping[str, int] | None) -> dict[str, int]:
    """As counters.json has them (testbed/runner/books.py)."""
    if queue is None:
        return {}
    drops, high = queue["drops"], queue["control_drops"]
    if not maps:
        return plain_shaper_counts(drops, high)
    key = port.ifindex - FIRST_IFINDEX
    longest = watermark_bytes(maps["queues"], key, port_rate_bps(maps["ports"], key))
    counts = asdict(port_counts(maps["egress_counts"], maps["ingress_counts"], key))
    return {**counts, "queue_drops_high": high, "queue_drops_data": drops - high, "most_queued_bytes": longest}
