"""Parts of a run: when each fault was active, and which steps and moments belong to it. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, NoReturn

from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.record import HistoryLine, RunRecord
from mrc_testbed.testbed.expect import Length, Moment, Span, Window
from mrc_testbed.testbed.scenario import FaultParameters, Occurrence
from mrc_testbed.testbed.scenario.faults import Traits

AFTERMATH_RTTS = 10
"""A fault's window ends this many base RTTs after the heal: until then its lost packets are still being noticed."""


AROUND_FAULTS = (Span.FAULT, Span.FAULTS, Span.CLEAN)
"""Windows that contain (or exclude) everything that overlaps a fault; all other windows contain what lies wholly
inside."""


class NoData(Exception):
    """The record lacks the data for a figure; the text says what is missing."""


class NoPart(NoData):
    """Nothing is missing: the host or flow simply has no such figure."""


class NotApplicable(NoData):
    """Nothing is missing: no run over this transport has such a figure."""


class KnownBetween(NoData):
    """Each value of a figure is known only to lie between `least` and `most`, which may be infinite. A bound that both
    ends meet, or neither, is decided all the same."""

    def __init__(self, reason: str, least: Sequence[float], most: Sequence[float]) -> None:
        super().__init__(reason)
        self.least, self.most = least, most


class Interval(NamedTuple):
    """A time span, both ends included; `end` is infinite if a fault was never healed."""

    begin: float
    end: float

    def holds(self, t_ns: float) -> bool:
        """True for a moment inside."""
        return self.begin <= t_ns <= self.end


@dataclass(frozen=True, slots=True)
class Outage:
    """An occurrence of a fault with the times of its injection and heal. `healed_ns` None: never healed."""

    occurrence: Occurrence
    invoked_ns: int
    injected_ns: int
    healed_ns: int | None

    @property
    def fault(self) -> str:
        """Name of the fault."""
        return self.occurrence.fault

    @property
    def number(self) -> int:
        """Number of the occurrence; files call it `cycle`."""
        return self.occurrence.number

    @property
    def kind(self) -> str:
        """Fault kind of this occurrence."""
        return self.occurrence.kind

    @property
    def target(self) -> str:
        """Its targets, with commas between them."""
        return ",".join(self.occurrence.targets)

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the links that lost packets because of it."""
        return self.occurrence.links

    def window(self, aftermath_ns: int) -> Interval:
        """From the first attempt until `aftermath_ns` after the heal."""
        return Interval(self.invoked_ns, inf if self.healed_ns is None else self.healed_ns + aftermath_ns)


@derived
def outages(record: RunRecord) -> list[Outage]:
    """Every occurrence of every fault that was injected, in order of time."""
    planned = {occurrence.key: occurrence for occurrence in record.occurrences}
    invoked: dict[tuple[str, int], int] = {}
    healed = _healed(record.history)
    found = []
    for line in record.history:
        key = (line.fault, line.number)
        if line.op == "inject" and line.type == "invoke":
            invoked.setdefault(key, line.t_ns)
        elif line.op == "inject" and line.type == "ok":
            occurrence = planned.get(key) or _from_history(line, record.scenario.fault_kinds[line.kind])
            found.append(Outage(occurrence, invoked.get(key, line.t_ns), line.t_ns, healed.get(key)))
    return found


def _from_history(line: HistoryLine, model: type[Traits]) -> Occurrence:
    """An occurrence as a history line repeats it, for a folder whose plan lacks it."""
    parameters = FaultParameters(sender=line.sender, peer=line.peer)
    targets = tuple(name.strip() for name in line.target.split(","))
    return Occurrence(line.fault, line.number, model, targets, 0, 0, line.links, parameters=parameters)


def _healed(history: Iterable[HistoryLine]) -> dict[tuple[str, int], int]:
    return {(line.fault, line.number): line.t_ns for line in history if line.op == "heal" and line.type == "ok"}


def aftermath_ns(record: RunRecord) -> int:
    """AFTERMATH_RTTS in ns; uses T if the base RTT was not measured."""
    return AFTERMATH_RTTS * (record.base_rtt_ns or record.scenario.shape().rtt_ns)


def fault_intervals(record: RunRecord, fault: str = "") -> list[Interval]:
    """When a fault (or any, without a name) was active, merged and in order. Raises NoData for a fault that was not
    injected."""
    if fault:
        _occurrences(record, fault)
    return _windows(record).get(fault, [])


@derived
def _windows(record: RunRecord) -> dict[str, list[Interval]]:
    """Intervals by fault name; of all faults under the empty name."""
    after = aftermath_ns(record)
    found: dict[str, list[Interval]] = {}
    for outage in outages(record):
        for name in ("", outage.fault):
            found.setdefault(name, []).append(outage.window(after))
    return {name: merged(intervals) for name, intervals in found.items()}


@derived
def fault_edges(record: RunRecord) -> list[float]:
    """When faults began, healed, and lost their last packets, in order."""
    after = aftermath_ns(record)
    found = [(*one.window(after), one.injected_ns, one.healed_ns) for one in outages(record)]
    return sorted(edge for edges in found for edge in edges if edge is not None)


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time as disjoint intervals."""
    result: list[Interval] = []
    for interval in sorted(intervals, key=lambda interval: interval.begin):
        if result and interval.begin <= result[-1].end:
            result[-1] = Interval(result[-1].begin, max(result[-1].end, interval.end))
        else:
            result.append(interval)
    return result


def in_words(window: Window) -> str:
    """The window as text for the end of a sentence."""
    return " outside all faults" if window.span is Span.CLEAN else f" {window}".rstrip()


def window_intervals(record: RunRecord, window: Window) -> list[Interval]:
    """The time of a window other than the whole run; of `clean`, the excluded time.

    Raises NoData where there is no such time: a fault that was not injected or healed, a workload that never began or
    ended before the window did, no time without faults.
    """
    if window.span in (Span.FAULT, Span.FAULTS):
        return fault_intervals(record, window.fault) or nothing("no fault was injected")
    begin, end = workload_ns(record)
    if window.span is Span.CLEAN:
        faults = fault_intervals(record)
        if any(fault.begin <= begin and fault.end >= end for fault in faults):
            raise NoData("the whole workload lies in the windows of faults")
        return faults
    return [_bounds(record, window, Interval(begin, end))]


def workload_ns(record: RunRecord) -> tuple[int, int]:
    """Begin of the workload, and its end or last sign of life. Raises NoData if it never began."""
    if record.start_ns is None:
        raise NoData("the workload did not begin")
    return record.start_ns, record.end_ns


def nothing(reason: str) -> NoReturn:
    """Raises NoData inside an expression."""
    raise NoData(reason)


def _bounds(record: RunRecord, window: Window, workload: Interval) -> Interval:
    if window.span is Span.BEFORE:
        found = _before(record, window, workload)
    elif window.span is Span.AFTER:
        found = _after(record, window, workload)
    else:
        begin = _time_of(record, window.begin)
        found = Interval(begin, _later(record, begin, window.length) if window.length else _time_of(record, window.end))
        if found.end > workload.end:
            raise NoData(f"the workload ended {(found.end - workload.end) / 1e9:.3g} s before {window}")
        if found.begin < workload.begin:
            raise NoData(f"the workload began {(workload.begin - found.begin) / 1e9:.3g} s after {window}")
    if found.end <= found.begin:
        raise NoData(f"there was no time {window}")
    return found


def _before(record: RunRecord, window: Window, workload: Interval) -> Interval:
    """From the end of the last fault window that was over by then."""
    end = _occurrences(record, window.end.fault if window.end else "")[0].invoked_ns
    over = [found.end for outage in outages(record) if (found := outage.window(aftermath_ns(record))).end <= end]
    return Interval(max([workload.begin, *over]), end)


def _after(record: RunRecord, window: Window, workload: Interval) -> Interval:
    """Until the next fault begins."""
    begin = _time_of(record, window.begin)
    ends = [outage.invoked_ns for outage in outages(record) if outage.invoked_ns > begin]
    if window.length:
        ends.append(round(_later(record, begin, window.length)))
    return Interval(begin, min([workload.end, *ends]))


def _time_of(record: RunRecord, moment: Moment | None) -> float:
    """A moment on CLOCK_MONOTONIC. Raises NoData if there was none."""
    if moment is None:
        raise ValueError("a window needs a begin and an end")
    if not moment.fault:
        return _later(record, workload_ns(record)[0], moment.offset)
    occurrences = _occurrences(record, moment.fault)
    if not moment.heals:
        return _later(record, occurrences[0].injected_ns, moment.offset)
    healed = [occurrence.healed_ns for occurrence in occurrences if occurrence.healed_ns is not None]
    if len(healed) < len(occurrences):
        raise NoData(f"fault {moment.fault} was not healed")
    return _later(record, max(healed), moment.offset)


def _occurrences(record: RunRecord, fault: str) -> list[Outage]:
    """The occurrences of one fault, at least one. Raises NoData."""
    return [outage for outage in outages(record) if outage.fault == fault] or nothing(f"fault {fault} was not injected")


def _later(record: RunRecord, t_ns: float, length: Length) -> float:
    if length.rtts and not record.base_rtt_ns:
        raise NoData("the base RTT was not measured in warm-up")
    return t_ns + length.in_ns(record.base_rtt_ns or 0)


def stretches(record: RunRecord, window: Window) -> Callable[[Interval], bool]:
    """A predicate: does this time span count for the window?

    It counts if it overlaps a fault's window, even briefly; for `clean` if it overlaps none; for windows of times if it
    lies wholly inside. Raises NoData as `window_intervals`.
    """
    if window.span is Span.RUN:
        return lambda _: True
    intervals = window_intervals(record, window)
    if window.span not in AROUND_FAULTS:
        return lambda part: any(within.begin <= part.begin and part.end <= within.end for within in intervals)
    wanted = window.span is not Span.CLEAN
    begins, ends = [part.begin for part in intervals], [part.end for part in intervals]

    def overlaps(part: Interval) -> bool:
        # They are ordered and disjoint: only the last one that begins in time can overlap it.
        last = bisect_right(begins, part.end) - 1
        return (last >= 0 and ends[last] >= part.begin) is wanted

    return overlaps


def moments(record: RunRecord, window: Window) -> Callable[[int], bool]:
    """A predicate: does this moment belong to the window? Raises NoData as `window_intervals`."""
    if window.span is Span.RUN:
        return lambda t_ns: True
    intervals = window_intervals(record, window)
    wanted = window.span is not Span.CLEAN
    return lambda t_ns: any(interval.holds(t_ns) for interval in intervals) is wanted
