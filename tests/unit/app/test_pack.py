"""The paper pack: which scenarios, in which order, and the table that is left whatever happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mrc_testbed.testbed.app import pack
from mrc_testbed.testbed.app import run as run_module
from mrc_testbed.testbed.app.pack import Pack, expected_s, figures_of, load_pack, pack_named
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.errors import ExitCode, MissingCapability, ScenarioError, UsageError
from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.report.outcome import Case, RunOutcome
from mrc_testbed.testbed.report.pack import pack_as_dict, pack_markdown, pack_table, row_of, sources_of
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.calls import Call
from tests.unit.outcomes import SCENARIO, outcome

PASS, FAIL, UNKNOWN = Status.PASS, Status.FAIL, Status.INCONCLUSIVE
PAPER = 'paper: {figure: "FIGURE", reports: "all | is well", shows: [1, 0]}\n'
Script = Callable[..., list[str]]


def text(name: str, figure: str) -> str:
    return SCENARIO.replace("NAME", name) + PAPER.replace("FIGURE", figure)


def case(figure: str, *tries: RunOutcome) -> Case:
    return Case(Path("x.yaml"), load_scenario_text(text("x", figure)), 1, 1, tries)


CASES = [
    case("4", outcome(PASS)),
    case("12, 13", outcome(UNKNOWN), outcome(FAIL, folder="results/again")),
    case("9a", outcome(UNKNOWN)),
    case("14", RunOutcome(ExitCode.MISSING, 1.0, error="no port program")),
    case("table 4.2"),
]


def test_a_row_says_what_the_checks_of_shows_observed() -> None:
    passed = row_of(CASES[0])
    assert passed[:4] == ("4", "all | is well", ("step_time.p100 1.5 s", "qp_errors 0"), "pass")
    assert (passed.why, passed.time, passed.folder) == ("", "12 s", "one")
    failed = row_of(CASES[1])
    assert failed.observed[0] == "step_time.p100 2.5 s (expected <= 2s)"
    assert (failed.verdict, failed.why, failed.time) == (
        "fail, try 2",
        "network: step_time.p100 <= 2s: observed 2.5 s, expected <= 2 s (one.yaml:7)",
        "25 s",
    )
    assert failed.folder == "again"


def test_an_inconclusive_run_is_shown_as_such_and_why() -> None:
    row = row_of(CASES[2])
    assert row.verdict == "inconclusive"
    assert row.why == "machine: timers late (p99): observed 7 ms, expected <= 5 ms"


def test_a_row_without_a_run_observed_nothing() -> None:
    assert row_of(CASES[3])[2:5] == ((), "machine lacks something", "machine: no port program")
    assert row_of(CASES[4])[2:] == ((), "not run", "", None, "", ("<= 2s", "== 0"))


def test_a_variant_has_a_row_with_what_the_paper_reports_of_it() -> None:
    beside = text("x", "16").replace("shows: [1, 0]", 'shows: [1, 0], beside: {roce-1: "about half"}')
    cells = {name: load_scenario_text(f"{beside}variant: {name}\n") for name in ("mrc", "roce-1")}
    rows = {name: row_of(Case(Path("x.yaml"), cell, 1, 1)) for name, cell in cells.items()}
    assert rows["mrc"][:2] == ("16 mrc", "all | is well")
    assert rows["roce-1"][:2] == ("16 roce-1", "about half")


def test_a_baseline_of_which_the_paper_reports_nothing_has_not_what_it_reports_of_mrc(tmp_path: Path) -> None:
    beside = text("x", "16").replace("shows: [1, 0]", 'shows: [1, 0], beside: {roce-1: "about half"}')
    file = tmp_path / "x.yaml"
    file.write_text(f"{beside}variants: {{mrc: {{}}, roce-1: {{transport: roce}}, hash: {{transport: roce}}}}\n")
    rows = [row_of(case) for case in load_pack([file], "", None)]
    assert [(row.figure, row.reports) for row in rows] == [
        *(("16 mrc", "all | is well"), ("16 roce-1", "about half"), ("16 hash", ""))
    ]


def test_a_scenario_without_a_figure_has_no_row() -> None:
    with pytest.raises(ValueError, match="repeats no figure"):
        row_of(Case(Path("x.yaml"), load_scenario_text(SCENARIO.replace("NAME", "x")), 1, 1))


@pytest.mark.parametrize("width", [80, 110, 160])
def test_the_table_has_all_of_it_at_any_width(width: int) -> None:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(pack_table(CASES))
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= width
    shown = " ".join(lines).split()
    assert {"4", "12,", "13", "inconclusive", "machine", "step_time.p100", "2.5", "(expected", "25", "not"} <= set(
        shown
    )
    assert lines[0].split() == ["figure", "the", "paper", "reports", "observed", "here", "verdict", "time"]


def test_the_document_has_a_line_for_each_and_leads_to_the_runs() -> None:
    lines = pack_markdown(CASES, "today").splitlines()
    assert lines[2].startswith("`mrc-testbed paper`, today, on the kernel; 5 runs: 1 pass, 1 fail, 1 inconclusive, ")
    assert lines[4] == "| figure | the paper reports | observed here | verdict | time |"
    assert lines[6] == ("| 4 | all \\| is well | step_time.p100 1.5 s; qp_errors 0 | [pass](../one) | 12 s |")
    assert lines[7].endswith(
        "[fail, try 2](../again): network: step_time.p100 <= 2s: observed 2.5 s, expected <= 2 s (one.yaml:7) | 25 s |"
    )
    assert lines[10] == "| table 4.2 | all \\| is well |  | not run |  |"
    assert len(lines) == 11


def test_a_pack_at_another_scale_says_how_fast_it_was() -> None:
    fast = [text("x", "4") + f"world: virtual\nscale: {scale}\n" for scale in (10, 20)]
    cases = [Case(Path("x.yaml"), load_scenario_text(one), 1, 1) for one in fast]
    assert "in virtual time, 10 to 20 times as fast; " in pack_markdown(cases, "today")
    assert [run["speed"] for run in pack_as_dict(cases)["runs"]] == [10, 20]


def test_the_data_have_the_checks_too() -> None:
    whole = pack_as_dict(CASES)
    assert (whole["verdict"], whole["exit_code"]) == ("fail", 1)
    first, *_, last = whole["runs"]
    assert (first["figure"], first["shows"], first["observed"]) == (
        "4",
        [1, 0],
        ["step_time.p100 1.5 s", "qp_errors 0"],
    )
    assert [check["status"] for check in first["checks"]] == ["pass"] * 3
    assert (last["verdict"], last["observed"]) == ("not run", [])
    json.dumps(whole)


def test_a_shipped_figure_that_a_scale_does_not_fit_is_left_out_and_named() -> None:
    left: list[str] = []
    fast = ["world=virtual", "scale=real"]
    cases = load_pack([], "table 4.2,14", None, fast, lambda file, why: left.append(f"{file.stem}: {why}"))
    assert [case.scenario.name for case in cases] == ["fig14", "table-p2p"]
    (said,) = left
    assert said.startswith("table-latency: ")
    assert "T would be 500 ns" in said


def test_a_scale_that_fits_no_figure_is_a_mistake() -> None:
    with pytest.raises(ScenarioError, match="scale"):
        load_pack([], "", None, ["world=virtual", "scale=fast"], lambda file, why: None)


def test_the_shipped_pack_is_whole_and_takes_less_than_twenty_minutes() -> None:
    cases = load_pack([], "", None)
    assert cases
    assert all(case.scenario.paper for case in cases)
    assert expected_s(cases) < pack.LONGEST_S


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = []
    for name, figure in (("one", "9a"), ("two", "12, 13"), ("three", "6/7")):
        made.append(tmp_path / f"{name}.yaml")
        made[-1].write_text(text(name, figure))
    return made


@pytest.mark.parametrize(
    ("only", "names"),
    [
        ("", ["one", "two", "three"]),
        ("9a", ["one"]),
        ("13,9a", ["one", "two"]),
        (" 7 , 12,", ["two", "three"]),
    ],
)
def test_only_some_figures_in_the_order_of_the_pack(files: list[Path], only: str, names: list[str]) -> None:
    assert [case.name for case in load_pack(files, only, None)] == names


@pytest.mark.parametrize(
    ("only", "says"),
    [
        ("9b", "--only 9b: no scenario of the pack repeats that figure; there are 9a, 12, 13, 6, 7"),
        ("9a,zzz", "--only zzz: no scenario of the pack repeats that figure; there are 9a, 12, 13, 6, 7"),
    ],
)
def test_a_figure_that_is_not_there(files: list[Path], only: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_pack(files, only, None)
    assert str(caught.value) == says


def test_a_file_that_repeats_no_figure_is_refused(files: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SCENARIO.replace("NAME", "other"))
    with pytest.raises(UsageError, match=r"other\.yaml: repeats no figure"):
        load_pack([*files, other], "", None)


def test_a_figure_of_several_variants_has_a_row_for_each(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text("x", "16") + "variants: {mrc: {}, many: {qps: 4}}\n", encoding="utf-8")
    assert [row_of(case).figure for case in load_pack([file], "16", None)] == ["16 mrc", "16 many"]


def test_a_table_of_another_paper_names_it_and_has_bounds() -> None:
    other = text("x", "12").replace("shows: [1, 0]", "shows: [1, 0], source: arXiv 2605.21187")
    lines = pack_markdown([Case(Path("x.yaml"), load_scenario_text(other), 1, 1)], "today").splitlines()
    assert lines[0] == "# Figures of arXiv 2605.21187, here"
    assert lines[4] == "| figure | the paper reports | observed here | within | verdict | time |"
    assert lines[6] == "| 12 | all \\| is well |  | <= 2s; == 0 | not run |  |"
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(pack_table([Case(Path("x.yaml"), load_scenario_text(other), 1, 1)]))
    assert "within" in captured.get()


def test_each_pack_is_whole_and_repeats_one_paper() -> None:
    found = {one: load_pack([], "", None, pack=one) for one in Pack}
    assert all(case.scenario.paper for cases in found.values() for case in cases)
    assert {len(sources_of(cases)) for cases in found.values()} == {1}
    assert sources_of(found[Pack.MULTIPLANE]) == {"arXiv 2605.21187"}
    assert expected_s(found[Pack.MULTIPLANE]) < pack.LONGEST_S


def test_a_pack_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="there are paper, multiplane"):
        pack_named("paperr")


def test_figures_of_one_scenario() -> None:
    assert figures_of(case("12, 13").scenario) == ["12", "13"]
    assert figures_of(case("table 4.2").scenario) == ["table 4.2"]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Runs come to these ends, one after the other. Returns where the names of what was run are put."""

    def scripted(*ends: Status | BaseException) -> list[str]:
        ran: list[str] = []
        left = list(ends)

        def run_scenario(scenario: Any, out: Path, quiet: bool, console: Any, live: bool, **_: Any) -> RunOutcome:
            assert quiet
            assert live, "a terminal shows each run as it goes"
            ran.append(scenario.name)
            end = left.pop(0)
            if isinstance(end, BaseException):
                raise end
            return outcome(end, scenario.name, str(out / scenario.name))

        monkeypatch.setattr(run_module, "run_scenario", run_scenario)
        monkeypatch.setattr(capabilities, "probe", lambda: [])
        monkeypatch.setattr(capabilities, "require", lambda found: None)
        return ran

    return scripted


def test_the_command_runs_them_and_leaves_the_table(
    call: Call, script: Script, files: list[Path], tmp_path: Path
) -> None:
    ran = script(PASS, UNKNOWN, UNKNOWN, PASS, FAIL)
    ended = call("paper", *map(str, files), "--out", str(tmp_path / "out"))
    assert ended.status == 1
    assert ran == ["one", "two", "two", "two", "three"], "twice more while it is inconclusive, never after a fail"
    (folder,) = (tmp_path / "out").iterdir()
    assert folder.name.endswith("Z-paper")
    assert sorted(path.name for path in folder.iterdir()) == ["paper.json", "paper.md"]
    data = json.loads((folder / "paper.json").read_text())
    assert [run["verdict"] for run in data["runs"]] == ["pass", "pass", "fail"]
    assert "3 scenarios, on the kernel, about" in ended.out
    assert "2 of 3: two, try 3; about" in ended.out
    assert "3 runs: 2 pass, 1 fail" in ended.out
    assert ended.err == ""


def test_inconclusive_to_the_end_is_status_3(call: Call, script: Script, files: list[Path], tmp_path: Path) -> None:
    script(PASS, UNKNOWN)
    out = str(tmp_path / "out")
    ended = call("paper", *map(str, files), "--only", "9a,12", "--retry-inconclusive", "0", "--out", out)
    assert ended.status == 3
    assert "inconclusive" in ended.out


def test_ctrl_c_ends_with_the_table_so_far(call: Call, script: Script, files: list[Path], tmp_path: Path) -> None:
    ran = script(PASS, KeyboardInterrupt())
    ended = call("paper", *map(str, files), "--out", str(tmp_path / "out"))
    assert ended.status == 130
    assert ran == ["one", "two"]
    (document,) = (tmp_path / "out").glob("*/paper.md")
    rows = document.read_text().splitlines()[6:]
    assert [row.split(" | ")[0] for row in rows] == ["| 9a", "| 12, 13", "| 6/7"]
    assert "not run" in rows[2]
    assert "not run" in ended.out


def test_a_machine_that_cannot_run_anything_says_so_once(
    call: Call, script: Script, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(_found: Any) -> None:
        raise MissingCapability("not root", "use sudo")

    ran = script()
    monkeypatch.setattr(capabilities, "require", lacking)
    ended = call("paper", *map(str, files), "--out", str(tmp_path / "out"))
    assert (ended.status, ran) == (4, [])
    assert ended.said == ["mrc-testbed: not root. Fix: use sudo"]
    assert not (tmp_path / "out").exists()


def test_a_pack_that_takes_long_is_warned_of(
    call: Call, script: Script, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "LONGEST_S", 12)
    script(PASS, PASS, PASS)
    ended = call("paper", *map(str, files), "--out", str(tmp_path / "out"))
    assert ended.status == 0
    assert len(ended.said) == 1
    assert "choose some with --only" in ended.err
