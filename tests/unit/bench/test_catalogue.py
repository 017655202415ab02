"""The tests of the benchmark: the shipped ones are sound, and mistakes in one are told with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.bench.catalogue import BenchSize, BenchTest, TestStatus, load_tests, sections_named
from mrc_testbed.testbed.bench.cells import BenchRequest, beyond_budget, compared, transports_named
from mrc_testbed.testbed.bench.measures import FORMULAS
from mrc_testbed.testbed.bench.running import planned_cases
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.expect import parse_figure
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from tests.unit.bench.tiny import RUN, tiny_suite

TESTS = load_tests()


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.ref)
def test_what_a_shipped_test_names_exists(test: BenchTest) -> None:
    assert set(test.transports) <= set(compared())
    for kpi in test.kpis:
        assert parse_figure(kpi.figure) if kpi.figure else kpi.formula in FORMULAS
        for size in test.sizes.values():
            assert not kpi.longest or kpi.longest in size.matrix
    assert (test.status is TestStatus.ADAPTED) == bool(test.deviations)


@pytest.mark.parametrize("size", [BenchSize.SMALL, pytest.param(BenchSize.DRAFT, marks=pytest.mark.nightly)])
def test_the_scenario_of_each_shipped_test_is_sound(size: BenchSize) -> None:
    cases = planned_cases(BenchRequest(TESTS, tuple(compared()), size))
    assert set(cases) == {test.ref for test in TESTS if test.is_run}
    assert all(cases.values())
    assert not {str(case.settings[0]) for own in cases.values() for case in own} & {"tcp"}


def test_sections_are_named() -> None:
    refs = [test.ref for test in TESTS]
    assert [test.ref for test in sections_named(TESTS, "9.1")] == ["9.1"]
    assert [test.ref for test in sections_named(TESTS, "9, 5.1")] == [
        ref for ref in refs if ref == "5.1" or ref[0] == "9"
    ]
    assert sections_named(TESTS, "") == TESTS
    with pytest.raises(UsageError, match="the benchmark has no test '77'"):
        sections_named(TESTS, "5.1,77")
    with pytest.raises(UsageError, match="'roce' is none of mrc, roce-1, roce-16, tcp"):
        transports_named("mrc,roce")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (RUN.replace("formula: bus_bandwidth", "formulas: x"), "kpis.0"),
        (RUN.replace("why: it is tiny\n", ""), "`why` is missing"),
        (RUN.replace("figure: queue_drops, longest", "formula: bus_bandwidth, longest"), "beside `longest` a figure"),
        (RUN.replace('"1.1"', '"1.3"'), "ref: is 1.3"),
        (RUN.replace("  draft:", "  large:"), "sizes"),
    ],
)
def test_a_mistake_has_its_place(tmp_path: Path, wrong: str, told: str) -> None:
    (tmp_path / "1.1.yaml").write_text(wrong)
    with pytest.raises(UsageError, match=r"1\.1\.yaml") as error:
        load_tests(tmp_path)
    assert told in str(error.value)


def test_no_tests(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="are missing"):
        load_tests(tmp_path)


def test_a_budget_keeps_whole_tests() -> None:
    taking = {"a": 50.0, "b": 60.0, "c": 40.0}
    assert beyond_budget(taking, 100) == ["b"]
    assert beyond_budget(taking, 150) == []
    assert beyond_budget(taking, 0) == ["a", "b", "c"]


def test_more_variants_come_with_their_transport() -> None:
    (ecmp,) = sections_named(TESTS, "8.1")
    (pauses,) = sections_named(TESTS, "7.2")
    assert set(BenchRequest(TESTS, ("roce-1", "mrc")).variants(ecmp)) == {"roce-1", "roce-4", "roce-8", "roce-32"}
    assert BenchRequest(TESTS, ("mrc",)).variants(ecmp) == {}
    assert BenchRequest(TESTS, ("mrc", "roce-1"), world=WorldKind.KERNEL).variants(pauses) == {}


def test_virtual_time_has_no_tcp(tmp_path: Path) -> None:
    tests = tiny_suite(tmp_path)
    cases = planned_cases(BenchRequest(tests, ("mrc", "tcp")))
    assert {case.settings[0].value for case in cases["1.1"]} == {"mrc"}
    assert planned_cases(BenchRequest(tests, ("tcp",))) == {}
