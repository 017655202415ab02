"""What flows that begin over time ask of fabric and machine, known before a run. Pure."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.topos.units import plural, time_text

_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1))


class ArrivalLoad(NamedTuple):
    """Of all such flows. `bytes`: of payload; `memory_bytes`: of both ends."""

    flows: int
    pairs: int
    bytes: int
    packets: int
    memory_bytes: int


def arrival_load(scenario: Scenario) -> ArrivalLoad:
    """All zero without such flows."""
    shape = scenario.shape()
    pairs = [flow for flow in (scenario.job.flows.flows if scenario.job.flows else ()) if flow.arrivals]
    sizes = [one.size for flow in pairs for one in flow.arrivals]
    packets = sum(ceil(size / shape.payload_bytes) for size in sizes)
    memory_bytes = sum(flow.memory_bytes(shape) for flow in pairs)
    return ArrivalLoad(len(sizes), len(pairs), sum(sizes), packets, memory_bytes)


def arrival_words(scenario: Scenario) -> str:
    """In one line; empty without such flows."""
    load = arrival_load(scenario)
    if not load.flows:
        return ""
    between = f"{plural(load.flows, 'flow')} between {plural(load.pairs, 'pair')} of hosts"
    asked = f"{_rough(load.bytes)} in {plural(load.packets, 'packet')} over {time_text(scenario.estimate_ns)}"
    return f"{between}: {asked}, {_rough(load.memory_bytes)} of memory for data"


def _rough(size: int) -> str:
    """`1.2 GiB`, in the largest unit that it fills."""
    unit, factor = next(each for each in _UNITS if size >= each[1])
    return f"{size / factor:.3g} {unit}"
