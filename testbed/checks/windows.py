"""Parts of a run: when each fault was active, and which steps and moments belong to it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NoReturn

from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.intervals import EVER, Interval, TimeSet, between
from mrc_testbed.testbed.checks.left_behind import left_behind
from mrc_testbed.testbed.checks.record import HistoryLine, RunRecord
from mrc_testbed.testbed.expect import Length, Moment, Span, Window
from mrc_testbed.testbed.scenario import FaultParameters, Occurrence
from mrc_testbed.testbed.scenario.faults import Traits

AFTERMATH_RTTS = 10
"""A fault's window ends this many base RTTs after the heal: until then its lost packets are still being noticed."""


DURING = (Span.FAULT, Span.FAULTS)
"""Windows that contain everything that overlaps them; all others contain what lies wholly inside."""


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
    invoked, healed = _invoked(record.history), _healed(record.history)
    found = []
    for line in record.history:
        key = (line.fault, line.number)
        if line.op == "inject" and line.type == "ok":
            occurrence = planned.get(key) or _from_history(line, record.scenario.fault_kinds[line.kind])
            found.append(Outage(occurrence, invoked.get(key, line.t_ns), line.t_ns, healed.get(key)))
    return found


def _from_history(line: HistoryLine, model: type[Traits]) -> Occurrence:
    """An occurrence as a history line repeats it, for a folder whose plan lacks it."""
    parameters = FaultParameters(sender=line.sender, peer=line.peer)
    targets = tuple(name.strip() for name in line.target.split(","))
    return Occurrence(line.fault, line.number, model, targets, 0, 0, line.links, parameters=parameters)


def _invoked(history: Iterable[HistoryLine]) -> dict[tuple[str, int], int]:
    """When each was attempted first."""
    lines = [line for line in history if line.op == "inject" and line.type == "invoke"]
    return {(line.fault, line.number): line.t_ns for line in reversed(lines)}


def _healed(history: Iterable[HistoryLine]) -> dict[tuple[str, int], int]:
    return {(line.fault, line.number): line.t_ns for line in history if line.op == "heal" and line.type == "ok"}


def aftermath_ns(record: RunRecord) -> int:
    """AFTERMATH_RTTS in ns; uses T if the base RTT was not measured."""
    return AFTERMATH_RTTS * (record.base_rtt_ns or record.scenario.shape().rtt_ns)


@derived
def fault_windows(record: RunRecord) -> list[tuple[str, Interval]]:
    """Name and time of each occurrence: from the first attempt to inject it until AFTERMATH_RTTS after its heal,
    without end where one of the two failed."""
    after = aftermath_ns(record)
    found = {outage.occurrence.key: outage.window(after) for outage in outages(record)}
    for key, invoked_ns in _invoked(record.history).items():
        found.setdefault(key, Interval(invoked_ns, inf))
    return [(fault, time) for (fault, _), time in found.items()]


@derived
def fault_edges(record: RunRecord) -> list[float]:
    """When faults began, healed, and lost their last packets, in order."""
    found = [edge for _, time in fault_windows(record) for edge in time]
    for one in outages(record):
        found += (one.injected_ns, inf if one.healed_ns is None else one.healed_ns)
    return sorted(found)


def in_words(window: Window) -> str:
    """The window as text for the end of a sentence."""
    return " outside all faults" if window.span is Span.CLEAN else f" {window}".rstrip()


def window_times(record: RunRecord, window: Window) -> TimeSet:
    """The moments of a window: its sentence of docs/scenario.md, less the windows of faults that it does not name where
    it names one. Times that are written are taken as they are.

    Raises NoData where there is none, with the reason: a fault that was not injected or healed, a workload that never
    began or ended before the window did, another fault all the time.
    """
    known = _known_windows(record)
    if window not in known:
        said, others = _SENTENCES[window.span](record, window), _others(record, window)
        if not (found := said - TimeSet(others)):
            why = " outside the windows of other faults" if said and others else ""
            raise NoData(f"there was no time {window}{why}")
        known[window] = found
    return known[window]


@derived
def _known_windows(_record: RunRecord) -> dict[Window, TimeSet]:
    """Those that were asked for."""
    return {}


def _others(record: RunRecord, window: Window) -> list[Interval]:
    """Times of the faults that a window does not name, where it names one."""
    named = {moment.fault for moment in (window.begin, window.end) if moment and moment.fault}
    return [time for fault, time in fault_windows(record) if named and fault not in named]


def _during(record: RunRecord, window: Window) -> TimeSet:
    if window.fault:
        occurrences(record, window.fault)
    found = TimeSet(time for fault, time in fault_windows(record) if window.fault in ("", fault))
    return found or nothing("no fault was injected")


def _clean(record: RunRecord, _: Window) -> TimeSet:
    workload, faults = Interval(*workload_ns(record)), TimeSet(time for _, time in fault_windows(record))
    clean = ~faults - left_behind(record, faults, aftermath_ns(record))
    if not clean.meets(workload):
        left = " and what they left behind" if (~faults).meets(workload) else ""
        raise NoData(f"the whole workload lies in the windows of faults{left}")
    return clean


def _from(record: RunRecord, window: Window) -> TimeSet:
    workload, begin = Interval(*workload_ns(record)), _time_of(record, window.begin)
    end = _later(record, begin, window.length) if window.length else _time_of(record, window.end)
    if end > workload.end:
        raise NoData(f"the workload ended {(end - workload.end) / 1e9:.3g} s before {window}")
    if begin < workload.begin:
        raise NoData(f"the workload began {(workload.begin - begin) / 1e9:.3g} s after {window}")
    return between(begin, end)


def _after(record: RunRecord, window: Window) -> TimeSet:
    (_, end), begin = workload_ns(record), _time_of(record, window.begin)
    healed = _time_of(record, window.begin and replace(window.begin, offset=Length()))
    later = [time.begin for time in _others(record, window) if time.begin >= min(begin, healed)]
    return between(begin, min([end, *later, _later(record, begin, window.length) if window.length else inf]))


def _before(record: RunRecord, window: Window) -> TimeSet:
    (start, _), end = workload_ns(record), occurrences(record, window.end.fault if window.end else "")[0].invoked_ns
    return between(max([start, *(time.end for time in _others(record, window) if time.begin < end)]), end)


_SENTENCES: Mapping[Span, Callable[[RunRecord, Window], TimeSet]] = {
    Span.RUN: lambda *_: EVER,
    Span.FAULT: _during,
    Span.FAULTS: _during,
    Span.CLEAN: _clean,
    Span.TIMES: _from,
    Span.AFTER: _after,
    Span.BEFORE: _before,
}


def workload_ns(record: RunRecord) -> tuple[int, int]:
    """Begin of the workload, and its end or last sign of life. Raises NoData if it never began."""
    if record.start_ns is None:
        raise NoData("the workload did not begin")
    return record.start_ns, record.end_ns


def nothing(reason: str) -> NoReturn:
    """Raises NoData inside an expression."""
    raise NoData(reason)


def _time_of(record: RunRecord, moment: Moment | None) -> float:
    """A moment on CLOCK_MONOTONIC. Raises NoData if there was none."""
    if moment is None:
        raise ValueError("a window needs a begin and an end")
    if not moment.fault:
        return _later(record, workload_ns(record)[0], moment.offset)
    done = occurrences(record, moment.fault)
    if not moment.heals:
        return _later(record, done[0].injected_ns, moment.offset)
    healed = [occurrence.healed_ns for occurrence in done if occurrence.healed_ns is not None]
    if len(healed) < len(done):
        raise NoData(f"fault {moment.fault} was not healed")
    return _later(record, max(healed), moment.offset)


def occurrences(record: RunRecord, fault: str) -> list[Outage]:
    """Occurrences of one fault, or of all without a name, at least one. Raises NoData."""
    why = f"fault {fault} was not injected" if fault else "no fault was injected"
    return [outage for outage in outages(record) if fault in ("", outage.fault)] or nothing(why)


def _later(record: RunRecord, t_ns: float, length: Length) -> float:
    if length.rtts and not record.base_rtt_ns:
        raise NoData("the base RTT was not measured in warm-up")
    return t_ns + round(length.in_ns(record.base_rtt_ns or 0))


def stretches(record: RunRecord, window: Window) -> Callable[[Interval], bool]:
    """A predicate: does this time span count for the window? It counts if it overlaps a fault's window, even briefly;
    for all other windows if it lies wholly inside. Raises NoData as `window_times`."""
    times = window_times(record, window)
    return times.meets if window.span in DURING else times.covers


def moments(record: RunRecord, window: Window) -> Callable[[float], bool]:
    """A predicate: does this moment belong to the window? Raises NoData as `window_times`."""
    return window_times(record, window).holds
