"""The flows of a scenario for other simulators, so that both play the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.interchange.flow_lists import flow_lines, htsim_lines
from mrc_testbed.testbed.interchange.found import FlowLine, LeftOut
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.workloads.flows import Flow
from mrc_testbed.topos.names import host_name

HTSIM, FLOWS = "htsim", "flows"
SUFFIXES: Mapping[str, str] = {HTSIM: ".cm", FLOWS: ".csv"}
"""Formats, and how their files end."""
_PS_PER_NS = 1000


class ExportedFlows(NamedTuple):
    """`lost`: what the format has no word for."""

    lines: list[str]
    lost: tuple[str, ...]


def exported_flows(scenario: Scenario, to: str) -> ExportedFlows:
    """The flows of a scenario in one of the formats. Raises UsageError where it has none."""
    losses = LeftOut()
    flows = sorted(_flows(scenario, losses), key=lambda flow: flow.start_ps)
    if not flows:
        raise UsageError(f"{scenario.file}: has no flows with a number of bytes, so there is nothing for {to}")
    if to == HTSIM and (named := sum(bool(flow.name) for flow in flows)):
        losses.note("name of a flow", named)
    hosts = scenario.shape().hosts
    lines = htsim_lines(flows, hosts) if to == HTSIM else flow_lines(flows, host_name)
    return ExportedFlows(list(lines), losses.lines())


def _flows(scenario: Scenario, losses: LeftOut) -> Iterator[FlowLine]:
    """Those that end after a number of bytes, at the times at which they run."""
    if scenario.jobs:
        losses.note("job of steps: only flows are exported", len(scenario.jobs))
    if scenario.faults:
        losses.note("fault", len(scenario.faults))
    for flow in scenario.job.flows.flows if scenario.job.flows else ():
        yield from _of_pair(flow, losses)


def _of_pair(flow: Flow, losses: LeftOut) -> Iterable[FlowLine]:
    if flow.arrivals:
        return [FlowLine(one.start_ns * _PS_PER_NS, flow.src, flow.dst, one.size, one.name) for one in flow.arrivals]
    if flow.total_bytes is None:
        losses.note("flow that ends after a time: others know bytes alone")
        return ()
    return (FlowLine(flow.start_ns * _PS_PER_NS, flow.src, flow.dst, flow.total_bytes),)
