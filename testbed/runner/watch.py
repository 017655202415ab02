"""Workload events of the hosts: recorded, shown, and summarised when the workload is stuck."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.tables import (
    COMPLETIONS,
    FLOW_TIMES,
    FLOWS,
    MESSAGES,
    WAITS,
    AcknowledgedMessage,
    Completion,
    FlowTime,
    Received,
    Wait,
)
from mrc_testbed.testbed.runner.events import FlowsMoved, StepsDone
from mrc_testbed.testbed.runner.progress import Progress
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.jobs import NamedJob
from mrc_testbed.testbed.workloads.arrivals import alone_ns
from mrc_testbed.testbed.workloads.estimate import eager
from mrc_testbed.testbed.workloads.flows import flow_of
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.units import some

_SECOND_NS = 1_000_000_000
_HEARD_NS = 200_000_000
"""By then every host has reported the previous second."""


class Watch(Protocol):
    """What a measurement needs from each kind of workload."""

    def start(self, start_ns: int) -> None:
        """Set when the workload begins."""

    def take(self, host: str, event: dict[str, Any]) -> bool:
        """Handle an event; True if it was recorded and needs no line in events.jsonl."""

    def stuck(self, missing: Sequence[str]) -> str:
        """Describe what the workload waits for, given the hosts that are not done."""


class StepWatch:
    """Watches the steps of one job: records each finished one. `named`: there are other jobs beside it."""

    def __init__(self, job: NamedJob, shape: Shape, named: bool, recorder: Recorder, progress: Progress) -> None:
        self._name = job.name if named else ""
        self._steps = job.entry.total_steps
        self._recorder = recorder
        self._progress = progress
        self._steps_done = dict.fromkeys(job.host_names(shape), 0)
        self._spans: dict[int, list[tuple[int, int]]] = {}
        self._last_end_ns = 0
        self._worst_s = 0.0

    def start(self, start_ns: int) -> None:
        """Record the start of step 0."""
        self._last_end_ns = start_ns

    def take(self, host: str, event: dict[str, Any]) -> bool:
        """Record a finished step."""
        if event["event"] == "step" and host in self._steps_done:
            self._on_step(host, event)
        return False

    def stuck(self, missing: Sequence[str]) -> str:
        """Name the hosts that are furthest behind."""
        done = {
            host: self._steps_done[host] for host in missing if self._steps_done.get(host, self._steps) < self._steps
        }
        if not done:
            return ""
        slowest = min(done.values())
        of_job = f" of {self._name}" if self._name else ""
        return f"{', '.join(host for host in done if done[host] == slowest)} stuck in step {slowest}{of_job}"

    def _on_step(self, host: str, event: dict[str, Any]) -> None:
        step, end_ns = event["step"], event["end_ns"]
        row = Completion(host, step, event["begin_ns"], end_ns, event["bytes"], event["bytes_wrong"])
        self._recorder.rows(COMPLETIONS, [row])
        self._recorder.rows(WAITS, (Wait(host, step, peer, wait_ns) for peer, wait_ns in event["waits"].items()))
        self._steps_done[host] = step + 1
        spans = self._spans.setdefault(step, [])
        spans.append((event["begin_ns"], end_ns))
        if len(spans) == len(self._steps_done):
            begin_ns = max(self._last_end_ns, min(begin for begin, _ in spans))
            self._last_end_ns = max(end for _, end in spans)
            last_s = (self._last_end_ns - begin_ns) / 1e9
            self._worst_s = max(self._worst_s, last_s)
            del self._spans[step]
            self._progress.publish(StepsDone(step + 1, self._steps, last_s, self._worst_s, self._name))


class FlowWatch:
    """Tracks the bytes of flows. Their events are many and are stored as rows only. Without `progress` nothing is
    shown. `plain`: switch ports are plain shapers."""

    def __init__(self, scenario: Scenario, recorder: Recorder, progress: Progress | None, plain: bool) -> None:
        self._flows = scenario.flows.flows
        self._by_name = {flow.name: flow for flow in self._flows}
        self._wire = eager(scenario.shape()) if plain else scenario.shape()
        self._answer_bytes = scenario.transport.answer_bytes
        self._estimate_ns = scenario.flows.estimate_ns(scenario.shape())
        self._second_ns, self._heard_ns = map(scenario.shape().least_ns, (_SECOND_NS, _HEARD_NS))
        self._recorder = recorder
        self._progress = progress
        self._open = {qp for flow in self._flows for qp in flow.qp_names()}
        self._start_ns = 0
        self._shown = 0
        self._bytes: dict[tuple[int, str], int] = {}

    def start(self, start_ns: int) -> None:
        """Record the flows that start at once."""
        self._start_ns = start_ns

    def take(self, host: str, event: dict[str, Any]) -> bool:
        """Record received and acknowledged data."""
        match event["event"]:
            case "received":
                self._on_received(host, event)
            case "completed":
                flow, qp = flow_of(event["qp"]), int(event["qp"].rpartition("/")[2])
                rows = (AcknowledgedMessage(host, flow, qp, end_ns, taken_ns) for end_ns, taken_ns in event["messages"])
                self._recorder.rows(MESSAGES, rows)
            case "flows_done":
                self._recorder.rows(FLOW_TIMES, self._flow_times(host, f"{host}->{event['peer']}", event["flows"]))
            case _:
                return False
        return True

    def _flow_times(self, host: str, name: str, done: Sequence[Sequence[int]]) -> Iterator[FlowTime]:
        flow = self._by_name[name]
        for number, end_ns, took_ns in done:
            one = flow.arrivals[number]
            alone = alone_ns(self._wire, flow.src, flow.dst, one.size, self._answer_bytes)
            times = end_ns - took_ns, end_ns, took_ns, round(alone)
            yield FlowTime(host, name, number, one.name, one.size, *times, round(took_ns / alone, 6))

    def stuck(self, missing: Sequence[str]) -> str:
        """Name the unfinished flows."""
        flows = list(dict.fromkeys(flow_of(qp) for qp in sorted(self._open)))
        return f"{', '.join(missing)} not done" + (f"; unfinished flows: {some(flows)}" if flows else "")

    def _on_received(self, host: str, event: dict[str, Any]) -> None:
        flow, _, qp = event["qp"].rpartition("/")
        counts = {key: event[key] for key in ("begin_ns", "end_ns", "bytes", "messages", "bytes_wrong")}
        self._recorder.rows(FLOWS, [Received(host, flow, int(qp), **counts, last=int(event["last"]))])
        if event["last"]:
            self._open.discard(event["qp"])
        passed_ns = event["begin_ns"] - self._start_ns
        key = (passed_ns // self._second_ns, flow)
        self._bytes[key] = self._bytes.get(key, 0) + event["bytes"]
        while passed_ns >= (self._shown + 1) * self._second_ns + self._heard_ns:
            self._show(self._shown)
            self._shown += 1

    def _show(self, second: int) -> None:
        per_s = 8e9 / self._second_ns
        rates_bps = tuple(self._bytes.pop((second, flow.name), 0) * per_s for flow in self._flows)
        all_s = self._estimate_ns / 1e9
        done_s = min((second + 1) * self._second_ns / 1e9, all_s)
        if self._progress is not None:
            self._progress.publish(FlowsMoved(done_s, all_s, rates_bps))


class AllWatches:
    """Tracks several jobs of steps, or jobs beside flows; then the jobs are shown."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = watches

    def start(self, start_ns: int) -> None:
        """Start all."""
        for watch in self._watches:
            watch.start(start_ns)

    def take(self, host: str, event: dict[str, Any]) -> bool:
        """Pass the event to all."""
        return any([watch.take(host, event) for watch in self._watches])

    def stuck(self, missing: Sequence[str]) -> str:
        """Combine their descriptions."""
        return "; ".join(text for watch in self._watches if (text := watch.stuck(missing)))


def watch_for(scenario: Scenario, recorder: Recorder, progress: Progress, plain: bool = False) -> Watch:
    """The watch for this workload. `plain`: switch ports are plain shapers."""
    jobs, shape = scenario.jobs, scenario.shape()
    watches: list[Watch] = [StepWatch(job, shape, len(jobs) > 1, recorder, progress) for job in jobs]
    if scenario.job.flows:
        watches.append(FlowWatch(scenario, recorder, None if jobs else progress, plain))
    return watches[0] if len(watches) == 1 else AllWatches(watches)
