"""The sentences of docs/scenario.md, each asked of each moment, a millisecond after the other: slow, and by itself.

    >>> from tests.windows.oracle import disagreement
    >>> disagreement(seed=1)  # empty: both say the same of every moment
    ''

`python -m tests.windows.oracle 10000` tries the first 10 000 seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import NoData, moments, stretches
from mrc_testbed.testbed.evidence.events import DENIED, GOOD
from mrc_testbed.testbed.expect import Length, Moment, Span, Window
from tests.windows.schedules import LONG_MS, DrawnRun, drawn_run

RTTS_LONGER = 10
"""How long a fault's window is after its heal."""
NEVER = 10**18


class Unknown(Exception):
    """The sentence is of something that did not happen."""


class Truth:
    """A run, asked moment by moment."""

    def __init__(self, record: RunRecord) -> None:
        self.rtt = record.environment["base_rtt_ns"]
        self.start = next(line.t_ns for line in record.history if line.op == "workload")
        self.end = next(line.t_ns for line in record.history if (line.op, line.type) == ("workload", "ok"))
        told = {(line.fault, line.number, line.op, line.type): line.t_ns for line in reversed(record.history)}
        self.tried = {key[:2]: t for key, t in told.items() if key[2:] == ("inject", "invoke")}
        self.placed = {key[:2]: t for key, t in told.items() if key[2:] == ("inject", "ok")}
        self.healed = {key[:2]: t for key, t in told.items() if key[2:] == ("heal", "ok")}
        self.record = record

    def over(self, key: tuple[str, int]) -> int:
        """When the window of an occurrence ends."""
        return self.healed[key] + RTTS_LONGER * self.rtt if key in self.healed and key in self.placed else NEVER

    def on(self, t: int, wanted: Callable[[str], bool]) -> bool:
        """Whether a moment is in the window of one of these faults."""
        return any(begin <= t <= self.over(key) for key, begin in self.tried.items() if wanted(key[0]))

    def first(self, fault: str) -> int:
        """When its first injection was in place."""
        return min((t for key, t in self.placed.items() if key[0] == fault), default=0) or _unknown()

    def attempted(self, fault: str) -> int:
        """When the first one that succeeded was attempted."""
        first = self.first(fault)
        return next(self.tried[key] for key, t in self.placed.items() if key[0] == fault and t == first)

    def last_heal(self, fault: str) -> int:
        """When its last occurrence was healed."""
        mine = [key for key in self.placed if key[0] == fault]
        if not mine or any(key not in self.healed for key in mine):
            raise Unknown
        return max(self.healed[key] for key in mine)

    def at(self, moment: Moment) -> int:
        """A moment of a sentence."""
        known = self.start if not moment.fault else (self.last_heal if moment.heals else self.first)(moment.fault)
        return known + self.long(moment.offset)

    def long(self, length: Length) -> int:
        """In ns."""
        return length.ns + round(length.rtts * self.rtt)

    def left_behind(self, t: int) -> bool:
        """Whether something was out of use because of a fault, or is back for less than ten round trips."""
        late = RTTS_LONGER * self.rtt
        if any(self._touched(begin, end) and begin <= t <= end + late for begin, end in self._stalls()):
            return True
        changes = self.record.ev_changes
        for place, change in enumerate(changes):
            tie = min(self._ties(change.t_ns, change.new, change.first_lost_tx_ns), default=NEVER)
            later = (one.t_ns for one in changes[place + 1 :] if one.uplink == change.uplink and one.new == GOOD)
            if tie <= t <= next(later, NEVER) + late:
                return True
        return False

    def _ties(self, t: int, new: str, lost: int) -> Iterator[int]:
        """Moments that tie a path that went out of use to a fault."""
        if new != GOOD:
            if self.on(lost, lambda _: True):
                yield lost
            elif self.on(t, lambda _: True) or (new == DENIED and t >= min(self.tried.values(), default=NEVER)):
                yield t

    def _stalls(self) -> Iterator[tuple[int, int]]:
        for one in self.record.stalls:
            yield one.begin_ns, max(one.begin_ns, self.end) if one.end_ns is None else one.end_ns

    def _touched(self, begin: int, end: int) -> bool:
        return any(tried <= end and begin <= self.over(key) for key, tried in self.tried.items())


def belongs(truth: Truth, window: Window, t: int) -> bool:
    """Whether a moment belongs to a window, by its sentence. Raises Unknown."""
    named = {moment.fault for moment in (window.begin, window.end) if moment and moment.fault}
    if named and truth.on(t, lambda fault: fault not in named):
        return False  # no window but `during` contains a moment of another fault
    return _SENTENCES[window.span](truth, window, t)


def _during(truth: Truth, window: Window, t: int) -> bool:
    if window.fault:
        truth.first(window.fault)
    return truth.on(t, lambda fault: window.fault in ("", fault))


def _clean(truth: Truth, _: Window, t: int) -> bool:
    return not truth.on(t, lambda _: True) and not truth.left_behind(t)


def _from(truth: Truth, window: Window, t: int) -> bool:
    assert window.begin is not None
    begin = truth.at(window.begin)
    end = begin + truth.long(window.length) if window.length else truth.at(window.end or Moment())
    if begin < truth.start or truth.end < end:
        raise Unknown
    return begin < end and begin <= t <= end


def _after(truth: Truth, window: Window, t: int) -> bool:
    assert window.begin is not None
    fault, begin = window.begin.fault, truth.at(window.begin)
    since = min(begin, truth.last_heal(fault))
    if any(key[0] != fault and since <= tried <= t for key, tried in truth.tried.items()):
        return False  # until the next fault begins
    end = min(truth.end, begin + truth.long(window.length)) if window.length else truth.end
    return begin < end and begin <= t <= end


def _before(truth: Truth, window: Window, t: int) -> bool:
    assert window.end is not None
    fault = window.end.fault
    end = truth.attempted(fault)
    over = [truth.over(key) for key, tried in truth.tried.items() if key[0] != fault and tried < end]
    return max([truth.start, *over]) < end and max([truth.start, *over]) <= t <= end


_SENTENCES: dict[Span, Callable[[Truth, Window, int], bool]] = {
    Span.FAULT: _during,
    Span.FAULTS: _during,
    Span.CLEAN: _clean,
    Span.TIMES: _from,
    Span.AFTER: _after,
    Span.BEFORE: _before,
}


def disagreement(seed: int) -> str:
    """Where the windows of a random run are not what their sentences say; empty: nowhere."""
    drawn = drawn_run(seed)
    truth = Truth(drawn.record)
    for window in drawn.windows:
        if found := _differs(drawn, truth, window):
            return f"seed {seed}, {window}: {found}"
    return ""


def _differs(drawn: DrawnRun, truth: Truth, window: Window) -> str:
    asked = _asked(drawn, truth)
    try:
        wanted = {t: belongs(truth, window, t) for t in asked}
    except Unknown:
        wanted = {}
    try:
        holds, counts = moments(drawn.record, window), stretches(drawn.record, window)
    except NoData as reason:
        counted = range(truth.start, truth.end + 1) if window.span is Span.CLEAN else asked
        inside = [t for t in asked if wanted.get(t) and t in counted]
        return f"no time ({reason}), but {inside[0]} belongs to it" if inside else ""
    if not any(wanted.values()):
        return "there is no such time"
    wrong = next((t for t in asked if holds(t) is not wanted[t]), None)
    if wrong is not None:
        return f"{wrong} is {'no' if wanted[wrong] else 'a'} moment of it"
    every = any if window.span in (Span.FAULT, Span.FAULTS) else all
    for begin, end in zip(asked, asked[7::3], strict=False):
        if counts(Interval(begin, end)) is not every(wanted[t] for t in asked if begin <= t <= end):
            return f"{begin} to {end} is {'in' if counts(Interval(begin, end)) else 'not in'} it"
    return ""


def _asked(drawn: DrawnRun, truth: Truth) -> list[int]:
    """Every millisecond as written, and a nanosecond on both sides of what happens."""
    edges = {*truth.tried.values(), *truth.placed.values(), *truth.healed.values(), truth.start, truth.end}
    edges |= {t + RTTS_LONGER * truth.rtt for t in truth.healed.values()}
    around = {edge + beside for edge in edges for beside in (-1, 0, 1)}
    return sorted(around | {truth.start + n * drawn.ms for n in range(-30, LONG_MS + 60)})


def _unknown() -> int:
    raise Unknown


def main(seeds: int) -> int:
    """Exit status 0: none disagrees."""
    wrong = [found for seed in range(seeds) if (found := disagreement(seed))]
    print("\n".join([*wrong[:20], f"{seeds} schedules: {len(wrong)} disagree"]))  # noqa: T201
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
