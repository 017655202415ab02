"""grafana/mrc.json: places of panels, and every query read by another project, against the registry and a run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_text

from make_dashboard import DASHBOARD, WIDTH, text
from mrc_testbed.testbed.app.recorded_series import METRICS_FILE, recorded_readings
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.metrics.exposition import prometheus_text
from mrc_testbed.testbed.metrics.registry import FAMILIES, SeriesKind
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.sizes import SIZES
from mrc_testbed.testbed.scenario import load_scenario

SMALL = Path(__file__).parents[1] / "small_virtual.yaml"
SUFFIXES = {
    SeriesKind.COUNTER: ("_total",),
    SeriesKind.INFO: ("_info",),
    SeriesKind.HISTOGRAM: ("_bucket", "_sum", "_count"),
}
NEVER_IN_A_SMALL_RUN = {"mrc_qp_stalled_seconds"}

Series = dict[str, list[dict[str, str]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dashboard")
    outcome = run_scenario(load_scenario(SMALL, ["world=virtual"]), out, True, PatientConsole(quiet=True))
    assert outcome.folder is not None
    return outcome.folder


@pytest.fixture(scope="module")
def series(folder: Path) -> Series:
    """By name of sample its label sets, as another project's parser reads the file of a run."""
    found: Series = {}
    parse: Any = text_string_to_metric_families
    for family in parse((folder / METRICS_FILE).read_text()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def names_of(family: str) -> tuple[str, ...]:
    return tuple(family + suffix for suffix in SUFFIXES.get(FAMILIES[family].kind, ("",)))


SAMPLES = {name: family for family in FAMILIES for name in names_of(family)}


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def queries() -> list[str]:
    content = json.loads(DASHBOARD.read_text())
    return [target["expr"] for panel in panels() for target in panel["targets"]] + [
        one["expr"] for one in content["annotations"]["list"]
    ]


def selectors(query: str) -> list[promql.VectorSelector]:
    """All of a query, with the variables of Grafana filled in."""
    found: list[promql.VectorSelector] = []

    def visit(node: Any) -> None:
        if isinstance(node, promql.VectorSelector):
            found.append(node)
        for name in ("lhs", "rhs", "expr", "param", "vector_selector"):
            if (part := getattr(node, name, None)) is not None:
                visit(part)
        for part in getattr(node, "args", None) or ():
            visit(part)

    visit(promql.parse(query.replace("$__rate_interval", "1m").replace("$plane", ".*")))
    return found


def matches(labels: dict[str, str], selector: promql.VectorSelector) -> bool:
    tests: dict[str, Any] = {
        "MatchOp.Equal": lambda own, value: own == value,
        "MatchOp.NotEqual": lambda own, value: own != value,
        "MatchOp.Re": lambda own, value: re.fullmatch(value, own) is not None,
    }
    return all(tests[str(one.op)](labels.get(one.name, ""), one.value) for one in selector.matchers.matchers)


def test_the_file_is_what_the_tool_writes() -> None:
    assert DASHBOARD.read_text() == text(), "run: python tools/make_dashboard.py"


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in panels()}) == len(panels())
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        assert at["x"] >= 0
        assert at["x"] + at["w"] <= WIDTH
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("query", queries())
def test_a_query_asks_for_what_is_exported(query: str, series: Series) -> None:
    found = selectors(query)
    assert found
    for selector in found:
        name = str(selector.name)
        family = FAMILIES[SAMPLES[name]]
        assert not family.truth, "a dashboard of operators"
        for matcher in selector.matchers.matchers:
            assert matcher.name in family.labels
        assert [labels for labels in series[name] if matches(labels, selector)], f"{query}: nothing in a run matches"


def test_every_family_that_a_run_can_have_is_in_its_file(series: Series, folder: Path) -> None:
    there = {SAMPLES[name] for name in series}
    lacking = {name for name, family in FAMILIES.items() if not family.truth} - there - NEVER_IN_A_SMALL_RUN
    assert lacking == {"mrc_flow_delivered_bytes", "mrc_message_duration_seconds"}, "a job of steps has no flows"


def test_the_older_text_has_the_same_samples(folder: Path, series: Series) -> None:
    record = load_record(folder)
    families = older_text(prometheus_text(recorded_readings(record, None)))
    names = {sample.name for family in families for sample in family.samples}
    assert names == {
        name for name in series if not SAMPLES[name].startswith(("mrc_verdict", "mrc_fidelity", "mrc_check"))
    }


def test_units_of_panels_fit_their_metrics() -> None:
    for panel in panels():
        unit = panel["fieldConfig"]["defaults"]["unit"]
        for target in panel["targets"]:
            units = {FAMILIES[SAMPLES[str(one.name)]].unit for one in selectors(target["expr"])} - {"seconds"}
            if unit == "bps":
                assert units == {"bytes"}
                assert "* 8" in target["expr"]
            else:
                assert "bytes" not in units, panel["title"]


def iterate(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for part in value.values():
            yield from iterate(part)
    elif isinstance(value, list):
        for part in value:
            yield from iterate(part)
    elif isinstance(value, str):
        yield value


def test_nothing_of_this_machine_is_in_it() -> None:
    assert not [text for text in iterate(json.loads(DASHBOARD.read_text())) if text.startswith(("/", "http"))]


def test_a_killed_run_ends_in_the_middle_of_a_row(folder: Path, series: Series, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    shutil.copytree(folder, killed)
    (killed / SIZES).unlink()
    samples = killed / "samples.csv"
    samples.write_bytes(samples.read_bytes() + b"1,h0,port0,1,2,3,4,5,")
    found = [one for one in recorded_readings(load_record(killed), None) if one.family.startswith("mrc_link_rx_bytes")]
    assert len(found) == len(series["mrc_link_rx_bytes_total"])
