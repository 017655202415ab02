"""Runs over several transports, or variants, side by side: a row a group, and for each fault its longest stall.

Seconds and round trips T are shown side by side. What it would be on a fabric of 13 us is said by the clock that
decided it: MRC's by T, a baseline's in seconds, because its timers are software's. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from mrc_testbed.hosts.common.stalls import least_stall_ns
from mrc_testbed.testbed.checks.left_behind import stall_span
from mrc_testbed.testbed.checks.outage import death_words, stalls
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import amount, number
from mrc_testbed.testbed.checks.statistics import gathered
from mrc_testbed.testbed.checks.windows import Outage, aftermath_ns, outages
from mrc_testbed.testbed.compare.comparison import Comparison, ComparisonColumn
from mrc_testbed.testbed.compare.figures import asked
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.words import part_words
from mrc_testbed.testbed.expect import parse_figure
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.report.transport_words import routing_words, time_words
from mrc_testbed.testbed.report.trust import REFERENCE_RTT_NS, Bias, biases
from mrc_testbed.testbed.scenario.model.matrix import VARIANT

MOST_READ = 200
"""Runs, as of a sweep, whose records are read for the stalls in each fault: a tenth of a second and a few MB each."""
UNKNOWN, NEVER = "?", "-"
_KEPT, _WASTED = "goodput during faults / clean", "wasted"
AS_LONG = 0.9
"""Of two times the shorter, as a part of the longer, from which on they are taken for the same: a stall that lasted
this part of its fault was as long as the fault, and not as long as the transport takes."""


@dataclass(frozen=True, slots=True)
class StoodStill:
    """The longest stall of a group in a fault, or in the whole run. `ns` None: unknown, for the reason `why`; 0: none
    as long as `least_ns`, from which on endpoints report any. `elsewhere`: on a fabric of 13 us, in words. `died`: the
    job did in that run, and the stall ended with it. `known`: how many runs count, of `runs`."""

    ns: float | None
    rtt_ns: int
    least_ns: int
    elsewhere: str = ""
    why: str = ""
    died: bool = False
    known: int = 1
    runs: int = 1

    @property
    def seconds(self) -> str:
        """`4.64 s`, `under 80 ms`; of some of the repeats alone `4.64 s (2 of 3 runs)`."""
        if self.ns is None:
            return UNKNOWN
        under = "" if self.ns else "under "
        return f"{under}{amount(Dimension.TIME, self.ns or self.least_ns)}{part_words(self.known, self.runs)}"

    @property
    def in_rtts(self) -> str:
        """`116 T`; nothing without a T."""
        if self.ns is None or not self.rtt_ns:
            return UNKNOWN if self.ns is None else ""
        return f"{'' if self.ns else 'under '}{number((self.ns or self.least_ns) / self.rtt_ns)} T"


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A group in the table. `routing`: who finds its paths. `first`, `worst`: step times or goodput, as the heads of
    the table say; `job`: what became of it."""

    label: str
    transport: str
    routing: str
    first: str
    worst: str
    stall: StoodStill
    kept: str
    wasted: str
    job: str


@dataclass(frozen=True, slots=True)
class FaultOutage:
    """One fault and the longest stall of each group in it, in the order of the groups. `lasted_ns`: its longest
    occurrence in all runs, `shortest_ns`: the shortest; None if it was never healed."""

    name: str
    what: str
    lasted_ns: int | None
    shortest_ns: int | None
    groups: tuple[tuple[str, StoodStill], ...]

    @property
    def lasted(self) -> str:
        """`1 s`; `100 ms to 3 s` where occurrences differ by more than runs do."""
        if self.lasted_ns is None or self.shortest_ns is None:
            return "never healed"
        longest = amount(Dimension.TIME, self.lasted_ns)
        alike = self.shortest_ns >= AS_LONG * self.lasted_ns
        return longest if alike else f"{amount(Dimension.TIME, self.shortest_ns)} to {longest}"


def has_records(comparison: Comparison) -> bool:
    """Whether the records of all runs can be read."""
    return len(comparison.runs) <= MOST_READ and all(run.has_record for run in comparison.runs)


def side_by_side(comparison: Comparison) -> bool:
    """Whether groups are variants, or speak or are routed differently, and their records can all be read."""
    if not has_records(comparison):
        return False
    spoken = {(run.spoken, routing_words(run.record.scenario)) for run in comparison.runs}
    return len(spoken) > 1 or any(axis.key == VARIANT for axis in comparison.axes)


def trust(comparison: Comparison) -> list[Bias]:
    """How far to trust the comparison, in numbers of the base's fabric."""
    base = comparison.columns[comparison.base].runs[0].record.scenario
    others = (run.record.scenario for column in comparison.columns for run in column.runs[:1])
    return biases([base, *others])


def heads(comparison: Comparison) -> tuple[str, ...]:
    """Of the table."""
    return ("", *_speed(comparison).heads, "longest stall", "in T", "goodput kept", "wasted", "job")


def variant_rows(comparison: Comparison) -> list[VariantRow]:
    """A row a group, in the order of the columns."""
    return [_row(comparison, column) for column in comparison.columns]


def fault_outages(comparison: Comparison) -> list[FaultOutage]:
    """Every fault of the scenario that some run injected."""
    found = gathered((outage.fault, outage) for run in comparison.runs for outage in outages(run.record))
    return [
        FaultOutage(
            name,
            f"{occurrences[0].kind} {occurrences[0].target}",
            max(_lengths_ns(occurrences), default=None),
            min(_lengths_ns(occurrences), default=None),
            tuple((column.short, stood_still(column, name)) for column in comparison.columns),
        )
        for name, occurrences in found.items()
    ]


def _lengths_ns(occurrences: Iterable[Outage]) -> list[int]:
    return [one.healed_ns - one.injected_ns for one in occurrences if one.healed_ns is not None]


class _Speed(NamedTuple):
    """What the first two columns say, and the figures they are of."""

    heads: tuple[str, str]
    first: str
    worst: str
    worst_of_all: bool


_OF_STEPS = _Speed(
    ("step, clean median", "worst step in faults"), "step_time.median clean", "step_time.p100 during faults", True
)
_OF_PROGRAMS = _Speed(("longest program", "programs failed"), "program_time.p100", "programs_failed", True)
_OF_FLOWS = _Speed(("goodput, clean", "slowest flow"), "goodput clean", "flow_goodput.min", False)


def _speed(comparison: Comparison) -> _Speed:
    jobs = [job for run in comparison.runs for job in run.record.scenario.job.jobs]
    if any(job.entry.has_steps for job in jobs):
        return _OF_STEPS
    return _OF_PROGRAMS if jobs else _OF_FLOWS


def _row(comparison: Comparison, column: ComparisonColumn) -> VariantRow:
    speed = _speed(comparison)
    return VariantRow(
        column.label,
        column.runs[0].spoken,
        routing_words(column.runs[0].record.scenario),
        _shown(column, speed.first),
        _shown(column, speed.worst, max if speed.worst_of_all else fmean),
        stood_still(column),
        _shown(column, _KEPT),
        _shown(column, _WASTED),
        _job(column),
    )


def _shown(column: ComparisonColumn, key: str, of: Callable[[list[float]], float] = fmean) -> str:
    """A figure of the runs that have it, as one number; behind it how many have it."""
    values = [value for run in column.counted if (value := run.figures.values.get(key)) is not None]
    if not values:
        return NEVER
    percent = 100 * of(values)
    shares = f"{percent:.{0 if abs(percent) >= 10 else 1}f} %"
    shown = shares if key in (_KEPT, _WASTED) else amount(parse_figure(key).metric.dimension, of(values))
    return shown + part_words(len(values), len(column.counted))


def _job(column: ComparisonColumn) -> str:
    """`lives`, `died at 3.79 s: QP h0->h1: retry exceeded`; of several runs how many."""
    dead = [run for run in column.counted if run.record.death]
    stuck = [run for run in column.counted if not run.record.death and not run.record.workload_done]
    if len(column.counted) == 1:
        died = death_words(dead[0].record).removeprefix("job ") if dead else ""
        return died or ("did not finish" if stuck else "lives")
    told = [(len(dead), "died"), (len(stuck), "did not finish")]
    words = [f"{count} of {len(column.counted)} {what}" for count, what in told if count]
    return ", ".join(words) or ("lives" if column.counted else UNKNOWN)


def stood_still(column: ComparisonColumn, fault: str = "") -> StoodStill:
    """The longest stall of a group's runs that count, in a fault or in the whole run."""
    text = f"stall.p100 during {fault}" if fault else "stall.p100"
    scenario = column.runs[0].record.scenario
    rtt_ns = scenario.fabric.rtt_ns
    least_ns = least_stall_ns(rtt_ns, scenario.swift)
    seen = [(asked(text, run.record), run) for run in column.counted]
    known = [(found.value, run) for found, run in seen if found.value is not None]
    if not known:
        return StoodStill(None, rtt_ns, least_ns, UNKNOWN, seen[0][0].why if seen else "no run of it counts")
    ns, run = max(known, key=lambda one: one[0])
    elsewhere, died = _elsewhere(run, ns, rtt_ns, least_ns, fault), _died_in(run.record, fault)
    return StoodStill(ns, rtt_ns, least_ns, elsewhere, died=died, known=len(known), runs=len(seen))


def _died_in(record: RunRecord, fault: str) -> bool:
    died, after = [end.error.t_ns for end in record.ends.values() if end.error], aftermath_ns(record)
    times = [one.window(after) for one in outages(record) if one.fault == fault]
    return any(not fault or any(time.holds(t_ns) for time in times) for t_ns in died)


def _elsewhere(run: ComparedRun, ns: float, rtt_ns: int, least_ns: int, fault: str) -> str:
    """On a fabric of 13 us: MRC in as many T, unless it waited for the fault to end; others in seconds as they are, or
    would be had the run no scale."""
    under = "" if ns else "under "
    if run.record.scenario.transport.has_paths and rtt_ns and not waited_for_the_heal(run.record, ns, fault):
        return f"{under}{time_words((ns or least_ns) / rtt_ns * REFERENCE_RTT_NS)}"
    return f"{under}{amount(Dimension.TIME, (ns or least_ns) * run.record.scenario.speed)}"


def waited_for_the_heal(record: RunRecord, ns: float, fault: str = "") -> bool:
    """Whether a stall of `ns` lasted about as long as an occurrence of the fault (or of any, without a name) during
    which it was, so that only the heal ended it. Raises NoData if nobody watched for stalls."""
    after = aftermath_ns(record)
    spans = [span for span in (stall_span(record, stall) for stall in stalls(record)) if span.end - span.begin >= ns]
    return any(
        ns >= AS_LONG * (one.healed_ns - one.injected_ns) and any(one.window(after).meets(span) for span in spans)
        for one in outages(record)
        if one.healed_ns is not None and fault in ("", one.fault)
    )
