"""The live display that docs/results.md shows is the one of the tutorial's run in virtual time."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.live.layout import EVERY_S, Layout
from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.live.rows import UNICODE
from mrc_testbed.testbed.runner.events import PortsSampled, RunEvent
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.phases import RunJob, run_phases
from mrc_testbed.testbed.runner.virtual_world import VirtualWorld
from mrc_testbed.testbed.scenario import load_scenario
from tests import documented, tutorial


class Screens:
    """What a terminal of 80 x 24 shows, each time that ports are read; rows without a text are left out."""

    def __init__(self, job: RunJob) -> None:
        plan = job.scenario.plan()
        self.seen: list[list[str]] = []
        self._model = LiveModel(job.scenario, plan)
        self._layout = Layout(plan, UNICODE, 80, 24)

    def publish(self, event: RunEvent) -> None:
        self._model.publish(event)
        if isinstance(event, PortsSampled):
            rows = self._layout.rows({**self._model.frame(event.t_ns), "every_s": EVERY_S})
            lines = ["".join(span.text for span in row).rstrip() for row in rows]
            self.seen.append([line for line in lines if line])

    def attach(self, loop: Loop) -> None:
        """It draws when it is told something."""

    def close(self) -> None:
        """Nothing is open."""


def test_the_page_shows_what_a_terminal_does(tmp_path: Path) -> None:
    name, text = next(tutorial.scenario_file(block) for block in tutorial.blocks() if block.kind == "yaml")
    (tmp_path / name).write_text(text, encoding="utf-8")
    scenario = load_scenario(tmp_path / name, ["world=virtual"])
    (tmp_path / "run/logs").mkdir(parents=True)
    job = RunJob(scenario, tmp_path / "run", VirtualWorld(scenario))
    screens = Screens(job)
    assert run_phases(job, screens) == 0
    shown = [line for line in documented.display() if line]
    moment = " ".join(shown[0].split()[:4])
    assert shown in [seen for seen in screens.seen if " ".join(seen[0].split()[:4]) == moment]
