"""The run in progress as metrics: a listener that fills a `RunSeries` and hands its document on once a second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any, Protocol

from mrc_testbed.testbed.faults.schedule import Action
from mrc_testbed.testbed.live.paths import EvTiles, tiles_of
from mrc_testbed.testbed.metrics.series import RunSeries
from mrc_testbed.testbed.runner.events import (
    DaemonEvent,
    FaultDone,
    HitsSampled,
    PhaseBegins,
    PortsSampled,
    RunEvent,
    StepsDone,
    WorkloadBegins,
)
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.version import NAME
from mrc_testbed.testbed.workloads.flows import flow_of

EVERY_NS = 1_000_000_000
"""Of those who watch: in virtual time the run may be much faster."""
Fields = Mapping[str, Any]


class SeriesScreen(Protocol):
    """Where documents go. Calls must not block: they run in the supervisor's loop."""

    def show(self, document: Mapping[str, Any]) -> None:
        """Take the newest document."""


class SeriesFeed:
    """A `Progress` for a scraped server."""

    def __init__(self, scenario: Scenario, run: str, counts_packets: bool, screen: SeriesScreen) -> None:
        """`run`: the name of its folder; `counts_packets`: switch ports run the port program."""
        plan = scenario.plan()
        self._series = RunSeries(plan, run_info(scenario, run), counts_packets)
        self._series.ports = {host: [True] * plan.shape.planes for host in scenario.host_names}
        self._screen = screen
        self._now_ns: Callable[[], int] = lambda: 0
        self._only_job = scenario.jobs[0].name if len(scenario.jobs) == 1 else ""
        self._entries = entry_names(scenario)
        self._tiles: EvTiles = tiles_of(scenario, plan)
        self._handlers: dict[str, Callable[[str, Fields], None]] = {
            "snapshot": self._on_snapshot,
            "ev_state": self._on_ev_state,
            "port_state": self._on_port_state,
            "received": self._on_received,
            "completed": self._on_completed,
        }

    def publish(self, event: RunEvent) -> None:
        """Take an event; a phase is shown at once, because it may run without a loop."""
        series = self._series
        match event:
            case DaemonEvent(host, fields):
                if handler := self._handlers.get(fields["event"]):
                    handler(host, fields)
            case PortsSampled(_, rows):
                series.links = rows
            case HitsSampled(_, hits):
                series.hits.update(hits)
            case StepsDone():
                series.step(event.job or self._only_job, round(event.last_s * 1e9))
            case WorkloadBegins(start_ns):
                series.start_ns = start_ns
            case FaultDone(step, _):
                one = step.occurrence
                series.fault(one.fault, one.kind, ",".join(one.targets), step.action is Action.INJECT)
            case PhaseBegins(name):
                series.phase = name
                self._show()

    def attach(self, loop: Loop) -> None:
        """Show a document once a second from now on."""
        self._now_ns = loop.now_ns

        def again() -> None:
            self._show()
            loop.aside(EVERY_NS, again)

        loop.aside(EVERY_NS, again)

    def close(self) -> None:
        """Show the last one."""
        self._show()

    def _show(self) -> None:
        self._series.evs = self._tiles.counts()
        self._screen.show(self._series.document(self._now_ns()))

    def _on_snapshot(self, host: str, event: Fields) -> None:
        series = self._series
        series.counters[host] = event["counters"]
        series.lateness[host] = event.get("lateness", {})
        series.stalled[host] = event.get("stalled") or {}

    def _on_ev_state(self, host: str, event: Fields) -> None:
        self._tiles.change(host, event["peer"], event["plane"], event["uplink"], event["to"])

    def _on_port_state(self, host: str, event: Fields) -> None:
        if event["peer"] is None:
            self._series.ports[host][event["plane"]] = event["state"] == "UP"

    def _on_received(self, _host: str, event: Fields) -> None:
        self._series.delivered(self._entries[flow_of(event["qp"])], event["bytes"])

    def _on_completed(self, _host: str, event: Fields) -> None:
        for _end_ns, taken_ns in event["messages"]:
            self._series.message(self._entries[flow_of(event["qp"])], taken_ns)


def entry_names(scenario: Scenario) -> Mapping[str, str]:
    """By flow the name of its entry, such as `permutation`."""
    flows = scenario.job.flows.flows if scenario.job.flows else ()
    return {flow.name: flow.groups[0] for flow in flows}


def run_info(scenario: Scenario, run: str) -> dict[str, str]:
    """The labels of `mrc_run`. `run`: the name of the run folder."""
    return {
        "run": run,
        "scenario": scenario.name,
        "world": scenario.world.value,
        "transport": scenario.transport.word,
        "seed": str(scenario.seed),
        "version": metadata.version(NAME),
    }
