"""What daemons say of flows: kept as rows, shown every second, and told when it gets stuck."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.tables import MESSAGES, AcknowledgedMessage
from mrc_testbed.testbed.runner.events import FlowsMoved, RunEvent, StepsDone
from mrc_testbed.testbed.runner.progress import Silent
from mrc_testbed.testbed.runner.watch import FlowWatch, StepWatch, Watch, watch_for
from mrc_testbed.testbed.scenario import load_scenario_text

S = 10**9
TENTH = S // 10
SCENARIO = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 20ms}
workload:
  - write: {from: h0, to: h1, for: 3s, qps: 2, bidirectional: true}
"""


class Told(Silent):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def publish(self, event: RunEvent) -> None:
        assert isinstance(event, StepsDone | FlowsMoved)
        assert 0 <= event.done <= event.of
        self.texts.append(event.text)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def watch(tmp_path: Path, told: Told) -> FlowWatch:
    made = watch_for(load_scenario_text(SCENARIO), Recorder(tmp_path), told)
    assert isinstance(made, FlowWatch)
    made.start(S)
    return made


def say(watch: FlowWatch, qp: str, begin_ns: int, moved: int, last: bool = False) -> bool:
    figures = {"begin_ns": begin_ns, "end_ns": begin_ns + TENTH, "bytes": moved, "messages": 1, "bytes_wrong": 0}
    return watch.take("h1", {"event": "received", "qp": qp, **figures, "last": last})


def test_events_of_flows_are_kept_as_rows_alone(watch: FlowWatch, tmp_path: Path) -> None:
    assert say(watch, "h0->h1/1", S, 1000)
    assert say(watch, "h0->h1/1", S + TENTH, 500, last=True)
    assert watch.take("h0", {"event": "completed", "qp": "h0->h1/1", "messages": [[7, 3], [9, 4]]})
    assert not watch.take("h0", {"event": "snapshot", "counters": {}})
    assert (tmp_path / "flows.csv").read_text() == (
        "host,flow,qp,begin_ns,end_ns,bytes,messages,bytes_wrong,last\n"
        f"h1,h0->h1,1,{S},{S + TENTH},1000,1,0,0\n"
        f"h1,h0->h1,1,{S + TENTH},{S + 2 * TENTH},500,1,0,1\n"
    )
    assert (tmp_path / "messages.csv").read_text() == (
        "host,flow,qp,end_ns,duration_ns\nh0,h0->h1,1,7,3\nh0,h0->h1,1,9,4\n"
    )


def test_a_second_recorder_does_not_write_a_second_header(tmp_path: Path) -> None:
    for _ in range(2):
        recorder = Recorder(tmp_path)
        recorder.rows(MESSAGES, [AcknowledgedMessage("h0", "h0->h1", 0, 1, 2)])
        recorder.close()
    assert (tmp_path / "messages.csv").read_text().count("flow,qp") == 1


def test_each_second_is_told_when_all_have_spoken(watch: FlowWatch, told: Told) -> None:
    for tenth in range(12):
        for flow, moved in (("h0->h1", 12_500), ("h1->h0", 25_000)):
            for qp in (0, 1):
                say(watch, f"{flow}/{qp}", S + tenth * TENTH, moved)
    assert told.texts == []
    say(watch, "h0->h1/0", S + 12 * TENTH, 12_500)
    assert told.texts == ["1/3 s, 6.0 Mb/s, flows 2.0 to 4.0"]


def test_flows_that_did_not_end_are_named(watch: FlowWatch) -> None:
    for qp in ("h0->h1/0", "h0->h1/1", "h1->h0/0"):
        say(watch, qp, S, 1, last=True)
    assert watch.stuck(["h1"]) == "h1 not done; unfinished flows: h1->h0"
    say(watch, "h1->h0/1", S, 1, last=True)
    assert watch.stuck(["h1"]) == "h1 not done"


def test_a_training_job_is_watched_by_its_steps(tmp_path: Path, told: Told) -> None:
    text = "name: a\nworkload:\n  - train: {steps: 1, compute: 1s, allreduce: 1MiB}\n"
    assert isinstance(watch_for(load_scenario_text(text), Recorder(tmp_path), told), StepWatch)


STEPS = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 20ms}
workload:
  - sendrecv: {size: 1MiB, iterations: 2, warm_up: 1}
"""


def finish(watch: Watch, host: str, step: int, waits: dict[str, int]) -> bool:
    figures = {"begin_ns": S + step, "end_ns": S + step + 1, "bytes": 9, "bytes_wrong": 0, "waits": waits}
    return watch.take(host, {"event": "step", "step": step, **figures})


def test_who_waited_for_whom_is_kept_by_step(tmp_path: Path, told: Told) -> None:
    watch = watch_for(load_scenario_text(STEPS), Recorder(tmp_path), told)
    watch.start(S)
    assert not finish(watch, "h0", 0, {"h1": 70}), "the event is kept too"
    finish(watch, "h1", 0, {})
    finish(watch, "h0", 1, {"h1": 3, "h2": 4})
    assert (tmp_path / "waits.csv").read_text() == "host,step,peer,wait_ns\nh0,0,h1,70\nh0,1,h1,3\nh0,1,h2,4\n"
    assert told.texts[0].startswith("step 1/3, last ")


def test_a_job_and_flows_are_watched_together_and_the_job_is_shown(tmp_path: Path, told: Told) -> None:
    text = STEPS + "  - write: {from: h0, to: h1, for: 3s}\n"
    watch = watch_for(load_scenario_text(text), Recorder(tmp_path), told)
    watch.start(S)
    figures = {"end_ns": S + TENTH, "bytes": 5, "messages": 1, "bytes_wrong": 0, "last": False}
    for tenth in range(15):
        event = {"event": "received", "qp": "h0->h1/0", "begin_ns": S + tenth * TENTH, **figures}
        assert watch.take("h1", event), "kept as a row alone"
    assert told.texts == []
    assert not finish(watch, "h0", 0, {})
    assert watch.stuck(["h0", "h1"]) == "h1 stuck in step 0; h0, h1 not done; unfinished flows: h0->h1"
    for host, step in (("h1", 0), ("h1", 1), ("h1", 2), ("h0", 1), ("h0", 2)):
        finish(watch, host, step, {})
    assert watch.stuck(["h1"]) == "h1 not done; unfinished flows: h0->h1"
