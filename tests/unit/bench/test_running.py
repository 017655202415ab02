"""A tiny benchmark as a whole: run, broken off and gone on with, written, read and held against its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mrc_testbed.testbed.bench.catalogue import BenchSize
from mrc_testbed.testbed.bench.cells import BenchRequest
from mrc_testbed.testbed.bench.document import SCHEMA_FILE, BenchDocument, KpiResult, bench_schema, read_bench
from mrc_testbed.testbed.bench.running import exit_code, open_bench, write_bench
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.sweep.drive import DriveLimits, SweepProgress, drive
from mrc_testbed.testbed.sweep.engine_local import LocalEngine
from mrc_testbed.testbed.sweep.folder import SweepFolder
from tests.unit.bench.tiny import tiny_suite
from tests.unit.calls import Call


class Nobody:
    """Watches."""

    def show(self, progress: SweepProgress) -> None: ...

    def line(self, text: str) -> None: ...


def run_cells(folder: SweepFolder, count: int | None = None) -> int:
    """Run up to `count` of the open cells; how many tries there were."""
    return drive(folder, folder.open_cells()[:count], LocalEngine(2), DriveLimits(0, "evidence", ()), Nobody()).tries


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> BenchRequest:
    return BenchRequest(tiny_suite(tmp_path_factory.mktemp("suite")), ("mrc", "roce-1", "tcp"))


@pytest.fixture(scope="module")
def document(place: Path, request_: BenchRequest) -> BenchDocument:
    folder = open_bench(request_, place)
    assert [cell.settings["variant"] for cell in folder.cells] == ["mrc", "mrc", "roce-1", "roce-1"]
    assert run_cells(folder, 1) == 1
    first = write_bench(request_, place, folder)
    assert exit_code(folder) is ExitCode.INCONCLUSIVE
    assert len(first.tests[0].anomalies) == 3
    again = open_bench(request_, place)
    assert run_cells(again) == 3
    assert run_cells(again) == 0
    assert exit_code(again) is ExitCode.PASS
    return write_bench(request_, place, again)


def kpis(document: BenchDocument, name: str, transport: str) -> list[KpiResult]:
    return [one for one in document.tests[0].kpis if (one.name, one.transport) == (name, transport)]


def test_the_document(document: BenchDocument, place: Path) -> None:
    test, other = document.tests
    assert (test.iterations, test.parameters) == (1, {"workload.0.allreduce.size": ["64KiB", "256KiB"]})
    assert test.anomalies == []
    assert test.deviations[-1] == "tcp was not run: virtual time has no tcp, which a kernel makes"
    assert all((place / run / "verdict.json").is_file() for run in test.runs)
    assert (other.status, other.why, other.kpis, other.runs) == ("not-run", "there is no hardware", [], [])
    assert read_bench(place) == document


def test_the_schema_holds_it(document: BenchDocument, place: Path) -> None:
    schema = json.loads(SCHEMA_FILE.read_text())
    assert schema == bench_schema(), "run: python tools/make_schema.py"
    jsonschema.validate(json.loads((place / "bench.json").read_text()), schema)


def test_bus_bandwidth_follows_from_the_times(document: BenchDocument) -> None:
    """Two ranks: each sends size x 2 x 1/2 in a step."""
    small, large = kpis(document, "bus bandwidth", "mrc")
    assert (small.n, small.runs, small.cv) == (3, 1, None)
    times = kpis(document, "time", "mrc")
    for found, size, took in zip((small, large), (64 << 10, 256 << 10), times, strict=True):
        assert took.p50 is not None
        assert found.p50 == pytest.approx(size * 8 / 1e9 / (took.p50 / 1e6), rel=0.01)


def test_ratios_and_longest(document: BenchDocument) -> None:
    for transport in ("mrc", "roce-1"):
        small, large = kpis(document, "time", transport)
        (slower,) = kpis(document, "slower", transport)
        assert slower.parameters == {"workload.0.allreduce.size": "256KiB"}
        assert small.mean
        assert large.mean
        assert slower.mean == pytest.approx(large.mean / small.mean)
        (longest,) = kpis(document, "longest without loss", transport)
        assert (longest.mean, longest.parameters) == (256 << 10, {})


def test_a_transport_without_the_figure_has_no_row(document: BenchDocument) -> None:
    assert len(kpis(document, "trims", "mrc")) == 2
    assert kpis(document, "trims", "roce-1") == []


@pytest.mark.usefixtures("document")
def test_a_folder_keeps_to_what_it_was_asked_for(place: Path, request_: BenchRequest, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="of other tests, transports, size or world"):
        open_bench(BenchRequest(request_.tests, ("mrc",)), place)
    with pytest.raises(UsageError, match="of other tests, transports, size or world"):
        open_bench(BenchRequest(request_.tests, request_.transports, BenchSize.DRAFT), place)
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="has 'mine' and is no benchmark"):
        open_bench(request_, tmp_path)
    with pytest.raises(UsageError, match="is no benchmark"):
        open_bench(request_, tmp_path / "mine")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (None, "is missing or unreadable"),
        ({"format": 2}, "is of format 2"),
        ({"size": "huge"}, "size: Input should be 'small' or 'draft'"),
        ({"tests": [{}]}, "tests.0.ref: Field required"),
    ],
)
def test_a_foreign_document(document: BenchDocument, tmp_path: Path, changed: dict[str, Any] | None, told: str) -> None:
    if changed is not None:
        (tmp_path / "bench.json").write_text(json.dumps({**document.model_dump(mode="json"), **changed}))
    with pytest.raises(UsageError, match=r"bench\.json") as error:
        read_bench(tmp_path)
    assert told in str(error.value)


def test_the_commands(call: Call, tmp_path: Path) -> None:
    listed = call("bench", "list")
    assert listed.out.startswith("draft-calabria-bmwg-ai-fabric-training-bench-04\n5.1")
    assert max(map(len, listed.out.splitlines())) <= 80
    assert json.loads(call("bench", "list", "--json").out)["tests"][0]["ref"] == "5.1"
    planned = call("bench", "plan", "--tests", "9.1", "--transports", "mrc", "--jobs", "2")
    assert "9.1    4 runs" in " ".join(planned.out.split("  ")) or "4 runs" in planned.out
    assert "the budget leaves no time for 9.1" in call("bench", "plan", "--tests", "9.1", "--budget", "1s").out
    for words, told in (
        (("--tests", "99"), "no test '99'"),
        (("--transports", "ib"), "'ib' is none of"),
        (("--size", "big"), "must be one of small, draft"),
        (("--budget", "soon"), "--budget soon"),
        (("--tests", "9.1", "--budget", "1s"), "nothing is left to run"),
    ):
        ended = call("bench", "run", "--out", str(tmp_path / "b"), *words)
        assert (ended.status, told in ended.err) == (2, True), ended.err
    assert not (tmp_path / "b").exists()
