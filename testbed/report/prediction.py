"""What a run without faults takes, from its shape and workload alone, and how each number is reckoned. Pure.

For `validate --predict`: who knows these can say what a fault will change before it is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import ceil

from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.jobs import NamedJob
from mrc_testbed.testbed.scenario.text.units import format_size
from mrc_testbed.testbed.workloads.estimate import earliest_completion_ns, part_bytes, port_ns, sharing_ports
from mrc_testbed.testbed.workloads.fairness import line_rate
from mrc_testbed.testbed.workloads.steps import Compute, Exchange, PartTimes, StepAction
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.units import plural, rate_text, time_text

MESSAGE_SIZES = 3
"""Sizes of messages that are shown: of one packet, and those of the flows."""
_COLUMN = 12
_COUNTS = ("no", "one", "two", "three", "four", "five")


def prediction_lines(scenario: Scenario) -> Iterator[str]:
    """A line for each figure, with its formula."""
    shape = scenario.shape()
    yield from _fabric(shape)
    if scenario.transport.answer_bytes:
        yield from _messages(scenario, shape)
    for job in scenario.jobs:
        yield from _job(job, shape)


def _fabric(shape: Shape) -> Iterator[str]:
    payload, wire = shape.payload_bytes, shape.wire_bytes
    rate, line, round_trip = rate_text(shape.port_rate_bps), line_rate(shape), time_text(shape.rtt_ns)
    packet, ports = time_text(port_ns(shape, wire)), plural(shape.planes, "port")
    yield _row("packet", packet, f"({payload} B of data + {shape.header_bytes} B of headers) at a port of {rate}")
    in_bytes = f"{number(line / (1 << 20))} MiB/s"
    yield _row("line rate", rate_text(8 * line), f"{in_bytes} of a host's data: {ports} x {rate} x {payload} / {wire}")
    yield _row("plane-BDP", number(shape.plane_bdp_packets), f"packets that a port sends in T: {round_trip} / {packet}")


def _messages(scenario: Scenario, shape: Shape) -> Iterator[str]:
    """From posting a message to its acknowledgement, alone in the fabric."""
    flows = scenario.job.flows.flows if scenario.job.flows else ()
    sizes = dict.fromkeys((shape.payload_bytes, *sorted({flow.message_bytes for flow in flows})))
    answer_bytes = scenario.transport.answer_bytes
    ways = _nearest_ways(shape.family)
    for size in list(sizes)[:MESSAGE_SIZES]:
        for links, switches in ways:
            round_trip = time_text(earliest_completion_ns(shape, size, links, answer_bytes))
            answer = f"{number(links)} x {time_text(port_ns(shape, answer_bytes))} (ack)"
            formula = f"T + {_sent(shape, size, links)} + {answer}"
            over = plural(switches, "switch")
            yield _row("message", round_trip, f"{format_size(size)} and its ack over {over}: {formula}")


def _nearest_ways(family: Family) -> list[tuple[float, int]]:
    """Links, in links at the port rate, and switches between two hosts: each that there is on a shortest way."""
    groups = range(family.tiers[0])
    ways = [family.nearest(0, 0), *(family.nearest(*pair) for pair in combinations(groups, 2))]
    return sorted({(family.span(way), len(way)) for way in ways})


def _sent(shape: Shape, size: int, links: float) -> str:
    part = part_bytes(shape, size)
    full = part // shape.payload_bytes
    if not full:
        return f"{number(links)} x {time_text(port_ns(shape, part + shape.header_bytes))} (packet)"
    in_line = ceil(full / sharing_ports(shape))
    times = number(links) if in_line == 1 else f"({in_line} + {number(links - 1)})"
    return f"{times} x {time_text(port_ns(shape, shape.wire_bytes))} (packet)"


def _job(job: NamedJob, shape: Shape) -> Iterator[str]:
    steps = job.steps(shape)
    yield _row("step", time_text(steps.step_ns(shape)), f"of {job.name}, all of its parts:")
    for part, times in zip(steps.parts, steps.clean_parts(shape), strict=True):
        formula = _formula(part, dict(steps.axes), len(steps.hosts)) + _behind(times)
        yield f"  {_row(_words(part), time_text(times.duration_ns + times.behind_ns), formula)}"
    if any(exchange.collective.formula for exchange in steps.exchanges):
        yield f"  {_transfer(shape.family)}"


def _behind(times: PartTimes) -> str:
    """What links between switches that carry less than the hosts send add; empty where they carry it."""
    more = time_text(times.behind_ns)
    return f", and {more} more: links between switches take that much longer than ports" if times.behind_ns else ""


def _transfer(family: Family) -> str:
    """What collectives reckon with: the longest way, and rings each hop's own."""
    way = family.farthest
    each = f"each of {_COUNTS[len(way)]} switches" if len(way) > 1 else "the switch"
    slow = ", and a slower link counts by its time" if family.span(way) > len(way) + 1 else ""
    further = number(family.span(way) - 1)
    return f"to(x) = x / line rate + T/2 + {further} x packet: {each} receives a packet whole before it sends it{slow}"


def _words(part: StepAction) -> str:
    if isinstance(part, Compute):
        return "compute"
    return part.kind if isinstance(part, Exchange) else "together"


def _formula(part: StepAction, axes: dict[str, int], hosts: int) -> str:
    if isinstance(part, Compute):
        return "as written"
    if isinstance(part, Exchange):
        written = f"size = {format_size(part.terms.size_bytes)}, N = {axes.get(part.axis, hosts)}"
        written += f", N-{axes[part.local]} in place of N-1" if part.local in axes else ""
        return f"{part.collective.formula}, {written}" if part.collective.formula else written
    names = ", ".join(map(_words, part.parts))
    return f"at least the longest of {names}, and all their bytes at line rate"


def _row(name: str, value: str, formula: str) -> str:
    return f"{name:{_COLUMN - 1}} {value:{_COLUMN}}{formula}"
