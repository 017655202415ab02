"""Listeners to the events of a run: plain lines, or nobody. What a terminal shows, a `Screen`, is testbed.live."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from rich.console import Console

from testbed.runner.events import FaultDone, FlowsMoved, Note, PhaseBegins, RunEvent, StepsDone, WorkloadBegins
from testbed.runner.loop import Loop

_LINE_EVERY_S = 5.0
"""Shortest interval between progress lines where nothing can be overwritten."""


class Progress(Protocol):
    """Listens to the phases of a run. Every call returns soon: it is made in the supervisor's one loop."""

    def publish(self, event: RunEvent) -> None:
        """This has happened."""

    def attach(self, loop: Loop) -> None:
        """This is the loop of the run; who draws has it call back."""

    def close(self) -> None:
        """The run has ended; give back what was held."""


class Screen(Protocol):
    """Something that shows frames. Neither call may wait: both are made in the supervisor's one loop."""

    def draw(self, frame: Mapping[str, Any]) -> None:
        """Show this (docs/architecture.md, "The live view")."""

    def close(self) -> None:
        """The run is over."""


class Silent:
    """--quiet."""

    def publish(self, event: RunEvent) -> None:
        """Not shown."""

    def attach(self, loop: Loop) -> None:
        """Nothing is drawn."""

    def close(self) -> None:
        """Nothing is open."""


class Lines(Silent):
    """Plain lines, for a log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start_s: float | None = None
        self._told = time.monotonic()

    def publish(self, event: RunEvent) -> None:
        """A line for each phase, fault and note, and one for the work every few seconds."""
        match event:
            case WorkloadBegins():
                self._start_s = event.start_ns / 1e9
            case PhaseBegins():
                self._print(event.name)
            case StepsDone() | FlowsMoved():
                if event.done == event.of or time.monotonic() - self._told >= _LINE_EVERY_S:
                    self._told = time.monotonic()
                    self._print(event.text)
            case FaultDone():
                self._print(f"{event.step.action.value:6} {event.text}")
            case Note():
                self._print(event.text)

    def _print(self, text: str) -> None:
        """Times count from the workload's start, as in the scenario and the summary; before it there is none."""
        since_s = None if self._start_s is None else max(0.0, time.monotonic() - self._start_s)
        line = f"{'':8}  {text}" if since_s is None else f"{since_s:6.1f} s  {text}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class Together:
    """Several who listen, each told in turn."""

    def __init__(self, *listeners: Progress) -> None:
        self._listeners = listeners

    def publish(self, event: RunEvent) -> None:
        """To all."""
        for one in self._listeners:
            one.publish(event)

    def attach(self, loop: Loop) -> None:
        """All on the same loop."""
        for one in self._listeners:
            one.attach(loop)

    def close(self) -> None:
        """All of them."""
        for one in self._listeners:
            one.close()
