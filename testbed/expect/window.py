"""The window of an expectation: which part of the measured run it looks at. Pure.

during cut            during faults         clean
from 4s to 6s         from cut + 1s to cut + 3s          from cut heals for 50 rtt
after cut heals       after cut heals + 10 rtt for 2s    before cut
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from mrc_testbed.testbed.expect.scanner import Scanner, plain
from mrc_testbed.testbed.expect.scope import EVERYBODY, Scope
from mrc_testbed.testbed.expect.vocabulary import RTT, UNITS, Dimension, Metric, Windows

CLEAN = "clean"
FAULTS = "faults"
FAULT = "fault"
HEALS = "heals"
BEGINNINGS = ("during", CLEAN, "from", "after", "before")
"""Words that begin a window."""
FORMS = "`during NAME`, `during faults`, `clean`, `from 4s to 6s`, `after NAME heals` or `before NAME`"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_-]*"
_LENGTH = r"(\d{1,15}(?:\.\d{1,15})?)\s*([a-z]+)(?![\w-])"
_SECONDS_FROM_NS, _MS_FROM_NS = 100_000_000, 10_000
"""From here on in s, in ms; less is said in us."""
_SECONDS = "|".join(unit for unit in UNITS[Dimension.TIME] if unit != RTT)
_TIME_SINCE_START = rf"(\d{{1,15}}(?:\.\d{{1,15}})?)\s*({_SECONDS})(?![\w-])"
"""Units of time without the base RTT, which is not known beforehand."""
_EMPTY = "a window must end after it begins"
_A_MOMENT = "a time since the workload began, such as 4s, or a fault, such as `cut + 1s` or `cut heals`"


class Span(Enum):
    """The form of a window."""

    RUN = "run"
    CLEAN = "clean"
    FAULTS = "faults"
    FAULT = "fault"
    TIMES = "times"
    AFTER = "after"
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class Length:
    """A duration, in ns and in base RTTs (one of the two is 0): the base RTT is known when a run is judged."""

    ns: int = 0
    rtts: float = 0

    def __str__(self) -> str:
        if self.rtts:
            return f"{plain(self.rtts)} rtt"
        unit = "s" if abs(self.ns) >= _SECONDS_FROM_NS or not self.ns else "ms" if abs(self.ns) >= _MS_FROM_NS else "us"
        return f"{plain(self.ns / UNITS[Dimension.TIME][unit])} {unit}"

    def in_ns(self, rtt_ns: float) -> float:
        """The total, with a base RTT of `rtt_ns`."""
        return self.ns + self.rtts * rtt_ns

    @property
    def magnitude(self) -> Length:
        """Without its sign."""
        return Length(abs(self.ns), abs(self.rtts))


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time: `offset` after the first injection of `fault`, after its last heal (`heals`), or, without a
    fault, after the start of the workload. `column`: its place in the text."""

    fault: str = ""
    heals: bool = False
    offset: Length = Length()
    column: int = 0

    def __str__(self) -> str:
        if not self.fault:
            return str(self.offset)
        event = f"{self.fault} {HEALS}" if self.heals else self.fault
        if not self.offset.ns and not self.offset.rtts:
            return event
        sign = "-" if self.offset.ns < 0 or self.offset.rtts < 0 else "+"
        return f"{event} {sign} {self.offset.magnitude}"


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the run that a figure covers, including its `scope`.

    `fault` names the fault of `Span.FAULT`, and `column` is the window's place in the text (for a fault: of its name).
    `Span.TIMES` runs from `begin` to `end`, or for `length`; `Span.AFTER` from `begin` to the next fault or the end of
    the workload, for at most `length` if given; `Span.BEFORE` from the previous fault, or the start, to `end`.
    """

    span: Span = Span.RUN
    fault: str = ""
    column: int = 0
    begin: Moment | None = None
    end: Moment | None = None
    length: Length | None = None
    scope: Scope = EVERYBODY

    def __str__(self) -> str:
        return _SAID[self.span](self)

    @property
    def faults(self) -> tuple[tuple[str, int], ...]:
        """Every fault named in it, with its column."""
        moments = tuple((moment.fault, moment.column) for moment in (self.begin, self.end) if moment and moment.fault)
        return ((self.fault, self.column), *moments) if self.fault else moments


WHOLE_RUN = Window()


def _times(window: Window) -> str:
    return f"from {window.begin} " + (f"for {window.length}" if window.end is None else f"to {window.end}")


def _after(window: Window) -> str:
    return f"after {window.begin}" + ("" if window.length is None else f" for {window.length}")


_SAID: Mapping[Span, Callable[[Window], str]] = {
    Span.RUN: lambda _: "",
    Span.CLEAN: lambda _: CLEAN,
    Span.FAULTS: lambda _: f"during {FAULTS}",
    Span.FAULT: lambda window: f"during {window.fault}",
    Span.TIMES: _times,
    Span.AFTER: _after,
    Span.BEFORE: lambda window: f"before {window.end}",
}
_KNOWN: Mapping[Windows, tuple[Span, ...]] = {
    Windows.RUN: (),
    Windows.FAULTS: (Span.FAULT, Span.FAULTS),
    Windows.EVENTS: (Span.FAULT, Span.FAULTS, Span.AFTER),
    Windows.ANY: tuple(Span),
}
"""The windows that metrics support, besides none."""


def read_window(scan: Scanner, metric: Metric) -> Window:
    """The next window, or the whole run without one. Raises ExpectError."""
    column = scan.column
    word = scan.take(rf"(?:{'|'.join(BEGINNINGS)})(?![\w-])")
    if word is None:
        return Window()
    window = _READERS[word[0]](scan, column)
    if window.span not in _KNOWN[metric.windows]:
        scan.fail(f"{metric.name} is known for {metric.windows.value}; leave {str(window)!r} out", column)
    return window


def _read_during(scan: Scanner, _column: int) -> Window:
    scan.take(rf"{FAULT}(?=\s+{_NAME})")
    column = scan.column
    name = scan.take(_NAME)
    if name is None:
        scan.fail("expected the name of a fault, or `faults`, after `during`")
    if name[0] == CLEAN:
        scan.fail("`clean` is a window by itself: leave `during` out", column)
    return Window(Span.FAULTS, "", column) if name[0] == FAULTS else Window(Span.FAULT, name[0], column)


def _read_times(scan: Scanner, column: int) -> Window:
    begin = _moment(scan)
    if scan.take(r"for\b"):
        return Window(Span.TIMES, column=column, begin=begin, length=_lasting(scan))
    if not scan.take(r"to\b"):
        scan.fail("expected `to` and a moment, as in `from 4s to 6s`, or `for` and a time")
    window = Window(Span.TIMES, column=column, begin=begin, end=_moment(scan))
    if _ends_too_early(window):
        scan.fail(_EMPTY, column)
    return window


def _ends_too_early(window: Window) -> bool:
    """True if the window is empty, as far as that is known without fault times and the base RTT."""
    begin, end = window.begin, window.end
    if begin is None or end is None or (begin.fault, begin.heals) != (end.fault, end.heals):
        return False
    return end.offset.ns <= begin.offset.ns and end.offset.rtts <= begin.offset.rtts


def _read_after(scan: Scanner, column: int) -> Window:
    name = _fault_name(scan, "after")
    if scan.take(rf"{HEALS}\b") is None:
        scan.fail(
            f"`after {name[0]}` is incomplete; write `after {name[0]} heals`, `during {name[0]}` or `from {name[0]} to`"
        )
    begin = Moment(name[0], True, _offset(scan), name[1])
    length = _lasting(scan) if scan.take(r"for\b") else None
    return Window(Span.AFTER, column=column, begin=begin, length=length)


def _read_before(scan: Scanner, column: int) -> Window:
    name, at = _fault_name(scan, "before")
    return Window(Span.BEFORE, column=column, end=Moment(name, column=at))


_READERS: Mapping[str, Callable[[Scanner, int], Window]] = {
    "during": _read_during,
    CLEAN: lambda _, column: Window(Span.CLEAN, column=column),
    "from": _read_times,
    "after": _read_after,
    "before": _read_before,
}


def _fault_name(scan: Scanner, word: str) -> tuple[str, int]:
    column = scan.column
    name = scan.take(_NAME)
    if name is None:
        scan.fail(f"expected the name of a fault after `{word}`")
    return name[0], column


def _moment(scan: Scanner) -> Moment:
    column = scan.column
    time = scan.take(_TIME_SINCE_START)
    if time is not None:
        return Moment(offset=Length(round(float(time[1]) * UNITS[Dimension.TIME][time[2]])), column=column)
    name = scan.take(r"(?!\d[\d.]*\s|\d+rtt\b)" + _NAME)
    if name is None:
        scan.fail(f"expected {_A_MOMENT}")
    heals = scan.take(rf"{HEALS}\b") is not None
    return Moment(name[0], heals, _offset(scan), column)


def _offset(scan: Scanner) -> Length:
    sign = scan.take(r"[+-]")
    if sign is None:
        return Length()
    length = _length(scan)
    return length if sign[0] == "+" else Length(-length.ns, -length.rtts)


def _lasting(scan: Scanner) -> Length:
    """How long a window lasts: more than nothing."""
    column = scan.column
    length = _length(scan)
    if length == Length():
        scan.fail(_EMPTY, column)
    return length


def _length(scan: Scanner) -> Length:
    column = scan.column
    time = scan.take(_LENGTH)
    if time is None or time[2] not in UNITS[Dimension.TIME]:
        scan.fail("expected a length of time, such as 500ms or 10 rtt", column)
    number = float(time[1])
    if time[2] == RTT:
        return Length(rtts=number)
    return Length(round(number * UNITS[Dimension.TIME][time[2]]))
