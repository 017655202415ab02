"""Variants crossed with cases: what each measure says, who wins, and what of it a terminal, a page and JSON have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.comparison import PAGE_FILE, compare_folders
from mrc_testbed.testbed.compare.comparison import Comparison, compare
from mrc_testbed.testbed.compare.crossing import CrossTable, crossed
from mrc_testbed.testbed.compare.runs import load_runs
from mrc_testbed.testbed.compare.words import TIMES
from mrc_testbed.testbed.rundir.results import COMPARE_FILE
from tests.unit.checks.test_folder import SCENARIO, SECOND, RunFolder
from tests.unit.checks.test_judge import break_off
from tests.unit.checks.test_outage import stall, watched
from tests.unit.compare.test_transports import text_of
from tests.unit.recorded import record_run

CALM = SCENARIO[: SCENARIO.index("faults:")] + SCENARIO[SCENARIO.index("expect:") :]


def cell(variant: str, case: str, keys: str = "", *stalls: dict[str, object]) -> RunFolder:
    """A run of a variant in a case; the calm one has no faults."""
    folder = watched(*stalls)
    scenario = CALM if case == "calm" else SCENARIO
    folder.scenario = f"variant: {variant}\ncase: {case}\njudge: [mrc]\n{keys}{scenario}"
    if case == "calm":
        folder.history = [line for line in folder.history if line.get("event") not in ("injected", "healed")]
    return folder


def grid(folder: Path) -> list[Path]:
    """MRC stalls for 100 ms in the cut, TCP for 4.55 s, RoCE dies; the balanced one reports no stall."""
    dying = break_off(cell("roce", "cut", "transport: roce\nroce: {timeout: 16}\n"))
    runs = {
        ("mrc", "calm"): cell("mrc", "calm"),
        ("mrc", "cut"): cell("mrc", "cut", "", stall("h0", "h1", 3.55, 3.65)),
        ("tcp", "calm"): cell("tcp", "calm", "transport: tcp\n"),
        ("tcp", "cut"): cell("tcp", "cut", "transport: tcp\n", stall("h0", "h1", 3.55, 8.1)),
        ("roce", "calm"): cell("roce", "calm", "transport: roce\nroce: {timeout: 16}\n"),
        ("roce", "cut"): dying,
        ("hashed", "calm"): cell("hashed", "calm", "transport: mrc-hashed\n"),
        ("hashed", "cut"): cell("hashed", "cut", "transport: mrc-hashed\n"),
    }
    return [record_run(folder / "-".join(name), run) for name, run in runs.items()]


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    return compare(load_runs(grid(tmp_path)))


def rows(table: CrossTable) -> dict[str, list[str]]:
    return {variant: [cell.marked for cell in cells] for variant, cells in table.rows}


def test_each_measure_has_a_row_a_variant_and_a_column_a_case(comparison: Comparison) -> None:
    step, still, kept = crossed(comparison)
    assert step.cases == still.cases == kept.cases == ("calm", "cut")
    assert list(rows(step)) == ["mrc", "tcp", "roce", "hashed"]
    assert rows(still)["mrc"] == ["under 40 ms", "100 ms"]
    assert rows(still)["tcp"][1] == "4.55 s"
    assert rows(still)["hashed"][1] == "under 40 ms*"
    assert rows(kept)["mrc"] == ["100%", "96%"]
    assert rows(step)["tcp"][0] == f"1.2 s {TIMES}1.20"


def test_a_job_that_died_has_no_figure_and_wins_nothing(comparison: Comparison) -> None:
    for table in crossed(comparison):
        (roce,) = (cells for variant, cells in table.rows if variant == "roce")
        assert roce[1].text.startswith("died")
        assert not roce[1].wins


def test_a_rival_that_lives_wins_where_the_first_one_dies(tmp_path: Path) -> None:
    runs = {
        ("mrc", "calm"): cell("mrc", "calm"),
        ("mrc", "cut"): break_off(cell("mrc", "cut")),
        ("hashed", "calm"): cell("hashed", "calm", "transport: mrc-hashed\n"),
        ("hashed", "cut"): cell("hashed", "cut", "transport: mrc-hashed\n", stall("h0", "h1", 3.55, 8.1)),
    }
    folders = [record_run(tmp_path / "-".join(name), run) for name, run in runs.items()]
    for table in crossed(compare(load_runs(folders))):
        cells = dict(table.rows)
        assert cells["hashed"][1].wins
        assert not cells["mrc"][1].wins


def test_the_start_up_of_a_job_is_neither_its_worst_step_nor_a_usual_one(tmp_path: Path) -> None:
    runs = {name: cell(*name) for name in (("mrc", "calm"), ("mrc", "cut"), ("tcp", "calm"), ("tcp", "cut"))}
    for run in runs.values():
        for done in run.completions:
            done[2] -= SECOND * 4 * (done[1] == 0)
    folders = [record_run(tmp_path / "-".join(name), run) for name, run in runs.items()]
    step, *_ = crossed(compare(load_runs(folders)))
    assert {text for texts in rows(step).values() for text in texts} == {f"1.2 s {TIMES}1.20"}


def test_without_every_crossing_there_is_no_such_table(tmp_path: Path) -> None:
    assert crossed(compare(load_runs(grid(tmp_path)[:-1]))) == ()


def test_terminal_page_and_json_have_it(tmp_path: Path, comparison: Comparison) -> None:
    text = text_of(comparison)
    assert "longest standstill" in text
    assert "* better than mrc in the same case" in text
    done = compare_folders(grid(tmp_path / "again"), tmp_path / "out")
    page = (done.folder / PAGE_FILE).read_text()
    assert "<b>under 40 ms*</b>" in page
    document = json.loads((done.folder / COMPARE_FILE).read_text())
    assert [table["title"] for table in document["crossing"]] == ["worst step", "longest standstill", "goodput kept"]
