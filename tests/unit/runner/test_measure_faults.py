"""Faults and denials while it is measured: at their time, recorded, read back and healed."""

from __future__ import annotations

from typing import Any

import pytest

from mrc_testbed.testbed.errors import FabricError
from tests.unit.runner.measuring import Bench, S, cold, cut, denied, loss, two


@cut
def test_faults_come_and_go_at_their_time_and_are_read_back(bench: Bench) -> None:
    bench.finish(5)
    bench.run()
    assert bench.fabric.calls == [
        ("port_down", "p0-t1-0", "down0"),
        ("port_up", "p0-t1-0", "down0"),
        ("verify", "p0-t0-0", "p0-t1-0"),
    ]
    assert bench.faults_done() == [
        (op, "cut", outcome) for op in ("inject", "heal", "read-back") for outcome in ("invoke", "ok")
    ]
    times = dict(zip(bench.history("op"), bench.history("t_ns"), strict=True))
    assert times[("inject",)] == (bench.start_ns + 1 * S,)
    assert times[("heal",)] == (bench.start_ns + 3 * S,)
    assert bench.history("links", "target", "cycle")[1] == (["p0-t0-0:p0-t1-0"], "p0-t0-0:p0-t1-0", 0)
    assert bench.told.faults == ["inject cut: link-down p0-t0-0:p0-t1-0", "heal cut: link-down p0-t0-0:p0-t1-0"]


@cut
def test_a_fault_that_cannot_be_injected_ends_the_run_and_is_recorded(bench: Bench) -> None:
    bench.fabric.refuses = {("port_down", "p0-t1-0", "down0")}
    bench.finish(5)
    with pytest.raises(FabricError):
        bench.run()
    assert bench.faults_done() == [("inject", "cut", "invoke"), ("inject", "cut", "fail")]
    assert bench.history("error")[-1] == ("p0-t1-0: port_down: refused by the test",)
    assert bench.told.faults == []


@cut
def test_a_read_back_that_finds_drift_ends_the_run_and_is_recorded(bench: Bench) -> None:
    bench.fabric.refuses = {("verify", "p0-t0-0", "p0-t1-0")}
    bench.finish(5)
    with pytest.raises(FabricError, match=r"verify"):
        bench.run()
    assert bench.faults_done()[2:] == [
        ("heal", "cut", "invoke"),
        ("heal", "cut", "ok"),
        ("read-back", "cut", "invoke"),
        ("read-back", "cut", "fail"),
    ]


@two
def test_what_is_left_broken_is_healed_last_first(bench: Bench) -> None:
    bench.finish(4)
    bench.run()
    bench.fabric.calls.clear()
    bench.measurement.heal_all()
    assert bench.fabric.calls == [
        ("switch_on", "p1-t1-1"),
        ("verify", "p1-t0-0", "p1-t0-1", "p1-t1-1"),
        ("port_up", "p0-t1-0", "down0"),
        ("verify", "p0-t0-0", "p0-t1-0"),
    ]
    assert bench.injector.broken == {}
    assert bench.faults_done()[-8:] == [
        (op, name, outcome)
        for name in ("reboot", "cut")
        for op in ("heal", "read-back")
        for outcome in ("invoke", "ok")
    ]


@two
def test_faults_that_are_due_when_the_workload_is_over_are_left_out(bench: Bench) -> None:
    bench.finish(1.5)
    bench.run()
    bench.measurement.heal_all()
    bench.loop.run_until(lambda: False, bench.start_ns + 15 * S)
    assert [call[0] for call in bench.fabric.calls] == ["port_down", "port_up", "verify"]


def bad(bench: Bench, at_s: float, to: str, uplink: int = 0) -> None:
    bench.say(at_s, "h0", "ev_state", peer="h1", plane=0, uplink=uplink, to=to)


def test_paths_are_waited_for_until_the_last_is_good_again(bench: Bench) -> None:
    bad(bench, 1, "ASSUMED_BAD", 0)
    bad(bench, 1, "ASSUMED_BAD", 1)
    bench.finish(2)
    bench.run()
    bad(bench, 3, "SKIP", 0)
    bad(bench, 4, "GOOD", 0)
    bad(bench, 6, "GOOD", 1)
    bench.measurement.wait_for_paths(9 * S)
    assert bench.clock.now_ns == bench.start_ns + 6 * S


def test_paths_are_not_waited_for_without_end(bench: Bench) -> None:
    bad(bench, 1, "ASSUMED_BAD")
    bench.finish(2)
    bench.run()
    bench.measurement.wait_for_paths(3 * S)
    assert bench.clock.now_ns == bench.start_ns + 5 * S


def test_nothing_is_waited_for_when_all_paths_are_good(bench: Bench) -> None:
    bench.finish(2)
    bench.run()
    bench.measurement.wait_for_paths(3 * S)
    assert bench.clock.now_ns == bench.start_ns + 2 * S


@denied
def test_paths_are_denied_and_allowed_at_their_time_and_no_kernel_is_read(bench: Bench) -> None:
    bench.finish(5)
    bench.run()
    assert bench.fabric.calls == [("deny", "p1", "p0-t1-0", ()), ("allow", "p1", "p0-t1-0", ())]
    assert bench.faults_done() == [
        (op, "controller", outcome) for op in ("inject", "heal") for outcome in ("invoke", "ok")
    ]
    times = dict(zip(bench.history("op"), bench.history("t_ns"), strict=True))
    assert times[("inject",)] == (bench.start_ns + 1 * S,)
    assert times[("heal",)] == (bench.start_ns + 3 * S,)


@pytest.mark.parametrize("bench", ["faults: [{at: 1s, deny: p1, for: 1ms, name: short}]\n"], indirect=True)
def test_a_heal_waits_until_its_fault_is_there(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def answered_late(*_: Any) -> None:
        bench.loop.run_until(lambda: False, bench.clock.now_ns + S // 10)

    monkeypatch.setattr(bench.fabric, "_called", answered_late)
    bench.finish(5)
    bench.run()
    assert bench.faults_done() == [(op, "short", outcome) for op in ("inject", "heal") for outcome in ("invoke", "ok")]


@denied
def test_what_is_left_denied_is_allowed_at_the_end(bench: Bench) -> None:
    bench.finish(2)
    bench.run()
    bench.measurement.heal_all()
    assert [call[0] for call in bench.fabric.calls] == ["deny", "allow"]
    assert bench.injector.broken == {}


@cold
def test_a_cold_fault_is_injected_once_and_before_the_start(bench: Bench) -> None:
    bench.measurement.break_cold()
    assert bench.fabric.calls == [("port_down", "p0-t1-0", "down0")]
    assert bench.history("t_ns")[-1][0] < bench.start_ns
    bench.finish(5)
    bench.run()
    assert [call[0] for call in bench.fabric.calls] == ["port_down", "port_up", "verify"] * 2
    healed = [line[1] - bench.start_ns for line in bench.history("op", "t_ns") if line[0] == "heal"]
    assert healed == [S, S, 3 * S, 3 * S]


@loss
def test_rules_are_read_back_after_their_heal(bench: Bench) -> None:
    bench.finish(5)
    bench.run()
    assert [call[0] for call in bench.fabric.calls] == ["add_rule"] * 2 + ["remove_rule"] * 2 + ["verify_rules"]
    assert bench.faults_done()[-1] == ("read-back", "loss", "ok")
    assert bench.told.faults[0] == "inject loss: link-loss p0-t0-0:p0-t1-0 20%"


@pytest.mark.parametrize(
    "bench", ["faults: [{at: 1s, link-rate: p0-t0-0:p0-t1-0, rate: 5mbit, for: 2s, name: slow}]\n"], indirect=True
)
def test_a_rate_is_read_back_though_its_link_loses_nothing(bench: Bench) -> None:
    bench.finish(5)
    bench.run()
    assert [call[0] for call in bench.fabric.calls] == ["set_rate", "set_rate", "verify"]
    assert bench.told.faults == [
        "inject slow: link-rate p0-t0-0:p0-t1-0 at 5mbit",
        "heal slow: link-rate p0-t0-0:p0-t1-0 at 5mbit",
    ]
