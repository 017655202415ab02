"""`mrc-testbed report`: which runs get a page, and what a page can never cost."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from mrc_testbed.testbed.app.judge import judge_folder
from mrc_testbed.testbed.app.report_page import make_report
from mrc_testbed.testbed.checks.judge import read_verdict
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.rundir.ownership import OWNER
from tests.unit.calls import Call
from tests.unit.checks.test_folder import HOSTS, RunFolder

QUIET = Console(quiet=True)


def made(tmp_path: Path, name: str = "run") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return RunFolder().write(folder)


def test_every_judged_run_has_its_page(tmp_path: Path) -> None:
    folder = made(tmp_path)
    judge_folder(folder, QUIET, quiet=True)
    assert "PASS" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_page_that_cannot_be_made_costs_one_line_and_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no such colour")

    monkeypatch.setattr("mrc_testbed.testbed.app.judge.write_report", fail)
    folder, out = made(tmp_path), io.StringIO()
    outcome = judge_folder(folder, Console(file=out, width=200), quiet=True)
    assert outcome.verdict
    assert outcome.verdict.status is Status.PASS
    told = f"warning: {folder}/report.html could not be made: ValueError: no such colour"
    assert out.getvalue().splitlines()[0] == told
    assert (folder / "verdict.json").exists()


def test_the_verdict_is_taken_as_it_was_written(tmp_path: Path) -> None:
    folder = made(tmp_path)
    judge_folder(folder, QUIET, quiet=True)
    written = json.loads((folder / "verdict.json").read_text())
    written["verdict"] = "fail"
    (folder / "verdict.json").write_text(json.dumps(written))
    assert "<strong>FAIL</strong>" in make_report(folder).read_text(encoding="utf-8")


def test_a_verdict_that_cannot_be_read_is_worked_out_again(tmp_path: Path) -> None:
    folder = made(tmp_path)
    (folder / "verdict.json").write_text('{"verdict": "pass"}')
    assert "<strong>PASS</strong>" in make_report(folder).read_text(encoding="utf-8")


def test_a_killed_run_is_judged_first(tmp_path: Path) -> None:
    folder = RunFolder(completions=[])
    folder.completions = folder.completions[: len(HOSTS)]
    folder.counters = folder.fidelity = None
    folder.history = folder.history[:4]
    path = tmp_path / "run"
    path.mkdir()
    folder.write(path)
    (path / OWNER).write_text(json.dumps({"pid": os.getpid(), "started": 0, "boot": "another"}))
    assert "the process of the run ended before there was a verdict" in make_report(path).read_text(encoding="utf-8")
    assert read_verdict(path).status is Status.INCONCLUSIVE
    assert not (path / OWNER).exists()


def test_a_run_that_goes_on_is_left_alone(tmp_path: Path, going_on: Callable[[Path], None]) -> None:
    folder = made(tmp_path)
    going_on(folder)
    with pytest.raises(UsageError, match="still going on"):
        make_report(folder)
    assert not (folder / "verdict.json").exists()


def test_several_runs_of_which_one_is_none(tmp_path: Path, call: Call) -> None:
    first, second = made(tmp_path, "first"), made(tmp_path, "second")
    ended = call("report", str(first), str(tmp_path / "none"), str(second))
    assert ended.status == 2
    assert ended.out.splitlines() == [f"{first}/report.html", f"{second}/report.html"]
    assert len(ended.said) == 1


def test_runs_can_be_named_as_in_results(tmp_path: Path, call: Call) -> None:
    made(tmp_path, "first")
    (tmp_path / "latest").symlink_to("first")
    ended = call("report", "latest", "--out", str(tmp_path))
    assert (ended.status, ended.out) == (0, f"{tmp_path}/first/report.html\n")
