"""Runs in virtual time of one seed, scenario and plugin are copies of each other: what differs is an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.compare.copies import unlike_copies
from mrc_testbed.testbed.compare.runs import ComparedRun, load_run
from tests.unit.calls import Call
from tests.unit.checks.test_folder import SCENARIO, RunFolder
from tests.unit.recorded import record_run

VIRTUAL = SCENARIO.replace("name: small", "name: small\nworld: virtual")
Doctor = Callable[[RunFolder], None]


def later(run: RunFolder) -> None:
    """One heal, by a ns."""
    for line in run.history:
        line["t_ns"] += line["op"] == "heal"


def counted(run: RunFolder) -> None:
    """One counter, by one."""
    assert run.counters
    run.counters["hosts"]["h1"]["counters"]["lost_timeout"] += 1


def interrupted(run: RunFolder) -> None:
    later(run)
    run.history.append({"t_ns": run.history[-1]["t_ns"], "op": "interrupt", "type": "info", "error": "SIGTERM"})


def other_seed(run: RunFolder) -> None:
    later(run)
    run.scenario = run.scenario.replace("name: small", "name: small\nseed: 8")


def on_the_kernel(run: RunFolder) -> None:
    later(run)
    run.scenario = SCENARIO


def by_another_version(run: RunFolder) -> None:
    later(run)
    run.environment["version"] = "0.0.9"


def made(folder: Path, doctor: Doctor = lambda _: None, **about: Any) -> Path:
    run = RunFolder(expect=["qp_errors == 0"], scenario=VIRTUAL, **about)
    doctor(run)
    return record_run(folder, run)


def runs(folder: Path, *doctors: Doctor) -> list[ComparedRun]:
    return [load_run(made(folder / str(number), doctor)) for number, doctor in enumerate(doctors)]


@pytest.mark.parametrize(("doctor", "says"), [(later, "history.jsonl (history, row "), (counted, "counters.json (h1)")])
def test_two_copies_that_differ_are_told_with_the_first_difference(tmp_path: Path, doctor: Doctor, says: str) -> None:
    (line,) = unlike_copies(runs(tmp_path, lambda _: None, lambda _: None, doctor))
    assert line.partition(" are one scenario with seed 1 in virtual time, and differ in ")[1]
    assert says in line
    assert "defect of the testbed" in line


@pytest.mark.parametrize("doctor", [lambda _: None, interrupted, other_seed, on_the_kernel, by_another_version])
def test_what_is_no_copy_may_differ(tmp_path: Path, doctor: Doctor) -> None:
    assert not [*unlike_copies(runs(tmp_path, lambda _: None, doctor))]


def test_compare_ends_with_the_error_after_it_has_shown_and_written_all(tmp_path: Path, call: Call) -> None:
    folders = [str(made(tmp_path / name, doctor)) for name, doctor in (("one", lambda _: None), ("two", later))]
    ended = call("compare", *folders, "--out", str(tmp_path / "out"))
    assert ended.status == 3
    assert ended.err.startswith("mrc-testbed: one and two are one scenario with seed ")
    (written,) = (tmp_path / "out").glob("*-compare/compare.json")
    document = json.loads(written.read_text())
    assert len(document["unlike"]) == 1
    assert document["notes"][0] == document["unlike"][0]
