"""The model of a run in progress: takes events, gives frames of JSON types. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mrc_testbed.testbed.faults.schedule import Action
from mrc_testbed.testbed.live import wording
from mrc_testbed.testbed.live.accused import Accused
from mrc_testbed.testbed.live.fabric import FabricState
from mrc_testbed.testbed.live.flows import FlowRates
from mrc_testbed.testbed.live.hosts import HostStates
from mrc_testbed.testbed.live.light import UNKNOWN, VIRTUAL, fidelity_light
from mrc_testbed.testbed.live.paths import tiles_of
from mrc_testbed.testbed.live.ticker import Ticker
from mrc_testbed.testbed.runner.events import (
    DaemonEvent,
    FaultDone,
    FlowsMoved,
    MachineSeen,
    MapDecided,
    MapSaid,
    Note,
    PhaseBegins,
    PortsSampled,
    ProgramsRun,
    RunEvent,
    StepsDone,
    Work,
    WorkloadBegins,
)
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.topos.plan import Plan

DaemonEventFields = Mapping[str, Any]
_FAULT_KINDS = {Action.INJECT: "fault", Action.HEAL: "heal"}


class LiveModel:
    """The known state of a run at any moment. All times are CLOCK_MONOTONIC."""

    def __init__(self, scenario: Scenario, plan: Plan) -> None:
        self._scenario = scenario
        self._phase = ""
        self._start_ns: int | None = None
        self._work: Work | None = None
        self._steps: dict[str, StepsDone] = {}
        self._fabric = FabricState(plan)
        self._accused = Accused()
        self._tiles = tiles_of(scenario, plan)
        self._hosts = HostStates(sorted(scenario.host_names, key=plan.node_names.index), plan.shape)
        self._flows = FlowRates(scenario)
        self._ticker = Ticker(plan.shape)
        self._virtual = scenario.world is WorldKind.VIRTUAL
        self._light = VIRTUAL if self._virtual else UNKNOWN
        self._events: dict[str, Callable[[str, DaemonEventFields], None]] = {
            "snapshot": self._hosts.snapshot,
            "received": lambda _, event: self._flows.received(event),
            "ev_state": self._on_ev_state,
            "floor": self._on_floor,
            "plane_state": self._on_plane_state,
            "port_state": self._on_port_state,
            "failover": self._on_failover,
        }

    def publish(self, event: RunEvent) -> None:
        """Update the model by an event of the run."""
        match event:
            case DaemonEvent(host, fields):
                if handler := self._events.get(fields["event"]):
                    handler(host, fields)
            case PortsSampled(t_ns, rows):
                self._fabric.sample(t_ns, rows)
            case StepsDone() | FlowsMoved() | ProgramsRun():
                self._work = event
                if isinstance(event, StepsDone):
                    self._steps[event.job] = event
            case PhaseBegins(name):
                self._phase, self._work = name, None
            case WorkloadBegins(start_ns):
                self._begin(start_ns)
            case FaultDone() | Note() | MapSaid() | MapDecided():
                self._say(event)
            case MachineSeen(figures) if not self._virtual:
                self._light = fidelity_light({**figures, **self._hosts.fidelity()}, self._scenario)

    def _begin(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._hosts.begin()
        self._flows.begin(start_ns)

    def _say(self, event: FaultDone | Note | MapSaid | MapDecided) -> None:
        match event:
            case Note():
                kind = event.kind
            case FaultDone():
                self._fabric.fault(event.step)
                kind = _FAULT_KINDS[event.step.action]
            case _:
                self._accused.take(event)
                kind = "map"
        self._ticker.say(event.t_ns, kind, event.text)

    def frame(self, now_ns: int) -> dict[str, Any]:
        """The content of a view, as JSON types (docs/architecture.md, "The live view")."""
        work = self._work
        return {
            "phase": self._phase,
            "t_s": self._since_start(now_ns),
            "scenario": {key: getattr(self._scenario, key) for key in ("name", "seed", "about")},
            "progress": None if work is None else {"done": work.done, "of": work.of, "text": work.text},
            "steps": [{key: getattr(self._steps[job], key) for key in _STEP_KEYS} for job in sorted(self._steps)],
            "flows": self._flows.rates(now_ns),
            "nodes": dict(self._fabric.nodes),
            "links": self._fabric.links(),
            "accused": self._accused.parts(),
            "hosts": self._hosts.states(),
            "evs": self._tiles.counts(),
            "ticker": [
                {"n": line.n, "t_s": self._since_start(line.t_ns), "kind": line.kind, "text": line.text}
                for line in self._ticker.lines(now_ns)
            ],
            "fidelity": self._light._asdict(),
        }

    def _since_start(self, t_ns: int) -> float | None:
        if self._start_ns is None or t_ns < self._start_ns:
            return None
        return round((t_ns - self._start_ns) / 1e9, 3 if self._scenario.speed == 1 else 6)

    def _on_ev_state(self, host: str, event: DaemonEventFields) -> None:
        plane = event["plane"]
        tile = self._tiles.change(host, event["peer"], plane, event["uplink"], event["to"])
        verb = wording.told_of(event["from"], event["to"])
        if verb and tile is not None:
            words = partial(wording.evs, verb=verb, plane=plane)
            self._ticker.gather(event["t_ns"], "ev", (verb, plane), host, tile, words)

    def _on_floor(self, host: str, event: DaemonEventFields) -> None:
        plane = event["plane"]
        tile = self._tiles.tile(host, event["peer"], event["uplink"])
        words = partial(wording.floor, plane=plane)
        self._ticker.gather(event["t_ns"], "ev", ("floor", plane), host, tile, words)

    def _on_plane_state(self, host: str, event: DaemonEventFields) -> None:
        plane, usable = event["plane"], event["usable"]
        pair = " and ".join(sorted((host, event["peer"])))
        words = partial(wording.planes, plane=plane, usable=usable)
        self._ticker.gather(event["t_ns"], "plane", (plane, usable), host, pair, words)

    def _on_port_state(self, host: str, event: DaemonEventFields) -> None:
        """Only a host's own ports: peers report theirs themselves."""
        if event["peer"] is not None:
            return
        plane, state = event["plane"], event["state"]
        self._hosts.port(host, plane, state)
        words = partial(wording.ports, plane=plane, state=state)
        self._ticker.gather(event["t_ns"], "port", (plane, state), host, plane, words)

    def _on_failover(self, host: str, event: DaemonEventFields) -> None:
        plane, state, carrier = event["plane"], event["state"], event["carrier"]
        words = partial(wording.failover, plane=plane, state=state, carrier=carrier)
        self._ticker.gather(event["t_ns"], "port", ("failover", plane, state), host, event["qp"], words)


_STEP_KEYS = ("job", "done", "of", "last_s", "worst_s")
