"""Figures of the machine at and beside their documented limits, each read from a document by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.fidelity import evaluate_fidelity, machine_figures
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Fidelity, FidelityFigure
from mrc_testbed.testbed.checks.world_time import base_rtt
from mrc_testbed.testbed.rundir.lines import Party
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.checks.test_folder import HOSTS, SCENARIO, RunFolder

WELL: dict[str, Any] = {
    "lateness_p99_ns": dict.fromkeys(HOSTS, 0),
    "lateness_max_ns": dict.fromkeys(HOSTS, 0),
    "run_delay": dict.fromkeys(HOSTS, 0.0),
    "udp_rcvbuf_errors": 0,
    "softnet_drops": 0,
    "wall_clock_step_ns": 0,
    "shaped_rate_error": 0.0,
    "cpu_pressure_some": 0.0,
}


def figures(raw: dict[str, Any], *changes: str) -> dict[str, FidelityFigure]:
    scenario = load_scenario_text(f"{SCENARIO}  []\n", overrides=list(changes))
    return dict(zip(WELL, machine_figures(raw, scenario), strict=True))


@pytest.mark.parametrize(
    ("name", "limit", "more", "shown", "unit"),
    [
        ("lateness_p99_ns", 5_000_000, 1, 5, "ms"),  # T is 20 ms
        ("lateness_max_ns", 100_000_000, 1, 100, "ms"),
        ("run_delay", 0.25, 0.001, 25, "%"),
        ("udp_rcvbuf_errors", 0, 1, 0, "packets"),
        ("softnet_drops", 0, 1, 0, "packets"),
        ("wall_clock_step_ns", 5_000_000, 1, 5, "ms"),
        ("shaped_rate_error", 0.05, 0.001, 5, "%"),
        ("cpu_pressure_some", 0.75, 0.001, 75, "%"),
    ],
)
def test_a_figure_at_its_limit_is_good_and_beyond_it_is_not(
    name: str, limit: float, more: float, shown: float, unit: str
) -> None:
    for value, ok in ((limit, True), (limit + more, False)):
        told = {**dict.fromkeys(HOSTS, 0), "h2": value} if isinstance(WELL[name], dict) else value
        found = figures({**WELL, name: told})
        assert {each for each, figure in found.items() if not figure.ok} == ({name} if not ok else set())
        assert (found[name].limit, found[name].unit) == (pytest.approx(shown), unit)
        assert found[name].observed == pytest.approx(value * shown / limit if limit else value)


@pytest.mark.parametrize(
    ("rtt", "late", "standstill"),
    [("4ms", 1.25, 100), ("5ms", 1.25, 100), ("6ms", 1.5, 100), ("20ms", 5, 100), ("40ms", 10, 200)],
)
def test_limits_of_lateness_grow_with_t_from_some_t_on(rtt: str, late: float, standstill: float) -> None:
    found = figures(WELL, f"fabric.rtt={rtt}")
    assert [found[name].limit for name in ("lateness_p99_ns", "lateness_max_ns", "wall_clock_step_ns")] == [
        pytest.approx(late),
        pytest.approx(standstill),
        pytest.approx(late),
    ]


@pytest.mark.parametrize("value", [None, "3", True, 1e18, -1e18, float("nan"), float("inf")])
def test_what_is_no_number_is_not_known_and_not_good(value: Any) -> None:
    for name, usual in WELL.items():
        told = {**usual, "h3": value} if isinstance(usual, dict) else value
        figure = figures({**WELL, name: told})[name]
        assert (figure.observed, figure.ok, figure.why) == (None, False, "not measured")
        excused = figures({**WELL, name: told, "unavailable": {name: "old kernel"}})[name]
        assert (excused.observed, excused.ok, excused.why) == (None, True, "unknown on this machine: old kernel")


@pytest.mark.parametrize("told", [{}, {"h0": 1}, [1], None])
def test_each_host_has_to_tell(told: Any) -> None:
    assert not figures({**WELL, "run_delay": told})["run_delay"].ok


def fidelity(path: Path, raw: dict[str, Any] | None = None, **more: Any) -> Fidelity:
    folder = RunFolder()
    assert folder.fidelity is not None
    folder.fidelity |= raw or {}
    return evaluate_fidelity(replace(load_record(folder.write(path)), **more))


def named(found: Fidelity, name: str) -> FidelityFigure | None:
    return next((figure for figure in found.figures if figure.name == name), None)


@pytest.mark.parametrize(("late", "ok"), [(2, True), (3, False)])
def test_packets_that_an_endpoint_handled_late(tmp_path: Path, late: int, ok: bool) -> None:
    counters = {host: {"packets_late": 0, "packets_in": 100} for host in HOSTS}
    counters["h1"]["packets_late"] = late
    figure = named(fidelity(tmp_path, counters=counters), "packets handled late")
    assert figure
    assert (figure.observed, figure.limit, figure.unit, figure.ok) == (pytest.approx(late), 2, "%", ok)


def test_a_host_that_got_nothing_may_have_been_late_for_one_packet(tmp_path: Path) -> None:
    counters = {"h0": {"packets_late": 1, "packets_in": 0}, "h1": {"packets_in": 7}}
    figure = named(fidelity(tmp_path, counters=counters), "packets handled late")
    assert figure
    assert figure.observed == pytest.approx(100)
    assert named(fidelity(tmp_path, counters={"h1": {"packets_in": 7}}), "packets handled late") is None


LATE = {"node": "p0-t0-0", "port": "up1", "most_ns": 3_000_000}


@pytest.mark.parametrize(
    ("told", "observed", "ok", "why"),
    [
        ({**LATE, "share": 0.02}, 2, True, ""),
        ({**LATE, "share": 0.03}, 3, False, "of what came in by up1 of p0-t0-0, up to 3 ms late"),
        ({**LATE, "share": 0.03, "most_ns": 0}, 3, False, "of what came in by up1 of p0-t0-0"),
        ({"node": "h0"}, None, False, "not measured"),
        ("much", None, False, "not measured"),
    ],
)
def test_packets_that_were_late_on_a_link(tmp_path: Path, told: Any, observed: float, ok: bool, why: str) -> None:
    figure = named(fidelity(tmp_path, {"late_on_links": told}), "packets late on a link")
    assert figure
    assert (figure.observed, figure.limit, figure.ok, figure.why) == (
        pytest.approx(observed) if observed else observed,
        2,
        ok,
        why,
    )


def test_a_run_that_did_not_count_them_has_no_such_figure(tmp_path: Path) -> None:
    assert named(fidelity(tmp_path), "packets late on a link") is None
    figure = named(fidelity(tmp_path, {"unavailable": {"late_on_links": "veth"}}), "packets late on a link")
    assert figure
    assert (figure.ok, figure.why) == (True, "unknown on this machine: veth")


@pytest.mark.parametrize(
    ("name", "limit", "more", "label"),
    [
        ("dropped", 0, 1, "drops of the kernel delay"),
        ("unstamped", 0, 1, "packets without a time of arrival"),
        ("late_p99_ns", 5_000_000, 1, "kernel delay late (p99)"),
        ("late_max_ns", 100_000_000, 1, "kernel delay late (worst)"),
    ],
)
def test_the_kernel_s_delay_has_limits_where_it_makes_t(
    tmp_path: Path, name: str, limit: int, more: int, label: str
) -> None:
    well = {"dropped": 0, "unstamped": 0, "late_p99_ns": 0, "late_max_ns": 0}
    environment = {"delay": "nfqueue", "base_rtt_ns": 25_000_000}
    for value, ok in ((limit, True), (limit + more, False)):
        found = fidelity(tmp_path, {"kernel_delay": {**well, name: value}}, environment=environment)
        labels = [figure.name for figure in found.figures if "kernel delay" in figure.name or "arrival" in figure.name]
        assert len(labels) == 4
        assert [figure.name for figure in found.figures if figure.name in labels and not figure.ok] == [label] * (
            not ok
        )
    missing = fidelity(tmp_path, {"kernel_delay": 3}, environment=environment)
    assert not any(figure.ok for figure in missing.figures if figure.name in labels)
    assert named(fidelity(tmp_path, {"kernel_delay": well}), label) is None


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    return load_record(RunFolder().write(tmp_path))


@pytest.mark.parametrize(
    ("base_rtt_ns", "ok", "limit"),
    [
        (18_999_871, False, 19),  # 0.95 T, and what stamps are rounded by
        (18_999_872, True, None),
        (29_424_640, True, None),  # 1.2 T, and four links of 4238 bytes at 25 Mb/s
        (29_424_641, False, 29.42464),
        (None, False, 29.42464),
    ],
)
def test_the_base_round_trip_has_a_least_and_a_most(
    record: RunRecord, base_rtt_ns: int | None, ok: bool, limit: float | None
) -> None:
    (figure,) = base_rtt(replace(record, environment={"base_rtt_ns": base_rtt_ns}))
    assert (figure.ok, figure.limit, figure.unit) == (ok, limit and pytest.approx(limit), "ms")
    assert figure.observed == (None if base_rtt_ns is None else pytest.approx(base_rtt_ns / 1e6))


def test_what_hosts_took_beside_the_round_trip_is_told(record: RunRecord) -> None:
    (figure,) = base_rtt(replace(record, environment={"base_rtt_ns": 30_000_000}))
    assert figure.why == "hosts took 10 ms beside a round trip of 20 ms: not a result about the network"
    assert figure.who is Party.MACHINE
    (figure,) = base_rtt(replace(record, environment={"base_rtt_ns": 10_000_000}))
    assert figure.why == "packets arrived before they can have, T is 20 ms: not a result about the network"
