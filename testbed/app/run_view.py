"""Who watches one run after the other from outside of them: the live view in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.runner.audience import Audience
from mrc_testbed.testbed.runner.progress import Progress, Screen
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.switching.options import FabricOptions


class RunView(Audience, Protocol):
    """What a watcher is told around each run, besides what the run itself tells it."""

    def begin(self, scenario: Scenario, options: FabricOptions) -> None:
        """This run is next. Outside the sandbox, as `end`."""

    def screens(self) -> Sequence[Screen]:
        """Where frames of the run go; none where nobody looks at them."""

    def feeds(self, scenario: Scenario, run: str) -> Sequence[Progress]:
        """Who else hears of the run as it goes. `run`: the name of its folder."""

    def end(self, outcome: RunOutcome) -> None:
        """What the run came to."""
