"""Who watches one run after the other from outside of them: the live view in a browser."""

from __future__ import annotations

from typing import Protocol

from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.runner.audience import Audience
from mrc_testbed.testbed.runner.progress import Screen
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.switching.options import FabricOptions


class RunView(Audience, Protocol):
    """What a watcher is told around each run, besides what the run itself tells it."""

    def begin(self, scenario: Scenario, options: FabricOptions) -> None:
        """This run is next. Outside the sandbox, as `end`."""

    def screen(self) -> Screen:
        """Where frames of the run go."""

    def end(self, outcome: RunOutcome) -> None:
        """What the run came to."""
