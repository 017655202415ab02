"""Runs with one thing changed in their raw files: the judge must notice what decides, and only that.

A packet more or less in one count of one port, and the books no longer balance: nobody may believe the run. Bytes,
marks and depths of queues are no packets that go somewhere: they change nothing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.verdict import Verdict
from tests.oracles.corpus import run_of

RUNS = ("flows", "mapped", "steps", "two-jobs")
BOOKED = (
    *("in_data", "in_trimmed", "in_control", "in_other"),
    *("in_data_dropped", "in_trimmed_dropped", "in_control_dropped"),
    *("out_data", "out_passed", "out_trimmed", "out_trimmed_through", "out_control", "out_other"),
    *("out_control_dropped", "out_other_dropped", "queue_drops_high", "queue_drops_data", "rx_packets"),
)
"""Counts of packets that must be the same somewhere else."""
BESIDE = (
    "in_bytes",
    "out_bytes",
    "in_dropped_bytes",
    "out_dropped_bytes",
    "out_marked",
    "in_corrupted",
    "most_queued_bytes",
)
PORTS = 4
"""Of a run, for each count."""
Change = Callable[[dict[str, Any]], None]


def judged(name: str, folder: Path, file: str, text: str) -> Verdict:
    """The verdict on a run with another text in one file. Sizes are noted to find files that were cut off."""
    own = folder / "run"
    shutil.copytree(run_of(name), own, ignore=shutil.ignore_patterns("report.html", "sizes.json", "logs"))
    (own / file).write_text(text)
    try:
        return judge(load_record(own))
    finally:
        shutil.rmtree(own)


def cut_off(name: str) -> set[str]:
    """Nodes at links that a fault took down: there packets vanish uncounted."""
    lines = map(json.loads, (run_of(name) / "history.jsonl").read_text().splitlines())
    links = [link for line in lines if line["op"] == "inject" for link in line.get("links", ())]
    return {node for link in links for node in link.split(":")}


def changed_counts(name: str, field: str, by: int) -> Iterator[str]:
    """counters.json with that count of one port changed, for a few ports away from cuts."""
    whole = json.loads((run_of(name) / "counters.json").read_text())
    ports = [
        (node, port)
        for node, ports in whole["ports"].items()
        if node not in cut_off(name)
        for port, counts in ports.items()
        if field in counts and counts[field] + by >= 0
    ]
    for node, port in ports[:: max(1, len(ports) // PORTS)]:
        whole["ports"][node][port][field] += by
        yield json.dumps(whole)
        whole["ports"][node][port][field] -= by


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("field", BOOKED)
def test_a_packet_more_or_less_anywhere_and_the_books_do_not_balance(name: str, field: str, tmp_path: Path) -> None:
    for by in (1, -1):
        for text in changed_counts(name, field, by):
            assert not judged(name, tmp_path, "counters.json", text).fidelity.ok


@pytest.mark.parametrize("name", RUNS)
def test_what_is_no_packet_that_goes_somewhere_changes_nothing(name: str, tmp_path: Path) -> None:
    for field in BESIDE:
        for text in list(changed_counts(name, field, 7))[:3]:
            assert judged(name, tmp_path, "counters.json", text).fidelity.ok


def rows(name: str, file: str) -> list[str]:
    return (run_of(name) / file).read_text().splitlines(keepends=True)


def status_of(verdict: Verdict, check: str) -> str:
    return next(one.status.value for one in verdict.checks if one.name == check)


@pytest.mark.parametrize("name", ["steps", "two-jobs", "mapped"])
def test_each_wrong_byte_and_each_step_that_is_lacking_fails(name: str, tmp_path: Path) -> None:
    lines = rows(name, "completions.csv")
    for place in (1, len(lines) // 2, len(lines) - 1):
        wrong = [*lines[:place], f"{lines[place].rstrip().rpartition(',')[0]},3\n", *lines[place + 1 :]]
        verdict = judged(name, tmp_path, "completions.csv", "".join(wrong))
        assert (status_of(verdict, "all data arrived as sent"), verdict.status.value) == ("fail", "fail")
        verdict = judged(name, tmp_path, "completions.csv", "".join([*lines[:place], *lines[place + 1 :]]))
        assert (status_of(verdict, "every rank finished all steps"), verdict.status.value) == ("fail", "fail")


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(("late_ns", "status"), [(150_000_000, "pass"), (400_000_000, "inconclusive")])
def test_a_fault_may_be_late_by_a_quarter_of_a_second(name: str, late_ns: int, status: str, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in rows(name, "history.jsonl")]
    for number, line in enumerate(lines):
        if line["op"] == "inject" and line["type"] == "ok":
            late = [{**each, "t_ns": each["t_ns"] + late_ns} if each is line else each for each in lines]
            verdict = judged(name, tmp_path, "history.jsonl", "".join(f"{json.dumps(each)}\n" for each in late))
            assert status_of(verdict, "every fault was injected and healed") == status, number


@pytest.mark.parametrize("name", RUNS)
def test_a_fault_that_was_not_healed_is_no_pass(name: str, tmp_path: Path) -> None:
    lines = rows(name, "history.jsonl")
    for place, line in enumerate(lines):
        if '"op":"heal"' in line and '"type":"ok"' in line:
            verdict = judged(name, tmp_path, "history.jsonl", "".join([*lines[:place], *lines[place + 1 :]]))
            assert status_of(verdict, "every fault was injected and healed") != "pass"
            failed = [*lines[:place], line.replace('"type":"ok"', '"type":"fail"'), *lines[place + 1 :]]
            verdict = judged(name, tmp_path, "history.jsonl", "".join(failed))
            assert status_of(verdict, "every fault was injected and healed") != "pass"


@pytest.mark.parametrize("name", RUNS)
def test_what_is_shown_beside_a_check_is_what_the_files_say(name: str, tmp_path: Path) -> None:
    shown = {
        one.name: one for one in judged(name, tmp_path, "scenario.yaml", "".join(rows(name, "scenario.yaml"))).checks
    }
    done = [line.split(",") for line in rows(name, "completions.csv")[1:]] if name != "flows" else []
    if done:
        assert shown["data were moved"].observed == sum(int(row[4]) for row in done) / 2**20
        ranks = {row[0]: sum(other[0] == row[0] for other in done) for row in done}
        assert shown["every rank finished all steps"].observed in ranks.values()
    faults = sum('"op":"heal"' in line and '"type":"ok"' in line for line in rows(name, "history.jsonl"))
    assert shown["every fault was injected and healed"].observed == faults
    assert shown["every fault was injected and healed"].expected == f"== {faults}"
    assert shown["all data arrived as sent"].observed == 0
