"""Listeners to run events: plain lines, or silent. The terminal display, a `Screen`, is in mrc_testbed.testbed.live."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, Protocol

from rich.console import Console

from mrc_testbed.testbed.runner.events import (
    FaultDone,
    FlowsMoved,
    MapDecided,
    MapSaid,
    Note,
    PhaseBegins,
    PortsSampled,
    ProgramsRun,
    RunEvent,
    StepsDone,
    WorkloadBegins,
)
from mrc_testbed.testbed.runner.loop import Loop

_LINE_EVERY_S = 5.0
"""Shortest interval between progress lines in a log."""
_LEAST_SHARE = 0.02
"""Of less, nothing follows for the rest."""
_FAST = 1000
"""From this speed on a run lasts milliseconds."""


class Progress(Protocol):
    """Listens to the phases of a run. Calls must return quickly: they run in the supervisor's loop."""

    def publish(self, event: RunEvent) -> None:
        """Handle an event."""

    def attach(self, loop: Loop) -> None:
        """Attach to the run's loop, for timed drawing."""

    def close(self) -> None:
        """Release resources at the end of the run."""


class Screen(Protocol):
    """Displays frames. Calls must not block: they run in the supervisor's loop."""

    def draw(self, frame: Mapping[str, Any]) -> None:
        """Display a frame (docs/architecture.md, "The live view")."""

    def close(self) -> None:
        """Called at the end of the run."""


class Silent:
    """--quiet."""

    def publish(self, event: RunEvent) -> None:
        """Drop the event."""

    def attach(self, loop: Loop) -> None:
        """Do nothing: no frames are drawn."""

    def close(self) -> None:
        """Do nothing: no screen is open."""


class TimeLeft:
    """How long a run in virtual time will still take on this machine, judged by the share of its time that is over.

    `expected_ns`: how long the workload should take, in the time of the run.
    """

    def __init__(self, expected_ns: int) -> None:
        self._expected_ns = max(expected_ns, 1)
        self._start_ns = 0
        self._began_s: float | None = None

    def begin(self, start_ns: int) -> None:
        """The workload starts."""
        self._start_ns, self._began_s = start_ns, time.monotonic()

    def words(self, now_ns: int) -> str:
        """`34%, 20 s left`, rounded so that it never says that it is over; empty outside the workload, and where that
        takes longer than expected."""
        share = (now_ns - self._start_ns) / self._expected_ns
        if self._began_s is None or not _LEAST_SHARE <= share < 1:
            return ""
        left_s = (time.monotonic() - self._began_s) * (1 - share) / share
        left = f"{math.ceil(left_s)} s" if left_s < 90 else f"{left_s / 60:.0f} min"
        return f"{math.floor(100 * share)}%, {left} left"


class PlainLines(Silent):
    """Plain lines, for a log. `left`: of a run in virtual time, which is then told every few seconds. `speed`: how many
    times faster than usual the network is, which decides the unit of times."""

    def __init__(self, console: Console, left: TimeLeft | None = None, speed: int = 1) -> None:
        self._console = console
        self._left = left
        self._unit, self._per_s = ("s", 1.0) if speed < _FAST else ("ms", 1e3)
        self._now_ns = time.monotonic_ns
        self._start_s: float | None = None
        self._last_line = time.monotonic()

    def attach(self, loop: Loop) -> None:
        """Take the time from the loop: lines say when things happened in the run."""
        self._now_ns = loop.now_ns

    def publish(self, event: RunEvent) -> None:
        """Print a line for each phase, fault and note, and one for the workload every few seconds."""
        match event:
            case WorkloadBegins():
                self._start_s = event.start_ns / 1e9
                if self._left:
                    self._left.begin(event.start_ns)
            case PortsSampled() if self._left and self._is_time():
                if words := self._left.words(event.t_ns):
                    self._last_line = time.monotonic()
                    self._print(words)
            case PhaseBegins():
                self._print(event.name)
            case StepsDone() | FlowsMoved() | ProgramsRun():
                if event.done == event.of or self._is_time():
                    self._last_line = time.monotonic()
                    self._print(event.text)
            case FaultDone():
                self._print(f"{event.step.action.value:6} {event.text}")
            case Note() | MapSaid() | MapDecided():
                self._print(event.text if isinstance(event, Note) else f"map    {event.text}")

    def _is_time(self) -> bool:
        return time.monotonic() - self._last_line >= _LINE_EVERY_S

    def _print(self, text: str) -> None:
        """Times count from the workload's start, as in the scenario and the summary; before it there is none."""
        since_s = None if self._start_s is None else max(0.0, self._now_ns() / 1e9 - self._start_s)
        line = f"{'':8}  {text}" if since_s is None else f"{since_s * self._per_s:6.1f} {self._unit}  {text}"
        self._console.print(line, highlight=False, soft_wrap=True)


class ProgressGroup:
    """Forwards each event to several listeners, in turn."""

    def __init__(self, *listeners: Progress) -> None:
        self._listeners = listeners

    def publish(self, event: RunEvent) -> None:
        """Publish to each listener, in the order given."""
        for one in self._listeners:
            one.publish(event)

    def attach(self, loop: Loop) -> None:
        """Attach each listener to the loop of the run."""
        for one in self._listeners:
            one.attach(loop)

    def close(self) -> None:
        """Close each listener."""
        for one in self._listeners:
            one.close()
