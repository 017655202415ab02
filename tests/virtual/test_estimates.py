"""Estimates of how long a workload takes, which time limits follow from, beside runs in virtual time."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.files import read_lines
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text

LEAST, MOST = 0.8, 1.3
"""An estimate over the time that was taken: time limits are three times as long, and longer."""
HEAD = """
name: estimated
world: virtual
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}
expect: [qp_errors == 0]
"""
WRITES = [
    f"write: {{from: h0, to: h2, message: {message}, bytes: {size}, qps: {qps}{depth}}}"
    for (message, size), depth, qps in product(
        (("64B", "100KB"), ("1KiB", "400KB"), ("32KiB", "8MB"), ("1MiB", "16MB")),
        ("", ", depth: 1", ", depth: 64"),
        (1, 4),
    )
]
WRITES_LONG = "{write: {from: h0, to: h2, bytes: 8MB}}"
STEPS = [
    f"{kind}: {{hosts: all, size: 256KiB, iterations: 4, message: {message}}}"
    for kind, message in product(("allreduce", "all-to-all"), ("64B", "512B", "32KiB"))
]
OTHERS = [
    "latency: {from: h0, to: h2, iterations: 40}",
    "poisson: {sizes: websearch, load: 10%, for: 2s, message: 4KiB, qps: 1}",
]


def judged(scenario: Scenario, folder: Path) -> Verdict:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        verdict = run_scenario(scenario, folder, True, PatientConsole(file=nowhere)).verdict
    assert verdict is not None
    return verdict


def ran_ns(text: str, folder: Path) -> tuple[int, int]:
    """What was estimated, and what it took."""
    scenario = load_scenario_text(text, overrides=["time_limit=1000s"])
    assert judged(scenario, folder).status is Status.PASS
    (history,) = folder.glob("2*/history.jsonl")
    begin, *_, end = (line["t_ns"] for line in read_lines(history) if line["op"] == "workload")
    return scenario.estimate_ns, end - begin


@pytest.mark.parametrize("transport", ["mrc", "roce"])
@pytest.mark.parametrize("entry", [*WRITES, *STEPS, *OTHERS])
@pytest.mark.nightly(keep=8)
def test_an_estimate_is_about_what_the_run_takes(entry: str, transport: str, tmp_path: Path) -> None:
    estimate_ns, took_ns = ran_ns(f"{HEAD}transport: {transport}\nworkload: [{{{entry}}}]\n", tmp_path)
    assert LEAST <= estimate_ns / took_ns <= MOST, (estimate_ns / 1e9, took_ns / 1e9)


@pytest.mark.parametrize(("written", "status"), [([], Status.INCONCLUSIVE), (["time_limit=3600ms"], Status.FAIL)])
def test_a_limit_that_nobody_wrote_ends_inconclusive(
    written: list[str], status: Status, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrc_testbed.testbed.scenario.model.models.default_time_limit_ns", lambda *_: 3_600_000_000)
    stops = "faults: [{at: 500ms, host-pause: h2, for: 3s}]\n"
    scenario = load_scenario_text(f"{HEAD}workload: [{WRITES_LONG}]\n{stops}", overrides=written)
    verdict = judged(scenario, tmp_path)
    assert verdict.status is status
    said = "; ".join(map(str, verdict.causes))
    assert ("nobody wrote that limit: write one, `time_limit: 18s`" in said) is (not written)
