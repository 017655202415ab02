"""Who watches one run after the other from outside of them, and may ask for faults: the live view in a browser."""

from __future__ import annotations

from typing import Protocol

from testbed.fabric.options import FabricOptions
from testbed.report.outcome import RunOutcome
from testbed.runner.by_hand import HandMade
from testbed.runner.loop import Loop
from testbed.runner.progress import Progress
from testbed.scenario import Scenario
from topos.plan import Plan


class Audience(Protocol):
    """`interactive`: it may ask for faults."""

    @property
    def interactive(self) -> bool: ...

    def begin(self, scenario: Scenario, options: FabricOptions) -> None:
        """This run is next. Outside the sandbox, as `end`."""

    def listener(self, scenario: Scenario, plan: Plan) -> Progress:
        """Who is told what goes on. In the supervisor, as `serve`."""

    def serve(self, loop: Loop, hand_made: HandMade | None) -> None:
        """Requests may come from now on; they are for `hand_made`, or refused where that is None."""

    def end(self, outcome: RunOutcome) -> None:
        """What the run came to."""
