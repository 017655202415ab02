"""The measured part of a run: drives the fault schedule and samples counters while the workload runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mrc_testbed.testbed.errors import UnwrittenLimitError, WorkloadError
from mrc_testbed.testbed.faults.inject import Injector
from mrc_testbed.testbed.faults.schedule import Action, FaultStep, fault_schedule, heal, inject
from mrc_testbed.testbed.rundir.asked import packets_asked
from mrc_testbed.testbed.rundir.lines import HistoryFields, step_fields
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.tables import ROUTES, SAMPLES, RouteSample, Sample
from mrc_testbed.testbed.runner.books import frame_books, port_books, sid_books
from mrc_testbed.testbed.runner.controller import CentralController
from mrc_testbed.testbed.runner.events import (
    DaemonEvent,
    FaultDone,
    HitsSampled,
    MachineSeen,
    Note,
    PortsSampled,
    WorkloadBegins,
)
from mrc_testbed.testbed.runner.going_on import GoingOn
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.mapper import LiveMapper
from mrc_testbed.testbed.runner.port_log import PortLog
from mrc_testbed.testbed.runner.port_rates import WINDOW_NS, ShapeWatch
from mrc_testbed.testbed.runner.programs import RunningPrograms
from mrc_testbed.testbed.runner.progress import Progress
from mrc_testbed.testbed.runner.team import Team
from mrc_testbed.testbed.runner.watch import watch_for
from mrc_testbed.testbed.runner.world import MachineFigures
from mrc_testbed.testbed.scenario import Effect, Occurrence, Scenario
from mrc_testbed.testbed.scenario.faults.occurrence import OccurrenceKey
from mrc_testbed.testbed.scenario.text.units import format_duration
from mrc_testbed.testbed.switching.interface import FabricLike
from mrc_testbed.topos.shape import WIRE_BYTES

ROUTES_LIMIT_NS = 30_000_000_000
"""Time that BGP has after the last heal, FRR's wait of up to some 10 s before it tries a neighbour again included."""
_SAMPLE_NS = 200_000_000
_LOOK_NS = 1_000_000_000
"""Interval between fidelity reports."""
_AGAIN_NS = 1_000_000
_AFTER_QP_ERROR_NS = 1_000_000_000
"""A dead QP stops the ring; the other ends report it within this time."""
_LONGER = 5
"""What is tried in place of a time limit that was too short."""
_QUIET_RTTS = 3
_MIN_QUIET_NS = 100_000_000
"""How long no port may count anything after everything has arrived: half an RTT and a turn of each daemon."""
_QUIET_PACKETS = 16
"""The same at the slowest rate of the run, in packets: on each of four links the kernel may be the packet itself and a
burst of up to three ahead of the wire, and so long a packet waits in the receiver's delay line."""
_LONGEST_QUIET_NS = 20_000_000_000
"""After this, non-empty queues are counted as they are."""
_LONGEST_QUIET_PACKETS = 1000
"""Where ports are slow: what a port may have to send before all is still. Lossless ones hold what came by an incast."""
_STATS_S = 5
"""A daemon answers in milliseconds, unless the workload was waiting for it."""


class Measurement:
    """Handles daemon events, drives the fault schedule, samples counters; detects the end of the workload. `plain`:
    switch ports are plain shapers."""

    def __init__(
        self,
        scenario: Scenario,
        fabric: FabricLike,
        loop: Loop,
        recorder: Recorder,
        progress: Progress,
        injector: Injector,
        plain: bool = False,
    ) -> None:
        self._scenario = scenario
        self._fabric = fabric
        self._loop = loop
        self._recorder = recorder
        self._progress = progress
        self._schedule = fault_schedule(scenario.occurrences)
        self._injector = injector
        self._least_ns = scenario.shape().least_ns
        rates_bps = {(port.node, port.name): rate_bps for port, rate_bps in fabric.plan.rates_bps.items()}
        self._shape_watch = ShapeWatch(rates_bps, self._least_ns(WINDOW_NS))
        self._port_log = PortLog(fabric, recorder)
        self._machine: MachineFigures | None = None
        self._machine_figures: dict[str, Any] = {}
        self._cut_ports: set[tuple[str, str]] = set()
        self._drops_before: dict[tuple[str, str], int] = {}
        self._receive_drops = 0
        self._start_ns = 0
        self._done: set[str] = set()
        self._hosts = scenario.host_names
        self.programs: RunningPrograms | None = None
        """Those of the user; the workload lasts until they have ended, too."""
        self.mapper: LiveMapper | None = None
        self.controller: CentralController | None = None
        self._watch = watch_for(scenario, recorder, progress, plain)
        self._bad_paths: set[tuple[Any, ...]] = set()
        self._under_way: set[OccurrenceKey] = set()
        self._requested: set[OccurrenceKey] = set()
        self._going_on = GoingOn(scenario)
        self._qp_error: str | None = None
        self._ends = False
        """A QP failed, and nothing that it left alone goes on."""
        self._give_up_ns = 0
        self._handlers: dict[str, Callable[[str, dict[str, Any]], None]] = {
            "program_done": self._on_done,
            "qp_error": self._on_qp_error,
            "ev_state": self._on_ev_state,
        }

    def on_event(self, host: str, event: dict[str, Any]) -> None:
        """Record an event of a daemon, publish it and react to it."""
        self._progress.publish(DaemonEvent(host, event))
        if self.mapper:
            self.mapper.take(host, event)
        self._going_on.take(host, event)
        if self._watch.take(host, event):
            return
        self._recorder.event(host, event)
        handler = self._handlers.get(event["event"])
        if handler:
            handler(host, event)

    def watch_machine(self, machine: MachineFigures) -> None:
        """Take the machine's figures from its beginning on."""
        self._machine = machine
        self._receive_drops = self._fabric.receive_drops()
        self._drops_before = self._drops_at_ports()

    def break_cold(self) -> None:
        """Inject the cold-start faults. Raises FabricError."""
        for step in self._schedule:
            if step.cold:
                self._act(step)

    def run(self, start_ns: int) -> None:
        """Until every rank has finished. Raises WorkloadError when a QP failed or the time limit is reached."""
        self._start_ns = start_ns
        self._watch.start(start_ns)
        self._progress.publish(WorkloadBegins(start_ns))
        self._give_up_ns = start_ns + (
            self._least_ns(_AFTER_QP_ERROR_NS) if self._ends else self._scenario.time_limit_ns
        )
        self._recorder.history("invoke", op="workload", t_ns=start_ns)
        for step in (step for step in self._schedule if not step.cold):
            self._loop.at(start_ns + step.at_ns, lambda step=step: self._do_fault(step))  # type: ignore[misc]
        self._loop.every(self._least_ns(_SAMPLE_NS), self._sample, start_ns)
        if self.mapper:
            self.mapper.start(start_ns)
        if self.controller:
            self._loop.at(start_ns, self.controller.start)
        look_ns = self._least_ns(_LOOK_NS)
        self._loop.every(look_ns, self._look_at_machine, start_ns + look_ns)
        finished = self._loop.run_until(self._is_over, self._give_up_ns)
        if self._machine is None:
            raise RuntimeError("call watch_machine first")
        self._machine_figures = self._figures_of(self._machine)
        self._start_ns = 0  # later fault steps find the workload finished
        if self.mapper:
            self.mapper.stop()
        if self.controller:
            self.controller.stop()
        if self._qp_error and not self._all_done():
            raise WorkloadError(self._qp_error if self._ends else f"{self._qp_error}; {self._stuck()}")
        if not finished:
            raise self._over_limit()
        self._recorder.history("ok", op="workload")

    def _is_over(self) -> bool:
        if self._ends and self._loop.now_ns() >= self._give_up_ns:
            return True
        # Asked after every packet of virtual time: no further call without programs.
        return len(self._done) == len(self._hosts) and (self.programs is None or self.programs.over)

    def _all_done(self) -> bool:
        return len(self._done) == len(self._hosts) and (self.programs is None or self.programs.over)

    def _over_limit(self) -> WorkloadError:
        if self._scenario.given_time_limit_ns:
            return WorkloadError(self._stuck())
        longer = format_duration(round(_LONGER * self._scenario.time_limit_ns))
        return UnwrittenLimitError(f"{self._stuck()}; nobody wrote that limit: write one, `time_limit: {longer}`")

    def _stuck(self) -> str:
        limit_s = self._scenario.time_limit_ns / 1e9
        missing = [host for host in self._hosts if host not in self._done]
        if self._qp_error:
            missing = self._going_on.waiting()
        missing += self.programs.stuck() if self.programs else []
        return f"not finished within the time limit of {limit_s:g} s: {self._watch.stuck(missing)}"

    def _on_done(self, host: str, _event: dict[str, Any]) -> None:
        self._done.add(host)

    def _on_qp_error(self, host: str, event: dict[str, Any]) -> None:
        """It ends the job or the flow of the QP. The others go on."""
        why = f"{host}: QP {event['qp']} to {event['peer']} failed: {event['reason']}"
        hears = self._going_on.hears(host, event)
        if not hears:
            self._qp_error = self._qp_error or why
        if hears or self._going_on.end_by(host, event):
            self._progress.publish(Note(self._loop.now_ns(), "qp", why))
        if not hears:
            self._end_if_alone()
            if self.programs:
                at_ns = self._loop.now_ns() + self._least_ns(_AFTER_QP_ERROR_NS)
                self._loop.at(at_ns, lambda: self._end_programs(why))

    def _end_programs(self, why: str) -> None:
        """Those whose job has ended, and that may not know it."""
        if self.programs and not self._ends:
            self.programs.end_jobs(self._going_on.dead, why)

    def _end_if_alone(self) -> None:
        """End soon where all that goes on waits for a QP that failed."""
        if self._qp_error and not self._ends and self._going_on.alone(self.programs):
            self._ends = True
            self._give_up_ns = self._loop.now_ns() + self._least_ns(_AFTER_QP_ERROR_NS)
            self._loop.at(self._give_up_ns, lambda: None)  # wake up to see it

    def _on_ev_state(self, host: str, event: dict[str, Any]) -> None:
        path = (host, event["peer"], event["plane"], event["uplink"])
        if event["to"] == "ASSUMED_BAD":
            self._bad_paths.add(path)
        else:
            self._bad_paths.discard(path)

    def _do_fault(self, step: FaultStep) -> None:
        """Timers run while endpoints answer, so the heal of a short denial may be due before the denial is complete."""
        key = step.occurrence.key
        if key in self._under_way:
            self._loop.at(self._loop.now_ns() + self._least_ns(_AGAIN_NS), lambda: self._do_fault(step))
        elif self._start_ns != 0:
            self._under_way.add(key)
            self._act(step)
            self._under_way.remove(key)

    @property
    def since_start_ns(self) -> int | None:
        """Time since the start of the workload; None before and after it."""
        now_ns = self._loop.now_ns()
        return now_ns - self._start_ns if 0 < self._start_ns <= now_ns else None

    def inject_requested(self, occurrence: Occurrence) -> None:
        """Inject an unscheduled fault and heal it at its end, unless healed earlier. Raises FabricError."""
        self._requested.add(occurrence.key)
        self._act(inject(occurrence))
        self._loop.at(self._start_ns + occurrence.end_ns, lambda: self._heal_if_on(occurrence))

    def heal_requested(self, occurrence: Occurrence) -> None:
        """Heal a requested fault early. Raises FabricError."""
        self._act(heal(occurrence))

    def _heal_if_on(self, occurrence: Occurrence) -> None:
        if self._start_ns != 0 and occurrence.key in self._injector.broken:
            self._act(heal(occurrence))

    def _act(self, step: FaultStep) -> None:
        record, t_ns = step_fields(step), self._loop.now_ns()
        if step.occurrence.key in self._requested:
            record["by"] = "hand"
        if step.effect.loses_uncounted:
            cut = (self._fabric.plan.link_by_name[name] for name in step.occurrence.links)
            self._cut_ports.update((end.node, end.name) for link in cut for end in (link.near, link.far))
        self._recorded(record, lambda: self._injector.do(step))
        self._progress.publish(FaultDone(step, t_ns))
        if self.controller and step.effect is Effect.PORTS:
            self.controller.heard(step.occurrence.links, up=step.action is Action.HEAL)
        if step.action is Action.HEAL and step.effect.in_fabric:
            self._recorded({**record, "op": "read-back"}, lambda: self._injector.read_back(step))

    def _recorded(self, record: HistoryFields, action: Callable[[], None]) -> None:
        self._recorder.history("invoke", **record)
        try:
            action()
        except Exception as error:
            failed = record.copy()
            failed["error"] = str(error)
            self._recorder.history("fail", **failed)
            raise
        self._recorder.history("ok", **record)

    def heal_all(self) -> None:
        """Heal all faults that were still active at the end of the workload."""
        for occurrence in reversed(list(self._injector.broken.values())):
            self._act(heal(occurrence))

    def wait_for_paths(self, at_most_ns: int) -> None:
        """Wait until the endpoints had time to restore healed paths."""
        self._loop.run_until(lambda: not self._bad_paths, self._loop.now_ns() + at_most_ns)

    def wait_for_routes(self) -> None:
        """Wait until BGP has all routes again. Raises FabricError if it takes 30 s."""
        if not self._loop.run_until(self._fabric.has_all_routes, self._loop.now_ns() + ROUTES_LIMIT_NS):
            self._fabric.converge()
        self._record_routes()

    def _record_routes(self) -> None:
        self._recorder.rows(ROUTES, (RouteSample(*change) for change in self._fabric.route_changes()))

    def _sample(self) -> None:
        t_ns = self._loop.now_ns()
        self._record_routes()
        rows = list(self._fabric.sample_ports())
        self._recorder.rows(SAMPLES, (Sample(t_ns, *row) for row in rows))
        hits = self._port_log.sample(t_ns)
        self._shape_watch.sample(t_ns, rows)
        self._progress.publish(PortsSampled(t_ns, rows))
        self._progress.publish(HitsSampled(t_ns, hits))
        self._recorder.flush()
        self._end_if_alone()

    def _look_at_machine(self) -> None:
        """After the workload the figures are final and no longer published."""
        if self._start_ns and self._machine is not None:
            figures = {**self._figures_of(self._machine), "shaped_rate_error": self._shape_watch.error}
            self._progress.publish(MachineSeen(figures))

    def _figures_of(self, machine: MachineFigures) -> dict[str, Any]:
        """The machine's figures. Where packets for ports that are down count as drops of the kernel's input queue,
        those at ports that faults took down are none of the machine's."""
        figures = machine.figures()
        if figures["softnet_drops"] and machine.softnet_has_dead_ports:
            now, before = self._drops_at_ports(), self._drops_before
            at_cut_ports = sum(now[port] - before[port] for port in now.keys() & self._cut_ports)
            figures["softnet_drops"] = max(0, figures["softnet_drops"] - at_cut_ports)
        return figures

    def _drops_at_ports(self) -> dict[tuple[str, str], int]:
        """At receive, by node and port."""
        return {(node, port): drops for node, port, _, _, drops, *_ in self._fabric.sample_ports()}

    def _wait_until_still(self) -> None:
        """Wait until queues are empty, so that no packet is in flight when counters are read."""
        shape = self._fabric.plan.shape
        cut_bps = (step.occurrence.parameters.rate_bps for step in self._schedule if step.effect is Effect.RATE)
        slowest_bps = min([*self._fabric.plan.rates_bps.values(), *cut_bps])
        packet_ns = WIRE_BYTES * 8 * 10**9 // slowest_bps
        wait_ns = max(shape.least_ns(_MIN_QUIET_NS), _QUIET_RTTS * shape.rtt_ns, _QUIET_PACKETS * packet_ns)
        longest_ns = max(shape.least_ns(_LONGEST_QUIET_NS), _LONGEST_QUIET_PACKETS * packet_ns)
        give_up_ns = self._loop.now_ns() + longest_ns
        before, now = None, list(self._fabric.sample_ports())
        while now != before and self._loop.now_ns() < give_up_ns:
            self._loop.run_until(lambda: False, self._loop.now_ns() + wait_ns)
            before, now = now, list(self._fabric.sample_ports())

    def _socket_losses(self, hosts: Mapping[str, Mapping[str, Any]]) -> tuple[int, dict[str, int]]:
        """Datagrams dropped in full buffers, and by node those that reached no socket. Where programs of the user have
        sockets, those of endpoints count alone. `hosts`: what endpoints have counted."""
        losses = self._fabric.socket_losses()
        if not self.programs:
            return self._fabric.receive_drops() - self._receive_drops, losses
        own = {host: told["counters"].get("receive_buffer_drops", 0) for host, told in hosts.items()}
        return sum(own.values()), losses | own

    def final_figures(self, team: Team) -> None:
        """Final counters of endpoints, ports and queues, and the figures for the fidelity verdict."""
        updates = self._fabric.route_updates()
        self._fabric.freeze_routes()
        team.ask("quiet", timeout_s=_STATS_S)
        self._wait_until_still()
        self._port_log.sample(self._loop.now_ns())  # so that the last rows equal counters.json
        stats = team.ask("stats", timeout_s=_STATS_S)
        kept = ("counters", "paths", "qps", "lateness")
        hosts = {host: {key: answer[key] for key in kept} for host, answer in stats.items()}
        queues = self._fabric.queues()
        counters: dict[str, Any] = {"hosts": hosts, "queues": queues}
        unavailable = self._machine.unavailable() if self._machine else {}
        if self._fabric.options.port_program:
            counters["ports"] = port_books(self._fabric, queues)
        else:
            counters.update(frame_books(self._fabric, packets_asked(self._recorder.folder)))
        if updates:
            counters["bgp"] = updates
        if self._fabric.plan.by_usid:
            counters["sids"] = sid_books(self._fabric)
            counters["no_sid"] = self._fabric.without_sid()
        drops, counters["socket_losses"] = self._socket_losses(hosts)
        self._recorder.document("counters.json", counters)
        lateness = {host: answer["lateness"] for host, answer in stats.items()}
        if self._shape_watch.error is None:
            unavailable["shaped_rate_error"] = "the run was shorter than one window of a second"
        self._recorder.document(
            "fidelity.json",
            {
                **self._machine_figures,
                "udp_rcvbuf_errors": drops,
                "lateness_p99_ns": {host: figures["p99_ns"] for host, figures in lateness.items()},
                "lateness_max_ns": {host: figures["max_ns"] for host, figures in lateness.items()},
                "shaped_rate_error": self._shape_watch.error,
                **(self._machine.at_rest() if self._machine else {}),
                "unavailable": unavailable,
            },
        )
