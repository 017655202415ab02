"""What runs say of recovery: how long senders needed to leave a path, and how long QPs stood still, in each fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hosts.core.timing import FLOOR_NS
from testbed.checks.figure import evaluate_figure
from testbed.checks.record import RunRecord
from testbed.checks.windows import Outage, outages
from testbed.compare.groups import RunGroup, grouped
from testbed.compare.runs import ComparedRun
from testbed.compare.transports import waited_for_the_heal
from testbed.expect import parse_figure
from testbed.expect.vocabulary import DEFAULT_UNITS, Dimension
from testbed.planner.bridge import FaultWait, MeasuredWaits
from testbed.report.transport_words import chooses_paths, software_timers, time_words, transport_words
from testbed.scenario import Scenario

RECOVERY, STALL = "recovery", "stall"
_TIMEOUT_T = 4
"""MRC's own timeout, in T."""


class _Seen(NamedTuple):
    """A wait in one fault of one run."""

    what: str
    record: RunRecord
    fault: str
    wait: FaultWait


def waits_of(runs: Sequence[ComparedRun]) -> list[MeasuredWaits]:
    """Of each transport with its settings: stalls, and where its hosts choose paths recovery before that; nothing where
    nobody waited. Runs with the same settings are repeats and count together."""
    groups = grouped(runs).groups
    asked = ((group, what) for group in groups for what in _kinds(_scenario(group)))
    found = (_waits(group, what, _name(group, groups)) for group, what in asked)
    return [each for each in found if each]


def _kinds(scenario: Scenario) -> tuple[str, ...]:
    return (RECOVERY, STALL) if chooses_paths(scenario) else (STALL,)


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
        faults=sum(len(_faults(record)) for record in records),
        in_seconds=_in_seconds(seen),
    )


def _faults(record: RunRecord) -> list[str]:
    return list(dict.fromkeys(outage.fault for outage in outages(record)))


def _seen(record: RunRecord, what: str) -> Iterator[_Seen]:
    """The wait in each fault in which there was one. The base RTT is that of warm-up."""
    usual = (_asked(record, f"{what}.p100 clean") or 0.0) if what == STALL else 0.0
    for fault in _faults(record):
        longest = _asked(record, f"{what}.p100 during {fault}") or 0.0
        least = _asked(record, f"{what}.p50 during {fault}") if what == RECOVERY else longest
        # A QP may stand still that long without any fault, as while many of a host begin at once.
        if longest > usual and record.base_rtt_ns:
            yield _Seen(what, record, fault, FaultWait(least or longest, longest, record.base_rtt_ns / 1e9))


def _asked(record: RunRecord, text: str) -> float | None:
    """In s."""
    return evaluate_figure(record, parse_figure(text), DEFAULT_UNITS[Dimension.TIME]).value


def _in_seconds(seen: Sequence[_Seen]) -> str:
    """What in these waits goes by seconds and not by round trips; empty if nothing does."""
    scenario = seen[0].record.scenario
    timers = [f"{timer.what} of {time_words(timer.ns)}" for timer in software_timers(scenario)]
    timers += _own_timers(scenario) if chooses_paths(scenario) else []
    if not chooses_paths(scenario) or any(map(_until_healed, seen)):
        timers.append(f"how long faults last, {_lengths([one for each in seen for one in outages(each.record)])} here")
    return f"set in seconds: {', and '.join(timers)}" if timers else ""


def _until_healed(seen: _Seen) -> bool:
    return seen.what == STALL and waited_for_the_heal(seen.record, round(seen.wait.longest_s * 1e9), seen.fault)


def _own_timers(scenario: Scenario) -> list[str]:
    """Timers of MRC that do not count in T: those that the scenario sets, and the least where T is that short."""
    endpoint = scenario.endpoint
    given = {"endpoint.timeout": endpoint.timeout_ns, "endpoint.reorder_time": endpoint.reorder_ns}
    timers = [f"{key} of {time_words(ns)}" for key, ns in given.items() if ns]
    floor_ns = scenario.shape().least_ns(FLOOR_NS)
    short = _TIMEOUT_T * scenario.fabric.rtt_ns < floor_ns and endpoint.timeout_ns is None
    return [*timers, f"MRC's least timeout of {time_words(floor_ns)}"] if short else timers


def _lengths(seen: Sequence[Outage]) -> str:
    """`800 ms to 3 s`."""
    healed = [outage.healed_ns - outage.injected_ns for outage in seen if outage.healed_ns is not None]
    low, high = (time_words(ns) for ns in (min(healed, default=0), max(healed, default=0)))
    return low if low == high else f"{low} to {high}"
