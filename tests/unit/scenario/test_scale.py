"""Scenarios at another scale: what is scaled, what is refused, and that a run does the same, only faster."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.timing import Timing
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.errors import ExitCode, ScenarioError
from mrc_testbed.testbed.expect import parse_expectation
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.frames.run import load_run
from mrc_testbed.testbed.rundir.planned import recorded_scenario
from mrc_testbed.testbed.scenario import Scenario, load_scenario
from mrc_testbed.testbed.scenario.faults import KINDS
from mrc_testbed.testbed.scenario.model.scale import _kinds, scaled_expectation, scaled_ns
from mrc_testbed.testbed.scenario.text.units import RATE
from tests.unit.calls import Call

SMALL = Path(__file__).parents[1] / "small_virtual.yaml"


def at_scale(scale: object, *changes: str) -> Scenario:
    return load_scenario("quickstart", ["world=virtual", f"scale={scale}", *changes])


def test_real_is_a_hundred_gigabits_a_port() -> None:
    real = at_scale("real")
    assert real.speed == real.shape().speed == 8000
    assert (real.shape().port_rate_bps, real.shape().rtt_ns) == (100_000_000_000, 5000)


def test_a_hundred_gigabits_are_for_each_plane_also_where_planes_are_folded() -> None:
    assert at_scale("real", "transport=roce", "expect=[]").shape().port_rate_bps == 400_000_000_000


@settings(deadline=None)
@given(st.integers(1, 8000))
@pytest.mark.nightly
def test_times_are_shorter_and_rates_higher_by_the_same_factor(times: int) -> None:
    usual, fast = at_scale(1), at_scale(times)
    assert fast.shape().port_rate_bps == times * usual.shape().port_rate_bps
    assert abs(fast.estimate_ns * times - usual.estimate_ns) <= usual.estimate_ns / 100 + 1000 * times
    assert abs(fast.time_limit_ns * times - usual.time_limit_ns) <= usual.time_limit_ns / 100 + 1000 * times
    for one, other in zip(usual.occurrences, fast.occurrences, strict=True):
        assert (one.targets, one.number) == (other.targets, other.number)
        assert abs(other.begin_ns * times - one.begin_ns) <= times
        assert abs(other.end_ns * times - one.end_ns) <= times


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**6))
def test_a_time_is_scaled_to_the_nearest_ns_and_never_to_none(value_ns: int, speed: int) -> None:
    found = scaled_ns(value_ns, speed)
    assert abs(found * speed - value_ns) <= max(speed // 2, speed if abs(found) == 1 else 0)
    assert bool(found) == bool(value_ns)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("step_time.p100 <= 2.4s during faults", "step_time.p100 <= 300 us during faults"),
        ("stall.p100 <= 80ms", "stall.p100 <= 10 us"),
        ("stall.p100 <= 2min", "stall.p100 <= 15 ms"),
        ("goodput >= 1 MiB/s from 4s to 6s", "goodput >= 7.8125 GiB/s from 0.5 ms to 0.75 ms"),
        ("flow_goodput.min >= 10 mbit", "flow_goodput.min >= 80 gbit"),
        ("packets_lost == 0 after cut heals + 8s for 2s", "packets_lost == 0 after cut heals + 1 ms for 0.25 ms"),
    ],
)
def test_bounds_and_windows_of_expectations_are_scaled(line: str, said: str) -> None:
    found = scaled_expectation(parse_expectation(line), 8000)
    assert found.text == said
    assert found.demand == said[said.index(found.op) :]
    assert parse_expectation(said).bound == found.bound


@pytest.mark.parametrize(
    "line", ["recovery.p100 <= 8 rtt", "goodput >= 0.9 line", "step_time.p100 <= 1.5 x clean.median"]
)
def test_what_has_no_time_or_rate_of_its_own_stays_as_it_is(line: str) -> None:
    assert scaled_expectation(parse_expectation(line), 8000) == parse_expectation(line)


def test_times_are_scaled_wherever_they_are() -> None:
    parts = "workload=[{train: {steps: 2, step: [{compute: 80ms}, {allreduce: {size: 4MiB}}]}}]"
    changes = [parts, "endpoint.timeout=2s", "faults=[]", "expect=[]", "time_limit=8min"]
    changes += ["virtual.busy=80us", "virtual.lateness=40us"]
    real = at_scale("real", *changes)
    text = repr(real.workload)
    assert "10000" in text
    assert "80000000" not in text
    assert (real.endpoint.timeout_ns, real.time_limit_ns, real.virtual.busy_ns) == (250_000, 60_000_000, 10)
    assert real.virtual.lateness_ns == 5


def test_a_slow_link_says_the_rate_that_it_has() -> None:
    fault = "faults=[{at: 1s, link-rate: p1-t0-0:p1-t1-0, rate: 6.25mbit, for: 1s}]"
    (slow,) = at_scale("real", fault, "expect=[]").occurrences
    assert slow.parameters.rate_bps == 50_000_000_000
    assert slow.title.endswith(" at 50gbit")


def test_validate_tells_times_as_they_are_written(call: Call) -> None:
    chaos = "faults=[{at: 1s, for: 9s, chaos: {link-down: 60/min, link-rate: {times: 60/min, rate: 1mbit}}}]"
    changes = ["world=virtual", chaos, "expect=[]", "capture=[{links: h0:*, around: all}]"]
    usual, real = (
        call("validate", "quickstart", *(f"--set={change}" for change in (*changes, f"scale={scale}"))).out.splitlines()
        for scale in ("1", "real")
    )
    assert len(usual) > 5
    assert real[1:] == usual[1:]
    assert re.search(r" s in virtual time, [\d.]+ s to [\d.]+ s here$", usual[0])
    assert real[0] == usual[0].replace(" s in", " s as written in") + ", 8000 times as fast"


def test_times_and_rates_of_every_kind_of_fault_are_known() -> None:
    rate = KINDS["link-rate"]
    assert _kinds(rate)["rate_bps"] is RATE
    assert {name for name, kind in _kinds(KINDS["link-flap"]).items() if kind} == {"period_ns"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["scale=real"], "only virtual time is faster than written; write `world: virtual` or remove this key"),
        (["world=virtual", "scale=0"], "must be `real` or a whole number from 1 to 1000000, such as 8000"),
        (["world=virtual", "scale=fast"], "must be `real` or a whole number from 1 to 1000000, such as 8000"),
        (
            ["world=virtual", "scale=70000", "fabric.rtt=100ms"],
            "ports would have 875gbit; write at most 64000",
        ),
        (
            ["world=virtual", "scale=8000", "fabric.rtt=4ms"],
            "T would be 500 ns, and the least is 1000 ns; write at most 4000",
        ),
    ],
)
def test_a_scale_that_cannot_be_is_refused_in_one_sentence(changes: list[str], sentence: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario("quickstart", changes)
    (problem,) = caught.value.problems
    assert sentence in problem.message


def test_least_times_of_software_are_shorter_and_units_of_the_protocol_are_its_own() -> None:
    usual = EndpointConfig(host=0, planes=4, udp_port=0xC000, rtt_ns=40_000_000, port_rate_bps=12_500_000)
    real = replace(usual, rtt_ns=5000, port_rate_bps=100_000_000_000, swift=8000)
    assert Timing(real).probe_interval_ns() == 20_000
    assert Timing(replace(usual, rtt_ns=1000, port_rate_bps=100_000_000_000)).probe_interval_ns() == 10_000_000
    assert Timing(real).rto_ns() == 32 * 1024
    assert (usual.stamp_shift, real.stamp_shift) == (13, 7)


def run(out: Path, *changes: str) -> Path:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        scenario = load_scenario(SMALL, ["world=virtual", *changes])
        outcome = run_scenario(scenario, out, True, PatientConsole(file=nowhere))
    assert outcome.exit_code is ExitCode.PASS
    assert outcome.folder is not None
    return outcome.folder


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("real"), "scale=real")


def step_times(folder: Path) -> list[float]:
    return [float(lasted) for lasted in load_run(folder).steps["duration_ns"]]


def test_a_run_at_real_scale_takes_as_many_round_trips(real: Path, tmp_path: Path) -> None:
    for fast, usual in zip(step_times(real), step_times(run(tmp_path)), strict=True):
        assert fast * 8000 == pytest.approx(usual, rel=0.15)


def test_its_folder_replays_at_its_scale_with_the_same_schedule(real: Path) -> None:
    again = recorded_scenario(real)
    assert again.speed == 8000
    assert [one.begin_ns for one in again.occurrences][:2] == [25_000, 62_500]


def test_what_people_read_of_it_has_readable_units(real: Path) -> None:
    summary = (real / "summary.txt").read_text(encoding="utf-8")
    assert "ports of 100 Gb/s" in summary
    assert "T 5 us" in summary
