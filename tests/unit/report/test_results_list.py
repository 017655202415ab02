"""`mrc-testbed results`: a row for every run, in whatever state its folder is; and removing runs, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.removal import RunSelection, parse_age, remove, selected
from mrc_testbed.testbed.checks.judge import write_verdict
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.report.listing import age_words, runs_table, size_words
from mrc_testbed.testbed.report.runs import RunState, listed_run, listed_runs
from mrc_testbed.testbed.rundir.ownership import OWNER
from mrc_testbed.testbed.rundir.results import LATEST, began_s, create_folder, point_latest
from tests.unit.calls import Call
from tests.unit.outcomes import outcome

DAY = 86400
NAMES = [f"2026010{day}T120000Z-small" for day in (1, 2, 3, 4)]


def judged(out: Path, name: str, status: Status = Status.PASS) -> Path:
    """A run with a verdict."""
    folder = out / name
    folder.mkdir(parents=True)
    (folder / "scenario.yaml").write_text("name: small\n")
    verdict = outcome(status, "small").verdict
    assert verdict
    write_verdict(verdict, folder, "3 steps, P100 1.5 s")
    return folder


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four runs, a day between them: pass, fail, inconclusive, pass."""
    monkeypatch.chdir(tmp_path)
    statuses = (Status.PASS, Status.FAIL, Status.INCONCLUSIVE, Status.PASS)
    for name, status in zip(NAMES, statuses, strict=True):
        judged(tmp_path / "results", name, status)
    point_latest(Path("results") / NAMES[-1])
    return Path("results")


def names(out: Path) -> list[str]:
    return [run.folder.name for run in listed_runs(out)]


def test_a_run_is_told_by_its_verdict_and_headline(out: Path) -> None:
    runs = listed_runs(out)
    assert [run.folder.name for run in runs] == NAMES, "the newest last"
    assert [run.state for run in runs] == [RunState.PASS, RunState.FAIL, RunState.INCONCLUSIVE, RunState.PASS]
    first = runs[0]
    assert (first.scenario, first.headline, first.note) == ("small", "3 steps, P100 1.5 s", "")
    assert [run.note for run in runs[1:3]] == [
        "network: step_time.p100 <= 2s: observed 2.5 s, expected <= 2 s (one.yaml:7)",
        "machine: timers late (p99): observed 7 ms, expected <= 5 ms",
    ]
    assert first.size_bytes == sum(path.stat().st_size for path in first.folder.iterdir())


def torn(folder: Path) -> None:
    text = (folder / "verdict.json").read_text()
    (folder / "verdict.json").write_text(text[: len(text) // 2])


def unreadable(folder: Path) -> None:
    (folder / "verdict.json").unlink()
    (folder / "verdict.json").mkdir()


def no_scenario(folder: Path) -> None:
    (folder / "logs").mkdir()
    for name in ("scenario.yaml", "verdict.json"):
        (folder / name).unlink()


@pytest.mark.parametrize(
    ("spoil", "state", "says"),
    [
        (torn, RunState.DAMAGED, "verdict.json: is not a complete verdict"),
        (unreadable, RunState.DAMAGED, "verdict.json: cannot be read: Is a directory"),
        (no_scenario, RunState.DAMAGED, "has no scenario.yaml: it ended before it wrote one"),
        (
            lambda folder: (folder / "verdict.json").write_text("[]"),
            RunState.DAMAGED,
            "verdict.json: is not a complete verdict",
        ),
        (
            lambda folder: (folder / "verdict.json").write_text('{"verdict": ["pass"]}'),
            RunState.DAMAGED,
            "verdict.json: is not a complete verdict",
        ),
        (lambda folder: (folder / "verdict.json").write_text('{"verdict": "fail"}'), RunState.FAIL, ""),
        (lambda folder: (folder / "verdict.json").unlink(), RunState.UNJUDGED, ""),
        (lambda folder: (folder / OWNER).write_text("{"), RunState.KILLED, "`mrc-testbed clean` gives it a verdict"),
        (
            lambda folder: (folder / OWNER).mkdir(),
            RunState.DAMAGED,
            "owner.json: is no plain file: move it elsewhere",
        ),
    ],
)
def test_a_spoiled_folder_has_a_row_that_says_so(
    out: Path, call: Call, spoil: Callable[[Path], object], state: RunState, says: str
) -> None:
    spoil(out / NAMES[0])
    run = listed_run(out / NAMES[0])
    assert run.state is state
    assert says in run.note
    assert str(out) not in run.note
    assert run.scenario == "small"
    ended = call("results")
    assert (ended.status, ended.err) == (0, "")
    row = next(line for line in ended.out.splitlines() if line.startswith(NAMES[0]))
    assert state in row
    assert says in row


def test_what_cannot_be_looked_at_has_no_size(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    folder = out / NAMES[0]
    monkeypatch.setattr(os, "scandir", refused)
    assert listed_run(folder).size_bytes == 0


def test_links_in_a_run_are_not_followed(out: Path, tmp_path: Path) -> None:
    before = listed_run(out / NAMES[0]).size_bytes
    (tmp_path / "big").write_bytes(bytes(100_000))
    (out / NAMES[0] / "link").symlink_to(tmp_path / "big")
    (out / NAMES[0] / "links").symlink_to(tmp_path)
    assert listed_run(out / NAMES[0]).size_bytes < before + 1000


def test_the_list_in_a_pipe_has_a_line_a_run(out: Path, call: Call) -> None:
    lines = call("results").out.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == NAMES
    assert lines[2].split()[1] == "pass"
    assert "3 steps, P100 1.5 s" in lines[2]
    assert lines[-1].startswith("results: 4 runs, ")


def test_the_scenario_is_told_where_the_name_does_not(out: Path, call: Call) -> None:
    assert "scenario" not in call("results").out
    (out / NAMES[0]).rename(out / "my favourite")
    lines = call("results").out.splitlines()
    assert "scenario" in lines[0]
    (row,) = (line for line in lines if line.startswith("my favourite"))
    assert "small" in row


def test_the_list_as_data(out: Path, call: Call) -> None:
    runs = json.loads(call("results", "--json").out)
    assert [run["run"] for run in runs] == NAMES
    assert runs[1] == {
        "run": NAMES[1],
        "folder": f"results/{NAMES[1]}",
        "scenario": "small",
        "world": None,
        "verdict": "fail",
        "headline": "3 steps, P100 1.5 s",
        "note": "network: step_time.p100 <= 2s: observed 2.5 s, expected <= 2 s (one.yaml:7)",
        "began": "2026-01-02T12:00:00+00:00",
        "size_bytes": listed_run(out / NAMES[1]).size_bytes,
    }


def test_another_folder(out: Path, tmp_path: Path, call: Call) -> None:
    judged(tmp_path / "more", NAMES[0])
    assert len(json.loads(call("results", "--json").out)) == 4
    assert len(json.loads(call("results", "more", "--json").out)) == 1
    assert len(json.loads(call("results", "--out", "more", "--json").out)) == 1
    assert call("results", "mroe").err == "mrc-testbed: mroe: no such folder\n"  # codespell:ignore
    (out / LATEST).unlink()
    out.rename("away")
    assert call("results").out == "results: no runs\n"


def test_the_table_holds_its_rows_in_eighty_columns(out: Path) -> None:
    from io import StringIO

    from rich.console import Console

    console = Console(file=StringIO(), width=80)
    console.print(runs_table(listed_runs(out), began_s(out / NAMES[-1]) + 90))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("small") >= 4
    assert "90 s" in text


@pytest.mark.parametrize(
    ("seconds", "words"), [(-5, "0 s"), (119, "119 s"), (121, "2 min"), (7300, "2 h"), (3 * DAY + 5, "3 d")]
)
def test_ages(seconds: float, words: str) -> None:
    assert age_words(seconds) == words


def test_sizes() -> None:
    assert [size_words(size) for size in (0, 999, 5449000, 2_720_000_000)] == ["0 B", "999 B", "5.45 MB", "2.72 GB"]
    edges = [size_words(size) for size in (999_499, 999_500, 999_999, 999_499_999, 999_500_000, 1_200_000_000_000)]
    assert edges == ["999 kB", "1 MB", "1 MB", "999 MB", "1 GB", "1200 GB"]


@pytest.mark.parametrize(
    ("selection", "gone"),
    [
        (RunSelection(keep=1), NAMES[:3]),
        (RunSelection(keep=0), NAMES),
        (RunSelection(keep=9), []),
        (RunSelection(older_than_s=2.5 * DAY), NAMES[:1]),
        (RunSelection(state=RunState.PASS), [NAMES[0], NAMES[3]]),
        (RunSelection(keep=1, state=RunState.PASS), [NAMES[0]]),
        (RunSelection(older_than_s=1.5 * DAY, state=RunState.FAIL), [NAMES[1]]),
        (RunSelection(keep=3, older_than_s=0, state=RunState.FAIL), []),
    ],
)
def test_which_runs_are_chosen(out: Path, selection: RunSelection, gone: list[str]) -> None:
    now_s = began_s(out / NAMES[-1]) + 0.5
    assert [run.folder.name for run in selected(out, selection, now_s)] == gone


def test_a_run_that_is_going_on_is_never_chosen_and_refused_by_name(
    out: Path, call: Call, going_on: Callable[[Path], None]
) -> None:
    going_on(out / NAMES[0])
    assert listed_run(out / NAMES[0]).state is RunState.RUNNING
    assert [run.folder.name for run in selected(out, RunSelection(keep=0), 2e9)] == NAMES[1:]
    ended = call("results", "rm", NAMES[0], NAMES[1], "--yes")
    assert ended.status == 2
    assert ended.err == f"mrc-testbed: results/{NAMES[0]}: this run is still going on\n"
    assert names(out) == NAMES, "nothing is removed when one is refused"


@pytest.mark.parametrize(("text", "seconds"), [("7d", 7 * DAY), ("90 min", 5400), ("1.5h", 5400), ("2w", 14 * DAY)])
def test_ages_are_read(text: str, seconds: float) -> None:
    assert parse_age(text) == seconds


@pytest.mark.parametrize("text", ["7", "d", "-1d", "1y", ""])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(UsageError, match="write a number and one of s min h d w, as in 7d"):
        parse_age(text)


def test_removing_mends_latest(out: Path, call: Call) -> None:
    ended = call("results", "rm", "latest", f"results/{NAMES[0]}", NAMES[0], "--yes")
    assert ended.status == 0
    assert names(out) == NAMES[1:3]
    assert (out / LATEST).readlink() == Path(NAMES[2])
    assert call("results", "rm", "--keep", "0", "-y").out.splitlines()[-1].startswith("removed 2 runs, ")
    assert sorted(os.listdir(out)) == []
    assert call("results", "rm", "--keep", "0", "-y").out == "results: nothing to remove\n"


def test_latest_stays_when_its_run_does(out: Path, call: Call) -> None:
    point_latest(out / NAMES[1])
    call("results", "rm", NAMES[0], "-y")
    assert (out / LATEST).readlink() == Path(NAMES[1])


def test_what_is_no_run_or_lies_elsewhere_is_refused(out: Path, tmp_path: Path, call: Call) -> None:
    (out / "20260101T120000Z-paper").mkdir()
    elsewhere = judged(tmp_path / "more", "mine")
    (out / "link").symlink_to(elsewhere)
    for given, says in (
        ("20260101T120000Z-paper", "has no scenario.yaml: not a run folder"),
        ("results", "has no scenario.yaml: not a run folder"),
        (str(elsewhere), "lies not in results; name its results folder with --out"),
        ("link", "lies not in results"),
        ("results/link", "lies not in results"),
        ("../", "not a run folder"),
        ("none", "no such run folder"),
    ):
        ended = call("results", "rm", given, NAMES[0], "--yes")
        assert ended.status == 2, given
        assert says in ended.err
    assert names(out) == NAMES
    assert (elsewhere / "scenario.yaml").exists()


def test_links_inside_a_run_go_and_what_they_lead_to_stays(out: Path, tmp_path: Path, call: Call) -> None:
    elsewhere = judged(tmp_path / "more", "mine")
    (out / NAMES[0] / "pcap").symlink_to(elsewhere)
    assert call("results", "rm", NAMES[0], "-y").status == 0
    assert (elsewhere / "scenario.yaml").exists()


def test_what_wrote_no_scenario_can_be_removed(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = create_folder(Path("results"), "small")
    assert call("results", "rm", folder.name, "-y").status == 0
    assert not folder.exists()


def test_it_asks_on_a_terminal_and_only_there(out: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = call("results", "rm", NAMES[0])
    assert (ended.status, names(out)) == (2, NAMES)
    assert "confirm with --yes" in ended.err
    for answer, left in (("n\n", NAMES), ("\n", NAMES), ("y\n", NAMES[1:])):
        answers = iter(answer.splitlines())
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        monkeypatch.setattr("typer.confirm", lambda _, answers=answers: next(answers) == "y")
        ended = call("results", "rm", NAMES[0])
        assert ended.status == 0
        assert names(out) == left
    assert NAMES[0] in ended.out, "it says which"


@pytest.mark.parametrize("arguments", [(), (NAMES[0], "--keep", "3"), (NAMES[0], "--verdict", "pass")])
def test_runs_are_named_or_chosen_and_not_both(out: Path, call: Call, arguments: tuple[str, ...]) -> None:
    ended = call("results", "rm", *arguments, "-y")
    assert ended.status == 2
    assert "not both" in ended.err
    assert names(out) == NAMES


def test_what_cannot_be_removed_holds_up_nothing_else(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.rmtree

    def partly(folder: Path) -> None:
        if folder.name == NAMES[0]:
            raise PermissionError(13, "Permission denied", str(folder / "verdict.json"))
        real(folder)

    monkeypatch.setattr(shutil, "rmtree", partly)
    with pytest.raises(RunError, match=r"^cannot remove results/.*/verdict\.json: Permission denied$"):
        remove(out, listed_runs(out)[:2])
    assert names(out) == [NAMES[0], *NAMES[2:]]
