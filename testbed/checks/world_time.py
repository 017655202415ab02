"""Does the clock of this world tell the truth? A run whose round trip cannot be is no result. Pure."""

from __future__ import annotations

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.result import FidelityFigure
from mrc_testbed.testbed.checks.scale import amount, number, usual_scale
from mrc_testbed.testbed.checks.steps import step_durations
from mrc_testbed.testbed.checks.windows import NoData
from mrc_testbed.testbed.expect import Span, Window
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.rundir.lines import Party
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.workloads.graph_job import GraphJob
from mrc_testbed.testbed.workloads.steps import Together
from mrc_testbed.topos.in_flight import few_in_flight

LEAST_BASE_RTT_T = 0.95
"""T is the least: an endpoint that measures less holds packets for less, or its clock is wrong. Stamps are rounded."""
STAMP_NS = 128
MOST_BASE_RTT_T = 1.2
"""More than this, and a full packet on every link, is the hosts' own: turns, timers, a delay that is added twice."""
MOST_CLEAN_STEP = 1.1
"""A clean step that takes longer than this many times its prediction, with nothing that explains it, is no result.
Shipped scenarios in virtual time have 1.003 to 1.050."""
BASE_RTT, CLEAN_STEP = "base RTT", "clean step over its prediction"
_EXPLAIN = ("congestion_control", "ev_selection", "workload")
_HARMLESS = {"preset", "payload_bytes", "dscp", "icrc"}
_LOOK = "look for what the transport waits for: `validate --predict` has the time of each part of a step"


def base_rtt(record: RunRecord) -> tuple[FidelityFigure, ...]:
    """Against T; nothing where there is none. Faults at the start, hosts that are written to be slow, and planes that
    hold so few packets that probes wait for each other explain a longer one."""
    scenario, observed = record.scenario, record.base_rtt_ns
    shape, cold = scenario.shape(), any(one.cold for one in scenario.occurrences)
    slow = scenario.virtual.busy_ns or scenario.virtual.lateness_ns
    longer = cold or slow or few_in_flight(shape, False, shape.family.least_share)
    if not shape.rtt_ns:
        return ()
    links_ns = shape.family.span(shape.family.farthest) * shape.wire_bytes * 8e9 / shape.port_rate_bps
    most_ns = MOST_BASE_RTT_T * shape.rtt_ns + links_ns
    scale = usual_scale(Dimension.TIME, most_ns)
    limit = most_ns / scale.factor
    if observed is None:
        why = "not known: no path answered before the workload began"
        return (FidelityFigure(BASE_RTT, None, limit, scale.unit, cold, why),)
    seen, rtt, least_ns = observed / scale.factor, shape.rtt_ns / scale.factor, LEAST_BASE_RTT_T * shape.rtt_ns
    why, who = "", Party.PROGRAM if scenario.plugins else Party.MACHINE
    if observed < least_ns - STAMP_NS:
        why, limit = f"packets arrived before they can have, T is {number(rtt)} {scale.unit}", least_ns / scale.factor
    elif observed > most_ns and not longer:
        why = f"hosts took {number(seen - rtt)} {scale.unit} beside a round trip of {number(rtt)} {scale.unit}"
    if not why:
        return (FidelityFigure(BASE_RTT, seen, None, scale.unit, True),)
    why += ": not a result about the network"
    return (FidelityFigure(BASE_RTT, seen, limit, scale.unit, False, why, who),)


def clean_step(record: RunRecord) -> tuple[FidelityFigure, ...]:
    """The shortest of the only job of a fabric against what `validate --predict` says, unless something explains a
    longer one: what a fault left behind lengthens some steps, not all. What is faster than possible is another figure.
    It decides over transports of plugins in virtual time; tests hold ours, and machines may be slow within limits.
    """
    scenario = record.scenario
    if len(scenario.jobs) != 1 or scenario.job.programs:
        return ()
    try:
        observed_ns = min(step_durations(record, Window(Span.CLEAN)))
    except NoData:
        return ()
    shape = scenario.shape()
    predicted_ns = scenario.jobs[0].steps(shape).step_ns(shape)
    times = observed_ns / max(predicted_ns, 1)
    if times <= MOST_CLEAN_STEP or _longer(scenario):
        return (FidelityFigure(CLEAN_STEP, times, None, "x", True),)
    took, least = (amount(Dimension.TIME, ns) for ns in (observed_ns, predicted_ns))
    why = f"no step that nothing disturbed took less than {took}, and {least} are predicted: not about the network"
    of_plugin = any(one.kind == "transport" for one in scenario.offered.plugins)
    if scenario.world is WorldKind.VIRTUAL and of_plugin:
        return (FidelityFigure(CLEAN_STEP, times, MOST_CLEAN_STEP, "x", False, why, Party.PROGRAM, _LOOK),)
    return (FidelityFigure(CLEAN_STEP, times, None, "x", True, why),)


def _longer(scenario: Scenario) -> bool:
    """Something explains longer steps: flows beside them, links that hashes share or that carry less than hosts send,
    parts that share ports, code of plugins below a transport, settings of endpoints, hosts that take their time or are
    denied paths, planes that hold few packets."""
    shape, job, endpoint = scenario.shape(), scenario.jobs[0].steps(scenario.shape()), scenario.endpoint
    return bool(
        scenario.job.flows
        or not scenario.transport.names_paths
        or any(one.kind in _EXPLAIN for one in scenario.offered.plugins)
        or endpoint.model_fields_set - _HARMLESS
        or scenario.virtual.busy_ns
        or scenario.virtual.lateness_ns
        or scenario.mapper
        or few_in_flight(shape, False, shape.family.least_share)
        or isinstance(job, GraphJob)
        or any(isinstance(part, Together) for part in job.parts)
        or any(times.behind_ns for times in job.clean_parts(shape))
    )
