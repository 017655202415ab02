"""Who watches one run after the other from outside of them, and may ask for faults: the live view in a browser."""

from __future__ import annotations

from typing import Protocol

from testbed.fabric.options import FabricOptions
from testbed.live.live import Screen
from testbed.report.outcome import RunOutcome
from testbed.runner.interactive import InteractiveFaults
from testbed.runner.loop import Loop
from testbed.scenario import Scenario


class Audience(Protocol):
    """`interactive`: it may ask for faults."""

    @property
    def interactive(self) -> bool: ...

    def begin(self, scenario: Scenario, options: FabricOptions) -> None:
        """This run is next. Outside the sandbox, as `end`."""

    def screen(self) -> Screen:
        """Where frames of the run go."""

    def serve(self, loop: Loop, interactive: InteractiveFaults | None) -> None:
        """Requests may come from now on; `interactive` does them; None: all are refused. In the supervisor."""

    def end(self, outcome: RunOutcome) -> None:
        """What the run came to."""
