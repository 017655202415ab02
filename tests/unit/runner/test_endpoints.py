"""What all daemons are asked from their start until they may begin, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from mrc_testbed.hosts.rounds import ROUNDS, last_round_ns, round_period_ns
from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.endpoints import Endpoints
from mrc_testbed.testbed.runner.events import PhaseBegins, RunEvent
from mrc_testbed.testbed.runner.phases import RunJob, run_phases
from mrc_testbed.testbed.runner.progress import Silent
from mrc_testbed.testbed.runner.virtual_world import VirtualWorld
from mrc_testbed.testbed.runner.world import World
from mrc_testbed.testbed.scenario import load_scenario_text

RTT_NS = 100_000_000
TEXT = """
name: two
fabric: {planes: 1, t0_groups: 1, t1: 0, hosts_per_t0: 2, port_rate: 100mbit, rtt: 100ms}
workload: [{train: {hosts: all, steps: 3, compute: 10ms, allreduce: 64KiB}}]
expect: [qp_errors == 0]
"""
SCENARIO = load_scenario_text(TEXT)


class Clock:
    """Moves where a test moves it."""

    t_ns = 1_000_000_000

    def now_ns(self) -> int:
        return self.t_ns

    def run_until(self, done: Callable[[], bool], _deadline_ns: int) -> bool:
        return done()


class Host:
    """Answers at once. `silent`: what its warm-ups name."""

    def __init__(self, name: str, asked: list[tuple[str, str, dict[str, Any]]]) -> None:
        self.name = name
        self.answers: dict[int, dict[str, Any]] = {}
        self.silent: dict[str, list[list[int]]] = {}
        self.rtts_ns = iter([RTT_NS + 5, RTT_NS + 1])
        self._asked = asked

    def request(self, command: str, **fields: Any) -> int:
        self._asked.append((self.name, command, fields))
        answer: dict[str, Any] = {"ok": True}
        if command == "warm_up":
            answer |= {"rtt_ns": {"peer": next(self.rtts_ns)}, "silent": self.silent, "silent_qps": []}
        self.answers[len(self._asked)] = answer
        return len(self._asked)


class Stage:
    """A world of such hosts."""

    ends_with_answers = True

    def __init__(self) -> None:
        self.loop = Clock()
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.hosts: dict[str, Host] = {}

    def host_processes(self, names: list[str], *_: object) -> dict[str, Host]:
        self.hosts = {name: Host(name, self.asked) for name in names}
        return self.hosts

    def commands(self) -> list[str]:
        return [command for name, command, _ in self.asked if name == "h0"]


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def endpoints(stage: Stage, tmp_path: Path) -> Endpoints:
    plan = SCENARIO.plan()
    job = SCENARIO.job.plan_job(plan)
    (tmp_path / "logs").mkdir()
    return Endpoints(cast(World, stage), SCENARIO, plan, job, Recorder(tmp_path), lambda *_: None)


def test_programs_are_loaded_while_probes_are_under_way(stage: Stage, endpoints: Endpoints) -> None:
    endpoints.begin_warm_up(())
    assert stage.commands() == ["warm_up", "load"]
    assert endpoints.finish_warm_up() == RTT_NS + 5
    assert stage.commands() == ["warm_up", "load"], "nobody disturbed the last round"
    warm_ups = [fields for _, command, fields in stage.asked if command == "warm_up"]
    assert [fields["last_ns"] for fields in warm_ups] == [2 * RTT_NS] * 2
    loaded = [fields for _, command, fields in stage.asked if command == "load"]
    assert [fields["rank"] for fields in loaded] == [0, 1]
    assert all(fields["program"][0] for fields in loaded)


def test_one_more_round_follows_where_the_last_may_have_been_disturbed(stage: Stage, endpoints: Endpoints) -> None:
    endpoints.begin_warm_up(())
    stage.loop.t_ns += last_round_ns(RTT_NS, 1, 0) + 1
    assert endpoints.finish_warm_up() == RTT_NS + 1
    assert stage.commands() == ["warm_up", "load", "warm_up"]
    assert stage.asked[-1][2]["rounds"] == 1


def test_a_path_that_did_not_answer_is_named(stage: Stage, endpoints: Endpoints) -> None:
    stage.hosts["h1"].silent = {"h0": [[0, 0]]}
    endpoints.begin_warm_up(())
    with pytest.raises(RunError, match=r"h1: 1 path to h0 did not answer a probe.*plane 0, uplink 0"):
        endpoints.finish_warm_up()


@pytest.mark.parametrize(
    ("transport", "order"),
    [("mrc", ["probe", "verify"]), ("mrc-hashed", ["verify", "probe"]), ("roce", ["verify", "probe"])],
)
def test_where_switches_choose_the_read_back_waits_for_next_hops_before_anybody_probes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str, order: list[str]
) -> None:
    seen = []

    class Watch(Silent):
        def publish(self, event: RunEvent) -> None:
            if isinstance(event, PhaseBegins) and event.name == "verify":
                seen.append(event.name)

    begin = Endpoints.begin_warm_up
    monkeypatch.setattr(Endpoints, "begin_warm_up", lambda *words: (seen.append("probe"), begin(*words))[1])
    scenario = load_scenario_text(f"{TEXT}world: virtual\ntransport: {transport}\n")
    assert run_phases(RunJob(scenario, tmp_path, VirtualWorld(scenario)), Watch()) == 0
    assert seen == order


def test_the_last_round_begins_after_those_before_it() -> None:
    assert last_round_ns(RTT_NS, 1, 0) == (ROUNDS - 1) * 4 * RTT_NS
    assert round_period_ns(1000, 1, 0) == 10_000_000, "software needs its time"
    assert round_period_ns(1000, 10, 0) == 1_000_000, "less of it where all is ten times as fast"
    assert round_period_ns(RTT_NS, 1, 10**9) == 10**9, "slow ports need longer"
