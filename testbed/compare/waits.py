"""What runs say of recovery: how long senders needed to leave a path, and how long QPs stalled, in each occurrence
of a fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from mrc_testbed.hosts.mrc.timing import FLOOR_NS
from mrc_testbed.testbed.checks.left_behind import stall_span
from mrc_testbed.testbed.checks.outage import stalls
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.recovery import recoveries
from mrc_testbed.testbed.checks.statistics import statistic
from mrc_testbed.testbed.checks.windows import NoData, Outage, aftermath_ns, outages
from mrc_testbed.testbed.compare.figures import asked
from mrc_testbed.testbed.compare.groups import RunGroup, grouped
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.transports import AS_LONG
from mrc_testbed.testbed.expect.vocabulary import DEFAULT_UNITS, Dimension
from mrc_testbed.testbed.planner.arithmetic.bridge import FaultWait, MeasuredWaits
from mrc_testbed.testbed.report.transport_words import software_timers, time_words, transport_words
from mrc_testbed.testbed.scenario import Scenario

RECOVERY, STALL = "recovery", "stall"
_TIMEOUT_T = 4
"""MRC's own timeout, in T."""


class _Seen(NamedTuple):
    """A wait in one occurrence of a fault, in one run."""

    what: str
    record: RunRecord
    outage: Outage
    wait: FaultWait


def waits_of(runs: Sequence[ComparedRun]) -> list[MeasuredWaits]:
    """Of each transport with its settings: stalls, and where its hosts choose paths recovery before that; nothing where
    nobody waited. Runs with the same settings are repeats and count together."""
    groups = grouped(runs).groups
    kinds = {True: (RECOVERY, STALL), False: (STALL,)}
    asked = ((group, what) for group in groups for what in kinds[_scenario(group).transport.has_paths])
    found = (_waits(group, what, _name(group, groups)) for group, what in asked)
    return [each for each in found if each]


def _name(group: RunGroup, groups: Sequence[RunGroup]) -> str:
    """The transport; where others have the same one, with the scenario and variant in which they differ, or the
    group's label."""
    mine = transport_words(_scenario(group))
    alike = [each for each in groups if transport_words(_scenario(each)) == mine]
    several = len({_scenario(each).name for each in alike}) > 1
    details = {_detail(_scenario(each), several) for each in alike}
    detail = _detail(_scenario(group), several) if len(details) == len(alike) else group.label
    return f"{mine} ({detail})" if len(alike) > 1 else mine


def _scenario(group: RunGroup) -> Scenario:
    return group.runs[0].record.scenario


def _detail(scenario: Scenario, named: bool) -> str:
    return ", ".join(filter(None, (scenario.name if named else "", scenario.variant)))


def _waits(group: RunGroup, what: str, name: str) -> MeasuredWaits | None:
    records = [run.record for run in group.runs]
    seen = [each for record in records for each in _seen(record, what)]
    if not seen:
        return None
    return MeasuredWaits(
        name=name,
        what=what,
        figure=f"{what}.p100",
        runs=tuple(record.folder.name for record in records),
        routing=_scenario(group).routing.value,
        waits=tuple(each.wait for each in seen),
        occurrences=sum(len(outages(record)) for record in records),
        in_seconds=_in_seconds(seen),
    )


def _seen(record: RunRecord, what: str) -> Iterator[_Seen]:
    """The wait in each occurrence in which there was one. The base RTT is that of warm-up."""
    usual = asked(f"{STALL}.p100 clean", record, DEFAULT_UNITS[Dimension.TIME]).value if what == STALL else 0.0
    usual_s = usual or 0.0
    for outage in outages(record):
        mine = (one for one in recoveries(record) if (one.fault, one.number) == outage.occurrence.key)
        found = [one.duration_ns / 1e9 for one in mine] if what == RECOVERY else _stalls_s(record, outage)
        longest = max(found, default=0.0)
        least = statistic(found, "p50") if found and what == RECOVERY else longest
        # A QP may stall that long without any fault, as while many of a host begin at once.
        if longest > usual_s and record.base_rtt_ns:
            rtt_s, speed = record.base_rtt_ns / 1e9, record.scenario.speed
            yield _Seen(what, record, outage, FaultWait(least or longest, longest, rtt_s, speed))


def _stalls_s(record: RunRecord, outage: Outage) -> list[float]:
    """Whole, as `stall` has them around faults; one that several occurrences may have caused counts in each."""
    window = outage.window(aftermath_ns(record))
    try:
        spans = [stall_span(record, stall) for stall in stalls(record)]
    except NoData:
        return []
    return [(span.end - span.begin) / 1e9 for span in spans if window.meets(span)]


def _in_seconds(seen: Sequence[_Seen]) -> str:
    """What in these waits goes by seconds and not by round trips; empty if nothing does."""
    scenario = seen[0].record.scenario
    timers = [f"{timer.what} of {time_words(timer.ns)}" for timer in software_timers(scenario)]
    timers += _own_timers(scenario) if scenario.transport.has_paths else []
    if not scenario.transport.has_paths or any(map(_until_healed, seen)):
        timers.append(f"how long faults last, {_lengths(seen)} here")
    return f"set in seconds: {', and '.join(timers)}" if timers else ""


def _until_healed(seen: _Seen) -> bool:
    """Whether a stall lasted about as long as this occurrence of the fault, so that only the heal ended it."""
    one = seen.outage
    lasted_ns = inf if one.healed_ns is None else one.healed_ns - one.injected_ns
    return seen.what == STALL and seen.wait.longest_s * 1e9 >= AS_LONG * lasted_ns


def _own_timers(scenario: Scenario) -> list[str]:
    """Timers of MRC that do not count in T: those that the scenario sets, and the least where T is that short."""
    written = scenario.as_written
    endpoint = written.endpoint
    given = {"endpoint.timeout": endpoint.timeout_ns, "endpoint.reorder_time": endpoint.reorder_ns}
    timers = [f"{key} of {time_words(ns)}" for key, ns in given.items() if ns]
    floor_ns = FLOOR_NS // written.swift
    short = _TIMEOUT_T * written.fabric.rtt_ns < floor_ns and endpoint.timeout_ns is None
    return [*timers, f"MRC's least timeout of {time_words(floor_ns)}"] if short else timers


def _lengths(seen: Sequence[_Seen]) -> str:
    """Of all occurrences of these runs, as written: `800 ms to 3 s`."""
    healed = [
        (outage.healed_ns - outage.injected_ns) * each.record.scenario.speed
        for each in seen
        for outage in outages(each.record)
        if outage.healed_ns is not None
    ]
    low, high = (time_words(ns) for ns in (min(healed, default=0), max(healed, default=0)))
    return low if low == high else f"{low} to {high}"
