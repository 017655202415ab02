"""Every metric is declared once, computed once and documented once; and a plugin can add one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from recorded import record_run
from test_checks_flows import FlowFolder
from test_checks_folder import SCENARIO, RunFolder

from mrc_testbed.testbed.checks.computation import COMPUTATIONS, computes
from mrc_testbed.testbed.checks.figure import ask, evaluate_figure
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.statistics import statistic
from mrc_testbed.testbed.expect import METRICS, Figure, Metric, Window, parse_figure
from mrc_testbed.testbed.expect.vocabulary import By, Dimension, Windows
from tests import documented

PAGE = Path(__file__).parents[2] / "docs" / "scenario.md"
HEAD = ["metric", "statistics", "unit of the bound", "windows", "of", "definition"]
UNITS = {
    Dimension.COUNT: ("none",),
    Dimension.BYTES: ("none, `KiB`",),
    Dimension.TIME: ("time",),
    Dimension.RATE: ("`MiB/s`, `mbit`, `line`, ...", "as `goodput`"),
}
WINDOWS = {
    Windows.RUN: "run",
    Windows.FAULTS: "run, `during`",
    Windows.EVENTS: "run, `during`, `after`",
    Windows.ANY: "any",
}
BY = {By.HOST: "host", By.PAIR: "pair", By.FLOW: "flow", By.JOB: "job"}


def documented_metrics() -> dict[str, list[str]]:
    """The other cells of each metric's row."""
    text = PAGE.read_text(encoding="utf-8")
    return {name: row[1:] for row in documented.table(text, HEAD) for name in documented.words(row[0])}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[RunRecord]:
    """Of a job of steps, and of flows."""
    steps, flows = tmp_path_factory.mktemp("steps"), tmp_path_factory.mktemp("flows")
    return [load_record(record_run(steps)), load_record(FlowFolder().write(flows))]


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_a_metric_is_declared_computed_and_documented_once(metric: Metric) -> None:
    assert parse_figure(metric.example) == Figure(metric, metric.example.partition(".")[2] or None)
    assert (metric.name in COMPUTATIONS) is not bool(metric.counter), "either a function or a counter"
    assert all(statistic([1.0], stat) == 1 for stat in metric.stats)
    stats, unit, windows, whom, definition = documented_metrics()[metric.name]
    assert stats == " ".join(metric.stats)
    assert unit in UNITS[metric.dimension]
    assert windows == WINDOWS[metric.windows]
    assert whom == ", ".join(BY[by] for by in metric.by)
    assert definition


def test_nothing_is_computed_or_documented_that_is_not_declared() -> None:
    assert set(COMPUTATIONS) <= set(METRICS)
    assert set(documented_metrics()) == set(METRICS)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_a_run_gives_every_metric_or_says_why_not(metric: Metric, records: list[RunRecord]) -> None:
    figure = parse_figure(metric.example)
    for record in records:
        found = evaluate_figure(record, figure)
        assert (found.value is None) is bool(found.why)
        if found.value is not None and not metric.counter:
            values = COMPUTATIONS[metric.name](record, Window())
            assert isinstance(values, Sequence) is bool(metric.stats), "statistics are taken of values"


def test_the_example_of_the_manual_adds_a_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?PLUGIN.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    monkeypatch.setenv("MRC_TRUST_PLUGINS", "1")
    (tmp_path / "step_bytes.py").write_text(example)
    scenario = f"plugins: [step_bytes.py]\n{SCENARIO}"
    record = load_record(RunFolder(expect=["step_bytes.max == 4 MiB"], scenario=scenario).write(tmp_path))
    assert judge(record).checks[0].status is Status.PASS
    assert ask(record, "step_bytes.min", "MiB").value == 4


def test_a_counter_of_endpoints_needs_no_function(tmp_path: Path) -> None:
    resent = Metric("resent", Dimension.COUNT, "sent again", Windows.ANY, by=By.HOST, counter="retransmitted")
    record = load_record(RunFolder().write(tmp_path))
    for words in ("", " of h3", " during cut"):
        ours = parse_figure(f"retransmissions{words}")
        assert evaluate_figure(record, replace(ours, metric=resent)) == evaluate_figure(record, ours)


def test_a_second_computation_is_refused() -> None:
    with pytest.raises(ValueError, match="duplicate computation of goodput"):
        computes("goodput")(lambda record, window: 0)
