"""What the page of a comparison draws: places on its axis, and lines over time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.checks.result import Fidelity
from mrc_testbed.testbed.compare.comparison import Comparison, compare
from mrc_testbed.testbed.compare.runs import load_runs
from mrc_testbed.testbed.pages.comparison.curves import MOST_LINES, curves
from mrc_testbed.testbed.pages.comparison.forest import LogAxis, panels
from mrc_testbed.testbed.pages.comparison.page import comparison_page, machine_words
from tests.unit.checks.test_ends import one_dies
from tests.unit.checks.test_folder import SCENARIO, RunFolder
from tests.unit.recorded import add_flows, record_run

USUAL = [1.0, 1.0, 1.0, 1.2, 1.1, 1.0, 1.0, 1.0]
RATIOS = st.floats(0.001, 1000)


def compared(folder: Path, keys: list[str], factors: list[float], repeats: int = 1) -> Comparison:
    """A group for each text of `endpoint`, with step times multiplied by its factor."""
    made = []
    for turn in range(repeats):
        for number, (key, factor) in enumerate(zip(keys, factors, strict=True)):
            scenario = SCENARIO.replace("workload:", f"endpoint: {{{key}}}\nworkload:")
            durations = [factor * (1 + turn / 100) * one for one in USUAL]
            made.append(record_run(folder / f"{turn}-{number}", RunFolder(scenario=scenario, durations=durations)))
    return compare(load_runs(made))


def evs(count: int) -> list[str]:
    return [f"ev_active: {number + 1}" for number in range(count)]


@given(st.floats(1.05, 8), RATIOS, RATIOS)
def test_the_axis_is_logarithmic_with_one_in_the_middle(most: float, one: float, other: float) -> None:
    scale = LogAxis(most)
    assert scale.place(1) == 50
    assert (scale.place(1 / most), scale.place(most)) == (0, 100)
    assert 0 <= scale.place(one) <= 100
    assert one > other or scale.place(one) <= scale.place(other)
    assert scale.place(1 / one) == pytest.approx(100 - scale.place(one), abs=0.02)
    places = [mark.at for mark in scale.marks]
    assert places == sorted(places)


def test_panels_hold_what_differs_and_name_what_does_not(tmp_path: Path) -> None:
    scale, drawn, quiet = panels(compared(tmp_path, evs(2), [1.0, 1.3], repeats=2))
    titles = [panel.title for panel in drawn]
    assert "step, clean median" in titles
    assert "recovery, P50" in quiet
    assert not set(titles) & set(quiet)
    base, other = next(panel for panel in drawn if panel.title == "step, clean median").bars
    assert (base.at, base.low, base.ratio, len(base.runs)) == (50, None, "", 2)
    assert other.low is not None
    assert other.high is not None
    assert 50 < other.low < scale.place(1.3) < other.high <= 100
    assert (other.reads, other.beyond) == ("worse", "")


def test_a_ratio_beyond_the_axis_is_at_its_end_with_an_arrow(tmp_path: Path) -> None:
    _, drawn, _ = panels(compared(tmp_path, evs(2), [1.0, 20.0]))
    far = next(panel for panel in drawn if panel.title == "step, clean median").bars[1]
    assert (far.at, far.beyond) == (100, "up")
    goodput = next(panel for panel in drawn if panel.title == "goodput, clean").bars[1]
    assert (goodput.at, goodput.beyond) == (0, "down")


def test_every_run_is_a_line_while_they_can_be_told_apart(tmp_path: Path) -> None:
    found = curves(compared(tmp_path, evs(3), [1.0, 1.1, 1.2], repeats=2))
    assert found is not None
    lines = found["series"]
    assert [line["name"] for line in lines][:2] == ["ev_active=1", "ev_active=1 #2"]
    assert lines[0]["colour"] == lines[1]["colour"] != lines[2]["colour"]
    assert lines[0]["dash"] != lines[1]["dash"]
    assert (lines[0]["t"][1:3], lines[0]["v"][3], lines[0]["to"]) == ([1, 2], 1.2, 8.3)
    assert (found["unit"], found["about"]) == ("s", "every run")
    assert found["faults"] == [{"name": "cut", "from": 3.501, "to": 4.502}]


def test_of_many_runs_one_stands_for_each_group(tmp_path: Path) -> None:
    found = curves(compared(tmp_path, evs(9), [1.0] * 9))
    assert found is not None
    assert len(found["series"]) == MOST_LINES
    assert found["about"] == f"the first run of {MOST_LINES} groups"


def test_the_page_says_what_was_wrong_with_the_machine(tmp_path: Path) -> None:
    """A figure that must be 0 has no share of its limit: another one was named, at 27 % of its own."""
    spoiled = RunFolder()
    assert spoiled.fidelity is not None
    spoiled.fidelity["udp_rcvbuf_errors"] = 12
    runs = load_runs([record_run(tmp_path / "a", spoiled), record_run(tmp_path / "b", RunFolder())])
    assert machine_words(runs[0]) == "did not keep time: socket drops: observed 12 packets, expected <= 0 packets"
    assert machine_words(runs[1]) == "kept time; CPU pressure 27% of its limit"
    killed = replace(runs[0].verdict, fidelity=Fidelity((), caveat="the run was interrupted"))
    assert machine_words(replace(runs[0], verdict=killed)) == "not reliable: the run was interrupted"


def test_flows_are_shown_by_their_goodput(tmp_path: Path) -> None:
    flows = SCENARIO.replace(
        "train: {steps: 8, compute: 100ms, allreduce: 2MiB}", "write: {from: h0, to: h2, for: 8s, qps: 2}"
    )
    folders = [record_run(tmp_path / name, RunFolder(scenario=flows)) for name in ("a", "b")]
    for folder in folders:
        add_flows(folder)
    found = curves(compare(load_runs(folders)))
    assert found is not None
    line = found["series"][0]
    assert (found["unit"], line["grain"], len(line["v"])) == ("Mb/s", 0.1, 10)
    assert line["v"][0] == pytest.approx(2 * 50_000 * 10 * 8 / 1e6, abs=1e-3)


def test_two_axes_head_the_columns_one_above_the_other(tmp_path: Path) -> None:
    keys = [f"ev_active: {number}, congestion_control: {name}" for number in (1, 2) for name in ("nscc", "fixed")]
    page = comparison_page(compared(tmp_path, keys, [1.0, 1.1, 1.2, 1.3]), None, tmp_path / "out", "again")
    assert '<th scope="colgroup" colspan="2" class="n">ev_active=1</th>' in page
    assert page.count('<th scope="col" colspan="1" class="n">nscc') == 2
    assert "Groups are called by ev_active / congestion_control." in page
    assert '<span class="label">2 / fixed</span>' in page


def test_the_line_of_a_job_that_lived_has_no_cross(tmp_path: Path) -> None:
    """Of two jobs of a run one died at 3 s."""
    folders = []
    for name in ("a", "b"):
        folder = one_dies()
        folder.scenario = folder.scenario.replace("name: small", f"name: {name}")
        folders.append(record_run(tmp_path / name, folder))
    found = curves(compare(load_runs(folders)))
    assert found is not None
    assert [(one["name"].split()[-1], one.get("died")) for one in found["series"]] == [
        *(("quick", None), ("job-2", 3.0)),
        *(("quick", None), ("job-2", 3.0)),
    ]
