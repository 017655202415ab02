"""What a switch had counted when a run was over, from the run's folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.app.recorded_series import last_samples
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.expect.spelling import did_you_mean
from mrc_testbed.testbed.rundir.files import read_json
from mrc_testbed.testbed.switching.port_counts import SidCounts
from mrc_testbed.testbed.switchview.reading import PortReading, SwitchReading, plain_shaper_counts, sid_prefix
from mrc_testbed.topos.plan import Plan

_SAMPLED = ("rx_bytes", "rx_packets", "rx_drops", "tx_bytes", "tx_packets", "tx_drops")
"""In the order of a row of samples.csv."""


def recorded_reading(folder: Path, switch: str) -> SwitchReading:
    """The last counts of a switch in a run's folder. Raises UsageError for a name that is none, RecordError for files
    that cannot be read."""
    record = load_record(folder)
    plan = record.plan
    require_switch(plan, switch)
    counters = read_json(folder / "counters.json") or {}
    sampled = {
        port: dict(zip(_SAMPLED, counts, strict=True)) for node, port, *counts in last_samples(record) if node == switch
    }
    ports = tuple(
        PortReading(own.name, peer.node, {**sampled.get(own.name, {}), **_counted(counters, switch, own.name)})
        for own, peer in plan.ports[switch]
    )
    scenario = record.scenario
    trimming = scenario.trimming.rules() if scenario.transport.can_be_trimmed else None
    sids = counters.get("sids", {}).get(switch)
    told = None if sids is None else {sid: SidCounts(one["packets"], one["bytes"]) for sid, one in sids.items()}
    return SwitchReading(
        switch, ports, sid_prefix(plan, switch), trimming, told, counters.get("no_sid", {}).get(switch)
    )


def require_switch(plan: Plan, name: str) -> None:
    """Raises UsageError unless a switch has this name."""
    if name not in plan.switch_by_name:
        hint = did_you_mean(name, plan.switch_by_name)
        why = "is a host, and `show` is for switches" if name in plan.host_by_name else f"is no switch{hint}"
        raise UsageError(f"{name} {why}")


def _counted(counters: Mapping[str, Any], node: str, port: str) -> dict[str, int]:
    """What counters.json has of a port. Plain shapers have no program that drops before them."""
    booked = counters.get("ports", {}).get(node, {}).get(port)
    queue = counters.get("queues", {}).get(node, {}).get(port)
    if booked is not None or queue is None:
        return booked or {}
    return plain_shaper_counts(queue["drops"], queue["control_drops"])
