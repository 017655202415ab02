"""The moving picture of runs: whole XML, an animation for each fault and step, nothing that needs a script."""

from __future__ import annotations

import io
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from animate import animation, main
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.frames.run import Run, load_run
from mrc_testbed.testbed.scenario import load_scenario

SMALL = Path(__file__).parents[1] / "small_virtual.yaml"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Of a scenario with a flapping link, a reboot, and a NIC port that is cut."""
    quiet = PatientConsole(file=io.StringIO())
    outcome = run_scenario(load_scenario(SMALL, ["world=virtual"]), tmp_path_factory.mktemp("runs"), True, quiet)
    assert outcome.folder is not None
    return load_run(outcome.folder)


@pytest.fixture(scope="module")
def text(run: Run) -> str:
    return animation([run, run])


def classes(text: str, kind: str) -> list[str]:
    return [one for each in ElementTree.fromstring(text).iter() if kind in (one := each.get("class", "")).split()]


def test_what_a_fault_touches_is_red(run: Run, text: str) -> None:
    injected = run.history[(run.history.op == "inject") & (run.history.type == "ok")]
    touched = {name for row in injected.itertuples() for name in f"{row.target} {row.links}".replace(",", " ").split()}
    assert len(classes(text, "cut")) == len([name for name in touched if ":" in name and not name.startswith("h")])
    assert len(classes(text, "down")) == 1  # the T1 that reboots


def test_steps_are_counted_to_the_last_one_which_stays(run: Run, text: str) -> None:
    counts = [each for each in ElementTree.fromstring(text).iter(f"{SVG}text") if "count" in each.get("class", "")]
    said = [(each.text or "").partition(",")[0] for each in counts]
    steps = len(run.steps)
    assert said == 2 * [f"{done} of {steps} steps" for done in range(steps + 1)]
    assert [each.get("style", "") for each in counts] == 2 * [*steps * ["opacity: 0"], ""]


def test_times_of_an_animation_go_up_and_end_within_it(text: str) -> None:
    for rule in re.findall(r"@keyframes a[0-9]+ [{](.*?)[}] [.]a", text):
        times = [float(at) for at in re.findall(r"([0-9.]+)%", rule)]
        assert times
        assert all(before <= after for before, after in pairwise(times)), rule
        assert times[-1] <= 100


def test_it_moves_without_a_script_and_stops_where_it_is_asked(text: str) -> None:
    assert "<script" not in text
    assert "prefers-reduced-motion: reduce" in text
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_the_newest_run_of_a_variant_is_drawn(run: Run, tmp_path: Path) -> None:
    main(tmp_path / "moving.svg", run.folder.parent)
    assert (tmp_path / "moving.svg").read_text(encoding="utf-8") == animation([run])
