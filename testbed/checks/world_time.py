"""Does the clock of this world tell the truth? A run whose round trip cannot be is no result. Pure."""

from __future__ import annotations

from statistics import median

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.result import FidelityFigure, Party
from mrc_testbed.testbed.checks.scale import number, usual_scale
from mrc_testbed.testbed.checks.steps import step_durations
from mrc_testbed.testbed.checks.windows import NoData
from mrc_testbed.testbed.expect import Span, Window
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.topos.in_flight import few_in_flight

LEAST_BASE_RTT_T = 0.95
"""T is the least: an endpoint that measures less holds packets for less, or its clock is wrong. Stamps are rounded."""
STAMP_NS = 128
MOST_BASE_RTT_T = 1.2
"""More than this, and a full packet on every link, is the hosts' own: turns, timers, a delay that is added twice."""
MUCH_LONGER = 1.25
"""A clean step that is this many times as long as predicted is told. It decides nothing: congestion control may be the
reason."""
BASE_RTT, CLEAN_STEP = "base RTT", "clean step over its prediction"


def base_rtt(record: RunRecord) -> tuple[FidelityFigure, ...]:
    """Against T; nothing where there is none. Faults at the start, and hosts that are written to be slow, explain a
    longer one."""
    scenario, observed = record.scenario, record.base_rtt_ns
    shape, cold = scenario.shape(), any(one.cold for one in scenario.occurrences)
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
    elif observed > most_ns and not (cold or scenario.virtual.busy_ns or scenario.virtual.lateness_ns):
        why = f"hosts took {number(seen - rtt)} {scale.unit} beside a round trip of {number(rtt)} {scale.unit}"
    if not why:
        return (FidelityFigure(BASE_RTT, seen, None, scale.unit, True),)
    why += ": not a result about the network"
    return (FidelityFigure(BASE_RTT, seen, limit, scale.unit, False, why, who),)


def clean_step(record: RunRecord) -> tuple[FidelityFigure, ...]:
    """Of the only job of a fabric against what `validate --predict` says, for information: `why` tells of a step that
    is much longer, if nothing explains it. What is faster than possible is another figure."""
    scenario = record.scenario
    if len(scenario.jobs) != 1 or scenario.job.programs:
        return ()
    try:
        observed_ns = median(step_durations(record, Window(Span.CLEAN)))
    except NoData:
        return ()
    shape = scenario.shape()
    predicted_ns = scenario.jobs[0].steps(shape).step_ns(shape)
    if observed_ns <= MUCH_LONGER * predicted_ns or _longer(scenario):
        return (FidelityFigure(CLEAN_STEP, observed_ns / max(predicted_ns, 1), None, "x", True),)
    scale = usual_scale(Dimension.TIME, observed_ns)
    took, least = (f"{number(ns / scale.factor)} {scale.unit}" for ns in (observed_ns, predicted_ns))
    why = f"a step that nothing disturbed took {took}, and {least} are predicted"
    return (FidelityFigure(CLEAN_STEP, observed_ns / max(predicted_ns, 1), None, "x", True, why),)


def _longer(scenario: Scenario) -> bool:
    """Something explains longer steps: flows beside them, links that hashes share, code of plugins, hosts that take
    their time or are denied paths, planes that hold few packets."""
    shape = scenario.shape()
    return bool(
        scenario.job.flows
        or not scenario.transport.names_paths
        or scenario.plugins
        or scenario.virtual.busy_ns
        or scenario.endpoint.denylist
        or scenario.mapper
        or few_in_flight(shape, False, shape.family.least_share)
    )
