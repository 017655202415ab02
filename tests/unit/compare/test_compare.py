"""Runs side by side: which are repeats of each other, what counts, and how it reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mrc_testbed.testbed.app import run as run_module
from mrc_testbed.testbed.app.comparison import compare_folders
from mrc_testbed.testbed.app.finished import FinishedRun
from mrc_testbed.testbed.compare.comparison import DIFFERENCE, RATIO, Comparison, ComparisonRow, compare
from mrc_testbed.testbed.compare.figures import FIGURES, RunFigures, figures_among
from mrc_testbed.testbed.compare.runs import ComparedRun, load_run, load_runs
from mrc_testbed.testbed.compare.settings import settings_of
from mrc_testbed.testbed.compare.table import WIDTH, render_comparison
from mrc_testbed.testbed.compare.words import caveat, findings, title, value_words
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.expect import parse_figure
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.calls import Call
from tests.unit.checks.test_folder import SCENARIO, RunFolder
from tests.unit.outcomes import outcome
from tests.unit.recorded import record_run

pytestmark = pytest.mark.slow

USUAL = [1.0, 1.0, 1.0, 1.2, 1.1, 1.0, 1.0, 1.0]
EXPECT = ["qp_errors == 0"]


def made(folder: Path, name: str, change: tuple[str, str] | None = None, factor: float = 1.0, **rest: Any) -> Path:
    """A run folder; `change` of its scenario, `factor` of its step times."""
    scenario = SCENARIO if change is None else SCENARIO.replace(*change)
    assert change is None or scenario != SCENARIO
    run = RunFolder(expect=EXPECT, scenario=scenario, durations=[factor * one for one in USUAL])
    for key, value in rest.items():
        setattr(run, key, value)
    return record_run(folder / f"20260101T00000{len(list(folder.iterdir()))}Z-{name}", run)


EVS = {value: ("workload:", f"endpoint: {{ev_active: {value}}}\nworkload:") for value in range(1, 9)}


def axis(folder: Path, values: dict[int, float], repeats: int = 3) -> list[Path]:
    """Runs with other `ev_active`, and step times multiplied by these values; the repeats are spread."""
    return [
        made(folder, "small", EVS[value], factor * (1 + 0.004 * turn))
        for turn in range(repeats)
        for value, factor in values.items()
    ]


def compared(folders: list[Path], everything: bool = False) -> Comparison:
    return compare(load_runs(folders), everything)


def row(comparison: Comparison, key: str) -> ComparisonRow:
    return next(row for row in comparison.rows if row.figure.key == key)


def text_of(comparison: Comparison) -> str:
    console = Console(width=WIDTH, record=True, file=open("/dev/null", "w"), color_system=None)  # noqa: SIM115
    console.print(render_comparison(comparison))
    return console.export_text()


def test_repeats_stand_together_and_the_first_run_decides_the_base(tmp_path: Path) -> None:
    found = compared(axis(tmp_path, {4: 1.0, 2: 1.1}))
    assert [column.label for column in found.columns] == ["ev_active=2", "ev_active=4"], "along the axis"
    assert [len(column.runs) for column in found.columns] == [3, 3]
    assert found.columns[found.base].label == "ev_active=4"
    assert [(one.key, one.values) for one in found.axes] == [("endpoint.ev_active", ("2", "4"))]
    cell = row(found, "step_time.median clean").cells[0]
    assert cell.estimate is not None
    assert cell.estimate.value == pytest.approx(1.1, rel=1e-6)
    assert cell.estimate.low < 1.1 < cell.estimate.high  # type: ignore[operator]
    assert cell.reads == "worse"
    assert row(found, "step_time.median clean").cells[1].estimate is None


def test_figures_are_those_of_the_expectation_language(tmp_path: Path) -> None:
    folder = made(tmp_path, "small")
    run = load_run(folder)
    verdict = json.loads((folder / "verdict.json").read_text())["verdict"]
    assert run.verdict.status == verdict == "pass"
    finished = FinishedRun(outcome_of(run))
    factors = {"s": 1e9, "B/s": 1, "B": 1, "": 1}
    asked = {figure.key: finished.metric(figure.text) for figure in FIGURES if figure.key in run.figures.values}
    assert len(asked) > 15
    for figure in FIGURES:
        if figure.key in asked and not (figure.over or figure.in_rtt):
            measured = asked[figure.key]
            assert run.figures.values[figure.key] == pytest.approx(measured * factors[measured.unit])
    in_rtt = run.figures.values["recovery.p100 in rtt"]
    assert in_rtt == pytest.approx(finished.metric("recovery.p100", unit="rtt"))
    share = run.figures.values["step_time.p100 during faults / clean"]
    assert share == pytest.approx(asked["step_time.p100"] / asked["step_time.median clean"])


def outcome_of(run: ComparedRun) -> Any:
    found = outcome(folder=str(run.folder))
    return type(found)(found.exit_code, 1.0, run.verdict, run.folder, run.headline)


def test_every_figure_is_one_of_the_language() -> None:
    assert len({figure.key for figure in FIGURES}) == len(FIGURES)
    for figure in FIGURES:
        assert parse_figure(figure.text)
        assert not figure.over or parse_figure(figure.over)


def test_what_changes_nothing_makes_no_group(tmp_path: Path) -> None:
    folders = [
        made(tmp_path, "small"),
        made(tmp_path, "small", ("about: A link goes down.", "about: The same.\nseed: 9\ntime_limit: 10min")),
        made(tmp_path, "small", ("port_rate: 25mbit, rtt: 20ms", "port_rate: 25000kbit, rtt: 0.02s")),
    ]
    found = compared(folders)
    assert found.alike
    assert [column.label for column in found.columns] == ["run 1, seed 1", "run 2, seed 9", "run 3, seed 1"]
    assert "differences are chance" in caveat(found)
    assert list(findings(found)) == []
    assert found.intervals == 0


def test_values_that_differ_behind_their_first_words_are_not_the_same(tmp_path: Path) -> None:
    links = "[p][0-1]-[t][0-0]-[0-1]:[p][0-1]-[t][1-1]-{}"
    change = [("workload:", f'capture: [{{links: "{links.format(last)}", around: all}}]\nworkload:') for last in "01*"]
    found = compared([made(tmp_path, "small", one) for one in change])
    assert [len(axis.values) for axis in found.axes] == [3]


def test_an_inconclusive_run_is_shown_and_counts_when_asked(tmp_path: Path) -> None:
    folders = axis(tmp_path, {1: 1.0, 2: 1.1}, repeats=2)
    lost = made(tmp_path, "small", EVS[2], 5.0, fidelity=None)
    found = compared([*folders, lost])
    assert found.columns[1].verdicts == {"pass": 2, "inconclusive": 1}
    assert len(row(found, "step_time.p100").cells[1].values) == 2
    assert any("1 inconclusive run shown, not counted" in note for note in found.notes)
    assert "inconclusive, not" in text_of(found)
    every = compared([*folders, lost], everything=True)
    assert len(row(every, "step_time.p100").cells[1].values) == 3
    assert any("counted (--count-inconclusive)" in note for note in every.notes)


def test_a_killed_run_is_inconclusive_and_still_shown(tmp_path: Path) -> None:
    folders = [made(tmp_path, "small"), made(tmp_path, "small")]
    for name in ("verdict.json", "counters.json", "fidelity.json", "recovery.json"):
        (folders[1] / name).unlink()
    found = compared(folders)
    assert [bool(column.counted) for column in found.columns] == [True, False]
    assert found.columns[1].runs[0].figures.lacking["packets_lost"].startswith("no final counters")


def test_few_events_are_compared_by_difference_and_many_by_ratio(tmp_path: Path) -> None:
    def counted(lost: int) -> dict[str, Any]:
        counters = RunFolder().counters
        assert counters is not None
        for host in counters["hosts"].values():
            host["counters"] |= {"lost_timeout": lost, "lost_overtaken": 0}
        return {"counters": counters}

    few = [made(tmp_path, "small", EVS[n], **counted(lost)) for n, lost in ((1, 0), (2, 2))]
    found = row(compared(few), "packets_lost")
    assert (found.kind, found.cells[1].estimate.value) == (DIFFERENCE, 8)  # type: ignore[union-attr]
    many = [made(tmp_path, "small", EVS[n], **counted(lost)) for n, lost in ((3, 20), (4, 30))]
    found = row(compared(many), "packets_lost")
    assert (found.kind, found.cells[1].estimate.value) == (RATIO, pytest.approx(1.5))  # type: ignore[union-attr]


def test_what_is_zero_everywhere_is_one_line(tmp_path: Path) -> None:
    found = compared(axis(tmp_path, {1: 1.0, 2: 1.0}, repeats=1))
    assert "qp_errors" in [figure.key for figure in found.zero]
    assert "qp_errors" not in [row.figure.key for row in found.rows]
    assert "0 in every run: " in text_of(found)


def doctored(run: ComparedRun, key: str, value: float | None) -> ComparedRun:
    """The same run with this value of a figure; None: it lacks it."""
    values = {one: known for one, known in run.figures.values.items() if one != key}
    lacking = {one: why for one, why in run.figures.lacking.items() if one != key}
    if value is None:
        return replace(run, figures=RunFigures(values, {**lacking, key: "it did not return"}))
    return replace(run, figures=RunFigures({**values, key: value}, lacking))


BACK = "goodput_back.p100"


def test_what_one_run_lacks_is_not_zero_in_every_run(tmp_path: Path) -> None:
    first, second = load_runs([made(tmp_path, "small"), made(tmp_path, "small")])
    found = compare([doctored(first, BACK, 0.0), doctored(second, BACK, None)])
    assert BACK not in [figure.key for figure in found.zero]
    assert [cell.values for cell in row(found, BACK).cells] == [(0.0,), ()]
    assert value_words(row(found, BACK), row(found, BACK).cells[1]) == "-"
    both = compare([doctored(first, BACK, 0.0), doctored(second, BACK, 0.0)])
    assert BACK in [figure.key for figure in both.zero]


def test_zero_is_said_of_the_runs_that_count(tmp_path: Path) -> None:
    folders = [*axis(tmp_path, {1: 1.0, 2: 1.0}, repeats=1), made(tmp_path, "small", EVS[2], fidelity=None)]
    assert "0 in every run that counts: " in text_of(compared(folders))


@pytest.mark.parametrize("lacking", [0, 1])
def test_repeats_that_lack_a_figure_leave_it_unjudged(tmp_path: Path, lacking: int) -> None:
    """Of either group, the base or the other: goodput that was never back is no shorter time."""
    runs = load_runs(axis(tmp_path, {1: 1.0, 2: 1.0}))
    times = {"1": iter([200e6, 205e6, 203e6]), "2": iter([400e6, 410e6, 420e6])}
    given = [doctored(run, BACK, next(times[run.settings["endpoint.ev_active"]])) for run in runs]
    assert row(compare(given), BACK).cells[1].reads == "worse"
    given[-2 + lacking] = doctored(given[-2 + lacking], BACK, None)
    found = compare(given)
    base, other = row(found, BACK).cells
    assert other.estimate is not None
    assert (other.reads, other.estimate.low) == ("", None)
    assert value_words(row(found, BACK), (base, other)[lacking]).endswith("ms (2 of 3 runs)")
    (note,) = (note for note in found.notes if note.startswith("goodput back, P100"))
    group = f"ev_active={lacking + 1}"
    assert note == f"goodput back, P100: not judged, because only known for 2 of 3 runs of {group} (it did not return)"
    assert not any("goodput back" in line for line in findings(found))


def test_a_difference_under_a_percent_is_neither_better_nor_worse(tmp_path: Path) -> None:
    folders = [
        made(tmp_path, "small", EVS[value], factor)
        for value, factor in ((1, 1.0), (2, 1.005), (1, 1.0001), (2, 1.0051), (1, 1.0), (2, 1.005))
    ]
    cell = row(compared(folders), "step_time.median clean").cells[1]
    assert cell.estimate is not None
    assert cell.estimate.clear_of(1)
    assert cell.reads == ""


def test_one_run_each_says_that_chance_is_not_known(tmp_path: Path) -> None:
    found = compared(axis(tmp_path, {1: 1.0, 2: 2.0}, repeats=1))
    assert caveat(found).startswith("No intervals: each group needs two runs that count")
    assert not any(cell.reads for row in found.rows for cell in row.cells)
    assert list(findings(found)) == []


def test_other_scenarios_stand_side_by_side_with_a_plain_warning(tmp_path: Path) -> None:
    scenario = SCENARIO.replace("workload:", "endpoint: {ev_active: 3, icrc: true}\nworkload:")
    for old, new in (("name: small", "name: other"), ("at: 3500ms", "at: 3501ms"), ("compute: 100", "compute: 101")):
        scenario = scenario.replace(old, new)
    other = record_run(tmp_path / "x", RunFolder(expect=EXPECT, scenario=scenario))
    folders = [made(tmp_path, "small"), other]
    found = compared(folders)
    assert [column.label for column in found.columns] == ["small", "other"]
    assert found.axes == ()
    assert "small, other are different scenarios, in 4 keys" in found.notes[0]
    assert title(found) == "small and other"


def test_other_work_and_other_machines_are_said(tmp_path: Path) -> None:
    folders = [made(tmp_path, "small"), made(tmp_path, "small", ("compute: 100ms", "compute: 200ms"))]
    environment = json.loads((folders[1] / "environment.json").read_text()) | {"kernel": "7.0"}
    (folders[1] / "environment.json").write_text(json.dumps(environment))
    notes = compared(folders).notes
    assert notes[0].startswith("the workload differs (workload.0.train.compute)")
    assert notes[1].startswith("the runs had different kernels: 7.0; unknown")


def test_two_axes_are_crossed(tmp_path: Path) -> None:
    folders = [
        made(tmp_path, "small", ("workload:", f"endpoint: {{ev_active: {evs}, congestion_control: {cc}}}\nworkload:"))
        for evs in (1, 2, 16)
        for cc in ("nscc", "fixed")
    ]
    found = compared(folders)
    assert found.grid
    assert [axis.values for axis in found.axes] == [("1", "2", "16"), ("nscc", "fixed")]
    assert title(found) == "small by ev_active and congestion_control"
    lines = text_of(found).splitlines()
    assert any(
        line.split()[:3] == ["ev_active", "congestion_control=nscc", "congestion_control=fixed"] for line in lines
    )
    assert not compared(folders[:-1]).grid


FORMS = {
    "few": "variant: few\nendpoint: {ev_active: 3, icrc: true, mpr: 4, max_wimm: 8, reinfer: false}\n",
    "usual": "variant: usual\n",
}


def test_variants_are_called_by_their_names_whatever_they_change(tmp_path: Path) -> None:
    folders = [made(tmp_path, "small", ("workload:", f"{FORMS[name]}workload:")) for name in ("few", "usual", "few")]
    found = compared(folders)
    assert [(column.label, len(column.runs)) for column in found.columns] == [("few", 2), ("usual", 1)]
    assert [axis.key for axis in found.axes] == ["variant"]
    assert not [note for note in found.notes if "differ" in note]
    plain = compared([folders[0], made(tmp_path, "small")])
    assert "variant" not in [axis.key for axis in plain.axes]


def test_variants_and_another_key_are_crossed(tmp_path: Path) -> None:
    folders = [
        made(tmp_path, "small", ("workload:", f"{form}time_limit: 90s\nseed: 7\nqps: {qps}\nworkload:"))
        for form in FORMS.values()
        for qps in (1, 2)
    ]
    found = compared(folders)
    assert [axis.key for axis in found.axes] == ["variant", "qps"]
    assert [column.label for column in found.columns][:2] == ["few, qps=1", "few, qps=2"]
    assert found.grid


def test_other_work_of_variants_is_said_and_more_queue_pairs_are_no_other_work(tmp_path: Path) -> None:
    def notes(change: str) -> tuple[str, ...]:
        other = ("- train: {", f"- train: {{{change}, ")
        first = made(tmp_path, "small", ("workload:", "variant: a\nworkload:"))
        second = made(tmp_path, "small", other)
        file = second / "scenario.yaml"
        file.write_text(file.read_text().replace("workload:", "variant: b\nworkload:"))
        return compared([first, second]).notes

    assert not notes("qps: 2")
    assert notes("warm_up: 1")[0].startswith("the workload differs (workload.0.train.warm_up)")


@pytest.mark.parametrize("groups", [2, 3, 5, 6, 8])
@pytest.mark.nightly(keep=2)
def test_tables_fit_into_100_columns(tmp_path: Path, groups: int) -> None:
    found = compared(axis(tmp_path, {value + 1: 1 + value / 10 for value in range(groups)}, repeats=2))
    text = text_of(found)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "\N{HORIZONTAL ELLIPSIS}" not in text, "nothing is cut"
    assert text.count("worse") >= groups - 1


def test_settings_know_what_is_left_out() -> None:
    def asked(text: str) -> dict[str, str]:
        return settings_of(load_scenario_text(f"{text}  []\n"))

    usual = asked(SCENARIO)
    assert usual == asked(SCENARIO.replace("workload:", "endpoint: {ev_active: 128, icrc: false}\nworkload:"))
    assert usual == asked(SCENARIO.replace("port_rate: 25mbit", "port_rate: 0.025gbit"))
    other = asked(SCENARIO.replace(*EVS[3]))
    assert {key for key in usual if usual[key] != other[key]} == {"endpoint.ev_active"}


def test_settings_name_the_keys_of_a_family_once_however_they_are_written() -> None:
    def fabric(sizes: str) -> dict[str, str]:
        text = SCENARIO.replace("t0_groups: 2, t1: 2, hosts_per_t0: 2", sizes)
        found = settings_of(load_scenario_text(f"{text}  []\n"))
        return {key.removeprefix("fabric."): value for key, value in found.items() if key.startswith("fabric.")}

    rest = {"planes": "2", "port_rate": "25mbit", "rtt": "20ms"}
    two = {"t0_groups": "2", "t1": "2", "hosts_per_t0": "2"}
    assert fabric("t1: 2, hosts_per_t0: 2, t1_speed: 100 %") == rest | two
    assert fabric("t1: 2, hosts_per_t0: 2, t1_speed: [50 %, 100 %]") == rest | two | {"t1_speed": "0.5, 1"}
    three = {"pods": "2", "t0": "1", "t1": "2", "t2": "2", "hosts_per_t0": "2"}
    assert fabric("family: {clos3: {pods: 2, t0: 1, t1: 2, t2: 2, hosts_per_t0: 2}}") == rest | {
        f"family.clos3.{key}": value for key, value in three.items()
    }


def test_the_command_writes_a_folder_beside_the_runs(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    results.mkdir()
    names = [folder.name for folder in axis(results, {1: 1.0, 2: 1.1}, repeats=2)]
    ended = call("compare", *names)
    assert ended.status == 0, ended.err
    page = Path(ended.out.splitlines()[-1])
    assert page.parent.parent == Path("results")
    document = json.loads((page.parent / "compare.json").read_text())
    assert (document["title"], document["headline"]) == ("small by ev_active", "4 runs in 2 groups")
    assert [run["verdict"] for run in document["runs"]] == ["pass"] * 4
    assert document["columns"][1]["place"] == {"endpoint.ev_active": "2"}
    times = next(one for one in document["figures"] if one["key"] == "step_time.p100")
    assert (times["unit"], times["compared_by"], len(times["cells"][0]["values"])) == ("ns", "ratio", 2)
    listed = " ".join(call("results").out.split())
    assert "small by ev_active comparison 4 runs in 2 groups" in listed
    assert "4 runs, 1 comparison" in listed
    assert call("results", "rm", page.parent.name, "--yes").status == 0
    assert not page.parent.exists()


def test_two_sides_of_one_scenario_are_groups_when_asked(tmp_path: Path, call: Call) -> None:
    old, new = ([str(made(tmp_path, "small", factor=factor + turn / 500)) for turn in (0, 1)] for factor in (1.0, 1.1))
    ended = call("compare", *new, "--against", old[0], "--against", old[1], "--out", str(tmp_path / "out"))
    assert ended.status == 0, ended.err
    document = json.loads(next((tmp_path / "out").glob("*/compare.json")).read_text())
    labels = [column["label"] for column in document["columns"]]
    assert sorted(labels) == ["runs=against", "runs=given"]
    assert labels[document["base"]] == "runs=against"
    assert "runs=given against runs=against: step, clean median \N{MULTIPLICATION SIGN}1.10" in " ".join(
        ended.out.split()
    )


def test_paths_that_are_no_counts_are_told(tmp_path: Path) -> None:
    folder = made(tmp_path, "small")
    counters = json.loads((folder / "counters.json").read_text())
    counters["hosts"]["h0"]["paths"] = ["0/1"]
    (folder / "counters.json").write_text(json.dumps(counters))
    with pytest.raises(UsageError, match=r"counters\.json: hosts\.h0\.paths is not an object"):
        load_runs([folder])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["a"], "a comparison needs at least two runs"),
        (["a", "a"], "a: duplicate run; a run cannot be compared with itself"),
        (["a", "nothing"], "nothing: no such run folder"),
        (["a", "empty"], "empty: has no scenario.yaml: not a run folder"),
        (["a", "broken"], "history.jsonl: line 1 is not JSON"),
    ],
)
def test_what_cannot_be_compared_is_told(tmp_path: Path, call: Call, given: list[str], says: str) -> None:
    record_run(tmp_path / "a", RunFolder(expect=EXPECT))
    (record_run(tmp_path / "broken", RunFolder(expect=EXPECT)) / "history.jsonl").write_text("{\n{}\n")
    (tmp_path / "empty").mkdir()
    ended = call("compare", *(str(tmp_path / name) for name in given), "--out", str(tmp_path / "out"))
    assert ended.status == 2
    assert says in ended.err
    assert not (tmp_path / "out").exists()


def test_every_unreadable_run_is_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (record_run(tmp_path / name, RunFolder(expect=EXPECT)) / "history.jsonl").write_text("{\n{}\n")
    with pytest.raises(UsageError) as caught:
        compare_folders([tmp_path / "a", tmp_path / "b"], tmp_path)
    assert [line.count("is not JSON") for line in str(caught.value).splitlines()] == [1, 1]


def test_a_matrix_ends_with_its_comparison(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_scenario(scenario: Any, out: Path, *_: Any, **__: Any) -> Any:
        out.mkdir(exist_ok=True)
        evs = scenario.endpoint.ev_active
        folder = made(out, "small", EVS[evs], 1 + evs / 10)
        return outcome(name="small", folder=str(folder))

    monkeypatch.setattr(run_module, "run_scenario", run_scenario)
    file = tmp_path / "small.yaml"
    file.write_text(SCENARIO + "  - qp_errors == 0\n")
    ended = call("run", str(file), "--matrix", "endpoint.ev_active=1,2", "--repeat", "2", "--out", str(tmp_path / "r"))
    assert ended.status == 0, ended.err
    assert "ev_active=2" in ended.out
    page = Path(ended.out.splitlines()[-1])
    document = json.loads((page.parent / "compare.json").read_text())
    assert [column["verdicts"] for column in document["columns"]] == [{"pass": 2}, {"pass": 2}]
    assert Path(document["runs"][1]["folder"]).name > Path(document["runs"][0]["folder"]).name


def test_a_comparison_that_fails_changes_nothing_of_the_runs(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "run_scenario", lambda *_, **__: outcome(folder=str(tmp_path / "gone")))
    file = tmp_path / "small.yaml"
    file.write_text(SCENARIO + "  - qp_errors == 0\n")
    ended = call("run", str(file), "--matrix", "endpoint.ev_active=1,2", "-q")
    assert (ended.status, len(ended.said)) == (0, 1)


def test_what_programs_printed_comes_first_and_has_no_unit() -> None:
    first, second, *others = figures_among(["qp_errors", "program.rate.median", "program.rate.min", "program.rate.min"])
    assert (first.key, first.title, first.shown(47.25)) == ("program.rate.median", "rate, median", "47.2")
    assert (second.title, second.better, tuple(others)) == ("rate, min", "", FIGURES)
