"""The mapper of a run that goes on: takes what endpoints tell, says once a period what is broken, and denies it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mrc_testbed.testbed.evidence.endpoints import SETTLE, RunEvidence, hears_endpoints, period_of
from mrc_testbed.testbed.evidence.events import ev_change_of, port_change_of
from mrc_testbed.testbed.evidence.probes import told_probes_of
from mrc_testbed.testbed.evidence.snapshots import snapshot_of
from mrc_testbed.testbed.evidence.told_paths import ToldPaths
from mrc_testbed.testbed.mapper.mapper import MapAction, MapChange, PathMapper
from mrc_testbed.testbed.mapper.policy import MapPolicy, TalkingPath
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from mrc_testbed.testbed.rundir.lines import map_fields
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.events import MapDecided, MapSaid, RunEvent
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.mapper import MapperSettings
from mrc_testbed.topos.plan import Plan

Told = Callable[[str, Mapping[str, list[dict[str, Any]]]], None]
"""Sends `deny` or `allow` to hosts, each with its rows, and waits until all have confirmed. Raises RunError."""


class LiveEvidence:
    """What hosts tell, event by event."""

    def __init__(self, scenario: Scenario, plan: Plan, table: SuspectTable) -> None:
        self._paths = ToldPaths(scenario, plan)
        self._heard = RunEvidence(scenario, plan, table)
        self._endpoints, self.probes = self._heard.endpoints, self._heard.probes
        self._hears_endpoints = hears_endpoints(scenario)

    def take(self, host: str, event: Mapping[str, Any]) -> None:
        """An event of a host's endpoint; most say nothing of the fabric."""
        row = {"host": host, **event}
        if event["event"] == "map_window":
            if self.probes is not None:
                self.probes.take(told_probes_of(row))
        elif self._hears_endpoints:
            self._take_from_endpoint(row)

    def _take_from_endpoint(self, row: Mapping[str, Any]) -> None:
        match row["event"]:
            case "snapshot":
                shot = snapshot_of(row)
                self._endpoints.counted(shot, self._paths.take(shot))
            case "ev_state":
                change = ev_change_of(row)
                if change.retired:
                    self._paths.retire(change.path, change.t_ns, change.first_lost_tx_ns)
            case "port_state":
                self._endpoints.port(port_change_of(row))

    def turn(self, end_ns: int) -> list[Any]:
        """A period is over: what became known in it."""
        return self._heard.turn(end_ns)


@dataclass(frozen=True, slots=True)
class _Denial:
    since_ns: int
    rows: Mapping[str, list[dict[str, Any]]]


class LiveMapper:
    """Of one run. `told`: how hosts are told what they may not use, and may use again."""

    def __init__(
        self,
        scenario: Scenario,
        settings: MapperSettings,
        plan: Plan,
        pairs: Iterable[tuple[str, str]],
        probe_period_ns: int | None,
        loop: Loop,
        recorder: Recorder,
        publish: Callable[[RunEvent], None],
        told: Told,
    ) -> None:
        table = SuspectTable(plan)
        self._loop, self._recorder, self._publish, self._told = loop, recorder, publish, told
        self._period_ns, self._hold_ns = period_of(scenario, probe_period_ns), settings.hold_ns
        self._evidence = LiveEvidence(scenario, plan, table)
        self._mapper = PathMapper(table, self._period_ns, settle=SETTLE)
        names_paths = scenario.transport.names_paths
        self._policy = MapPolicy(plan, pairs, settings.deny, settings.above_share) if names_paths else None
        self._denials: dict[str, _Denial] = {}
        self._allowed_ns: dict[str, int] = {}
        """By the name of what was denied: when it was allowed again."""
        self._refused: set[str] = set()
        self._waiting: deque[Callable[[], None]] = deque()
        self._on = self._busy = False

    def start(self, start_ns: int) -> None:
        """The workload begins."""
        self._on = True
        self._loop.every(self._period_ns, self._turn, start_ns + self._period_ns)

    def stop(self) -> None:
        """The workload is over; what is denied stays so."""
        self._on = False

    def take(self, host: str, event: Mapping[str, Any]) -> None:
        """An event of a host's endpoint."""
        self._evidence.take(host, event)

    def _turn(self) -> None:
        now_ns = self._loop.now_ns()
        if not self._on:
            return
        for change in self._mapper.turn(now_ns, self._evidence.turn(now_ns)):
            self._recorder.mapped(**map_fields(change))
            self._publish(MapSaid(change))
            if change.action is not MapAction.ACCUSE:
                self._cleared(change.name)
        if self._policy:
            self._decide(self._policy, now_ns)
        self._act()

    # --- policy ---

    def _decide(self, policy: MapPolicy, now_ns: int) -> None:
        for change in self._mapper.accused:
            lost_again = change.last_ns > self._allowed_ns.get(change.name, 0)
            if change.name not in self._denials and lost_again and policy.wants(change):
                self._waiting.append(lambda change=change: self._deny(policy, change))  # type: ignore[misc]
        lost_ns = {change.name: change.last_ns for change in self._mapper.accused if self._evidence.probes}
        for name, denial in self._denials.items():
            if now_ns - max(denial.since_ns, lost_ns.get(name, 0)) >= self._hold_ns:
                self._waiting.append(lambda name=name: self._allow(name, "held"))  # type: ignore[misc]

    def _cleared(self, name: str) -> None:
        """Probes still cross what is denied. Packets of endpoints that arrived left before the denial, when queues were
        filling or draining: they say nothing of how it will be under load."""
        self._refused.discard(name)
        if self._evidence.probes is not None:
            self._waiting.append(lambda: self._allow(name, "cleared"))

    def _act(self) -> None:
        """Do what was decided. The loop turns while hosts answer, so a turn may find the one before still here."""
        if self._busy:
            return
        self._busy = True
        while self._waiting:
            self._waiting.popleft()()
        self._busy = False

    def _deny(self, policy: MapPolicy, change: MapChange) -> None:
        name, paths = change.name, policy.paths(change)
        if name in self._denials or not paths:
            return
        if left := policy.left_without(paths, self._mapper.accused):
            if name not in self._refused:
                self._refused.add(name)
                self._decided("keep", name, (), f"it would leave {left}")
            return
        rows = policy.rows(paths)
        policy.denied[name], self._denials[name] = paths, _Denial(self._loop.now_ns(), rows)
        self._tell("deny", name, rows, "")

    def _allow(self, name: str, why: str) -> None:
        self._refused.discard(name)
        denial = self._denials.pop(name, None)
        if denial is None or self._policy is None:
            return
        paths = self._policy.denied.pop(name)
        others = frozenset[TalkingPath]().union(*self._policy.denied.values())
        self._allowed_ns[name] = self._loop.now_ns()
        self._tell("allow", name, self._policy.rows(paths - others) if paths & others else denial.rows, why)

    def _tell(self, command: str, name: str, rows: Mapping[str, list[dict[str, Any]]], why: str) -> None:
        op, hosts = f"map-{command}", list(rows)
        self._decided(command, name, hosts, why)
        self._recorder.history("invoke", op=op, target=name, hosts=hosts)
        self._told(command, rows)
        self._recorder.history("ok", op=op, target=name, hosts=hosts)

    def _decided(self, op: str, name: str, hosts: Iterable[str], why: str) -> None:
        decided = MapDecided(self._loop.now_ns(), op, name, why)
        self._recorder.mapped(t_ns=decided.t_ns, op=op, component=name, hosts=list(hosts), why=why)
        self._publish(decided)
