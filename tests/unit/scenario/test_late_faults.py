"""Faults that begin when the workload has ended, and what a run in virtual time takes of this machine."""

from __future__ import annotations

import pytest

from mrc_testbed.hosts import compiled
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.model.wall_time import wall_time
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings

TEXT = """
name: late
world: virtual
workload: [{train: {steps: 10, compute: 100ms, allreduce: 4MiB}}]
faults: [FAULT]
"""
LATE = "{at: AT, link-down: p0-t0-0:p0-t1-0, for: 100ms, name: cut}"
FLAP = "{at: AT, link-flap: p0-t0-0:p0-t1-0, period: 1s, count: 4, name: flap}"


def told(fault: str, *changes: str) -> list[str]:
    return list(scenario_warnings(load_scenario_text(TEXT.replace("FAULT", fault), overrides=changes)))


def end_s() -> float:
    return load_scenario_text(TEXT.replace("FAULT", "")).estimate_ns / 1e9


def test_a_fault_after_the_end_of_the_work_is_told() -> None:
    assert told(LATE.replace("AT", f"{end_s() - 0.1:.2f}s")) == []
    at = f"{end_s() + 0.1:.2f}s"
    (warning,) = told(LATE.replace("AT", at))
    assert warning == (
        f"cut: begins at {at}, when the workload has ended, after about {end_s():.1f} s without faults; "
        "begin earlier, or make the workload longer"
    )
    assert told(LATE.replace("AT", at), "scale=real") == [warning], "times as written"


def test_of_cycles_those_after_the_end_are_counted() -> None:
    (warning,) = told(FLAP.replace("AT", f"{end_s() - 1.5:.2f}s"))
    assert warning.startswith(
        f"flap: 2 of 4 cycles begin at {end_s() + 0.5:.2f}s or later, when the workload has ended"
    )


def test_the_end_of_programs_is_not_known() -> None:
    programs = "workload=[{programs: {command: sleep 1, hosts: [h0, h4]}}]"
    assert not [one for one in told(LATE.replace("AT", "2s"), "world=kernel", programs) if "has ended" in one]


@pytest.mark.parametrize(("bytes_more", "least_more_s"), [(100_000_000, 0.05), (1_000_000_000, 0.5)])
def test_more_packets_take_more_of_a_core(
    bytes_more: int, least_more_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "in_use", lambda: "compiled")
    few, many = (wall_time(flow_of(size)) for size in (4096, bytes_more))
    assert many.least_s - few.least_s > least_more_s
    assert few.least_s < 1.5 < few.most_s
    monkeypatch.setattr(compiled, "in_use", lambda: "python")
    assert wall_time(flow_of(bytes_more)).least_s - few.least_s > 4 * least_more_s, "the core in Python"


def test_runs_one_after_the_other_take_the_sum() -> None:
    one, two = wall_time(flow_of(4096)), wall_time(flow_of(4096), flow_of(4096))
    assert (two.least_s, two.most_s) == pytest.approx((2 * one.least_s, 2 * one.most_s))


def flow_of(size: int) -> Scenario:
    text = f"name: flow\nworld: virtual\nworkload: [{{write: {{from: h0, to: h4, bytes: {size}B}}}}]\n"
    return load_scenario_text(text)
