"""The commands that the runner gives a daemon, and the events that the daemon sends back.

A session goes one way: configure, open_qps, connect_qps, then warm_up and load in any order, start. After a program is
done, destroy_qps and reset_qps lead back to before open_qps and connect_qps. Whatever comes too early, twice, or with
wrong fields is answered with a reason and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time_ns
from typing import Protocol

from mrc_testbed.hosts.blocks import Xor, xor_into
from mrc_testbed.hosts.common.errors import CoreError
from mrc_testbed.hosts.common.events import ImmediateDelivered, QpError, WriteCompleted
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.configure import configured
from mrc_testbed.hosts.control import CommandError, Fields, Request
from mrc_testbed.hosts.gateway.gateway import Gateway
from mrc_testbed.hosts.gateway.opening import open_gateway
from mrc_testbed.hosts.mapper_agent import MapperAgent, described, open_agent
from mrc_testbed.hosts.network import DatagramNetwork, Network
from mrc_testbed.hosts.operations import ProgramError
from mrc_testbed.hosts.plugins import LoadedPlugins
from mrc_testbed.hosts.program import Program
from mrc_testbed.hosts.program_io import RankPrograms
from mrc_testbed.hosts.qps import NamedQp, NamedQps, QpTransport
from mrc_testbed.hosts.reports import describe, describe_report
from mrc_testbed.hosts.rounds import ROUNDS
from mrc_testbed.hosts.stream import GRAIN_NS
from mrc_testbed.hosts.udp import Lateness
from mrc_testbed.hosts.verbs.opening import open_verbs
from mrc_testbed.hosts.verbs.server import ProgramServer
from mrc_testbed.hosts.warmup import WarmUp
from mrc_testbed.hosts.wiring import KernelWiring, Wiring

SNAPSHOT_NS = 200_000_000
"""Five snapshots a second."""


class RunnerChannel(Protocol):
    """The way to the runner: mrc_testbed.hosts.control.ControlChannel."""

    def send(self, fields: Fields) -> None:
        """Send one line."""


class Session:
    """The state that commands build up. Who drives it reads `network`, `program` and `running`.

    `wiring`: what carries the packets; None: sockets of this namespace. `cpu_ns`: CPU time so far. `xor`: how rank
    programs add data.
    """

    def __init__(
        self,
        channel: RunnerChannel,
        lateness: Lateness,
        wiring: Wiring | None = None,
        cpu_ns: Callable[[], int] = process_time_ns,
        xor: Xor = xor_into,
    ) -> None:
        self._channel = channel
        self._lateness = lateness
        self._wiring = wiring or KernelWiring()
        self._cpu_ns = cpu_ns
        self._xor = xor
        self._warm_up: WarmUp | None = None
        self._snapshot_ns = 0
        self.next_tick_ns = 0
        """When `tick` has something to do."""
        self._started = False
        self._reported_done = False
        self.plugins = LoadedPlugins()
        self.network: Network | None = None
        self._qps: NamedQps
        """There with `network`."""
        self.program: Program | None = None
        self.gateway: Gateway | None = None
        """Carries the IP packets of programs, where there are some."""
        self.verbs: ProgramServer | None = None
        """Serves programs that are written for MRC NICs."""
        self.agent: MapperAgent | None = None
        """Probes the fabric for the mapper."""
        self.running = True
        self.held = False
        """By a fault: this host does nothing until it is let go."""
        self.per_packet_ns = 0
        """By a fault: what it needs for each packet, before it turns again (`take_time`)."""
        self.rest_until_ns = 0
        """Then it has had that time."""
        self._handled = 0
        self.excused_until_ns = 0
        """What arrived before then is late by a fault, and not by the machine."""
        self._commands: dict[str, Callable[[Request, int], Fields | None]] = {
            "configure": self._configure,
            "open_qps": self._open_qps,
            "connect_qps": self._connect_qps,
            "open_gateway": self._open_gateway,
            "open_verbs": self._open_verbs,
            "close_verbs": self._close_verbs,
            "reset_qps": self._reset_qps,
            "destroy_qps": self._destroy_qps,
            "deny": self._deny,
            "allow": self._allow,
            "hinder": self._hinder,
            "map": self._map,
            "warm_up": self._start_warm_up,
            "load": self._load,
            "start": self._start,
            "quiet": self._quiet,
            "stats": self._stats,
            "stop": self._stop,
        }

    # Input

    def handle(self, line: bytes, now_ns: int) -> None:
        """Carry out one command line and answer it; `warm_up` is answered later, by `tick`.

        What a plugin raises is no answer: it ends the daemon.
        """
        request_id = None
        try:
            request = Request(line)
            request_id = request.id
            command = self._commands.get(request.cmd)
            if command is None:
                raise CommandError(f"unknown command {request.cmd!r}; known commands: {', '.join(self._commands)}")
            answer = command(request, now_ns)
        except (CommandError, CoreError, ProgramError, OSError, ValueError, OverflowError, MemoryError) as error:
            if self.plugins.blame(error) is not None:
                raise
            self._channel.send({"id": request_id, "ok": False, "error": str(error) or type(error).__name__})
            return
        if answer is not None:
            self._channel.send({"id": request_id, "ok": True, **answer})

    def take_event(self, event: object, now_ns: int) -> None:
        """Pass on what the endpoint reports: to the program, or to the runner."""
        match event:
            case _ if self.verbs is not None and self.verbs.take_event(event):
                pass
            case ImmediateDelivered():
                qp = self._qps.names[event.qpn]
                if self.gateway is not None and self.gateway.immediate(qp, event.immediate):
                    return
                if self.program is not None:
                    self.program.immediate(qp, event.immediate)
            case WriteCompleted():
                qp = self._qps.names[event.qpn]
                if self.gateway is not None and self.gateway.written(qp, now_ns):
                    return
                if self.program is not None:
                    self.program.written(qp)
            case QpError() if self._configured().quiet:
                pass  # it was told to be silent, and its peers may be gone
            case _:
                name, fields = describe(event, self._configured().peers, self._qps.names)
                self.report(name, now_ns, fields)

    def take_reports(self, now_ns: int) -> None:
        """Pass on what the program has to report, and its end."""
        if self.program is None:
            return
        while (report := self.program.poll_report()) is not None:
            name, fields = describe_report(report)
            self.report(name, now_ns, fields)
        if not self._reported_done and self.program.done:
            self._reported_done = True
            self.report("program_done", now_ns, {})

    def tick(self, now_ns: int) -> None:
        """Do what is due by the clock: snapshots, warm-up probes, the end of a warm-up. Sets `next_tick_ns`."""
        if now_ns >= self._snapshot_ns:
            self._snapshot_ns = now_ns + SNAPSHOT_NS // self._configured().speed
            self.report("snapshot", now_ns, self._snapshot(now_ns))
        self.next_tick_ns = self._snapshot_ns
        if self._warm_up is not None:
            self._continue_warm_up(self._warm_up, now_ns)

    def probe(self, agent: MapperAgent, now_ns: int) -> None:
        """Let the agent go on, and report what came of its probes. To be called when `agent.next_ns` has come."""
        for over in agent.pump(now_ns):
            self.report("map_window", now_ns, described(over))

    def take_time(self, now_ns: int) -> None:
        """This host, slowed down by a fault, rests for the packets since the last call."""
        handled = self._configured().packets_handled
        self.rest_until_ns = now_ns + (handled - self._handled) * self.per_packet_ns
        self._handled = handled

    # Output

    def report(self, event: str, now_ns: int, fields: Fields) -> None:
        """Send an event line."""
        self._channel.send({"event": event, "t_ns": now_ns, **fields})

    def _snapshot(self, now_ns: int) -> Fields:
        network = self._configured()
        endpoint, paths = network.endpoint, network.path_log
        return {
            "counters": self._counters(),
            "lost": self._qps.named(endpoint.lost_packets()),
            "stalled": self._qps.named(endpoint.stalled(now_ns)),
            "lateness": self._lateness.summary(),
            **(paths.take() if paths is not None else {}),
        }

    def _counters(self) -> Fields:
        counted: Fields = self._configured().counters()
        if self.agent is not None:
            counted = self.agent.counters(counted)
        if self.gateway is not None:
            counted |= self.gateway.counters()
        if self.verbs is not None:
            counted |= self.verbs.counters()
        counted["cpu_ns"] = self._cpu_ns()
        return counted

    # Commands: each returns the fields of its answer, or raises without having changed anything

    def _configured(self) -> Network:
        if self.network is None:
            raise CommandError("send configure first")
        return self.network

    def _configure(self, request: Request, now_ns: int) -> Fields:
        if self.network is not None:
            raise CommandError("already configured")
        plugins = LoadedPlugins()
        plugins.load(request.rows("plugins") if request.has("plugins") else [])
        self.plugins = plugins
        network = configured(request, plugins, self._wiring)
        self._qps = NamedQps(network)
        self.network = network
        network.follow_ports(now_ns)
        return {}

    def _open_qps(self, request: Request, now_ns: int) -> Fields:
        self._configured()
        return {"qps": self._qps.open(request.rows("qps"))}

    def _connect_qps(self, request: Request, now_ns: int) -> Fields:
        self._configured()
        self._qps.connect(request.table("qps"))
        return {}

    def _open_gateway(self, request: Request, now_ns: int) -> Fields:
        network = self._configured()
        if self.gateway is not None:
            raise CommandError("there is a gateway already")
        qps = QpTransport(network.endpoint, self._qps.by_name, network.peers)
        self.gateway = open_gateway(request, qps, network.rtt_ns)
        return {}

    def _open_verbs(self, request: Request, now_ns: int) -> Fields:
        network = self._configured()
        if self.verbs is not None:
            raise CommandError("verbs are served already")
        self.verbs = open_verbs(request, network, self._qps, self.report)
        return {}

    def _close_verbs(self, request: Request, now_ns: int) -> Fields:
        if self.verbs is not None:
            self.verbs.close(now_ns)
        return {}

    def _reset_qps(self, request: Request, now_ns: int) -> Fields:
        return {"qps": self._qps.reset(self._unused(request))}

    def _destroy_qps(self, request: Request, now_ns: int) -> Fields:
        self._qps.destroy(self._unused(request))
        return {}

    def _unused(self, request: Request) -> list[NamedQp]:
        """The QPs that `qps` names; no program has a hold of them any more."""
        self._configured()
        found = self._qps.find(request.rows("qps"))
        if self.program is not None and not self._reported_done:
            raise CommandError("a program is loaded, and may use these QPs: wait for program_done")
        self.program = None
        return found

    def _deny(self, request: Request, now_ns: int) -> Fields:
        denylist = self._configured().denylist
        if denylist is None:
            return {"not_applicable": True}
        denylist.deny(request.rows("paths"))
        return {}

    def _allow(self, request: Request, now_ns: int) -> Fields:
        denylist = self._configured().denylist
        if denylist is None:
            return {"not_applicable": True}
        denylist.allow(request.rows("paths"), now_ns)
        return {}

    def _hinder(self, request: Request, now_ns: int) -> Fields:
        """A fault holds this host, slows it down, or lets it go."""
        self._handled = self._configured().packets_handled
        held, per_packet_ns = request.flag("held"), request.number("per_packet_ns")
        self.excused_until_ns = NEVER if held or per_packet_ns else now_ns
        self.held, self.per_packet_ns, self.rest_until_ns = held, per_packet_ns, now_ns
        return {}

    def _map(self, request: Request, now_ns: int) -> Fields:
        network = self._configured()
        if self.agent is not None:
            raise CommandError("there is an agent of the mapper already")
        if not isinstance(network, DatagramNetwork) or network.denylist is None:
            return {"not_applicable": True}
        self.agent = open_agent(request, network, self._wiring, now_ns)
        return {}

    def _start_warm_up(self, request: Request, now_ns: int) -> None:
        network = self._configured()
        if self._warm_up is not None:
            raise CommandError("a warm-up is already running")
        broken = request.table("broken") if request.has("broken") else {}
        round_ns = request.number("round_ns") if request.has("round_ns") else 0
        rounds = request.number("rounds", 1) if request.has("rounds") else ROUNDS
        last_ns = request.number("last_ns") if request.has("last_ns") else None
        until_ns = now_ns + request.number("timeout_ns")
        self._warm_up = WarmUp(request.id, until_ns, broken, network, now_ns, round_ns, rounds, last_ns)
        self.next_tick_ns = now_ns

    def _continue_warm_up(self, warm_up: WarmUp, now_ns: int) -> None:
        answer = warm_up.advance(now_ns, self._qps.names)
        if answer is not None:
            self._warm_up = None
            self._channel.send({"id": warm_up.request_id, "ok": True, **answer})
        else:
            self.next_tick_ns = min(self.next_tick_ns, warm_up.next_ns)

    def _load(self, request: Request, now_ns: int) -> Fields:
        network = self._configured()
        if self._started and not self._reported_done:
            raise CommandError("a program is running")
        rank, data_seed, tracks = request.number("rank"), request.number("data_seed"), request.rows("program")
        job = RankPrograms(rank, data_seed, tracks, GRAIN_NS // network.speed)
        self.program = Program(job, QpTransport(network.endpoint, self._qps.by_name, network.peers), self._xor)
        self._started = self._reported_done = False
        return {}

    def _start(self, request: Request, now_ns: int) -> Fields:
        if self.program is None:
            raise CommandError("send load first")
        if self._started:
            raise CommandError("the program has already been started")
        if unconnected := self._qps.unconnected():
            raise CommandError(f"send connect_qps first: {', '.join(unconnected)} not connected")
        if request.has("base_rtt_ns"):
            self._configured().endpoint.agree_on_base_rtt(request.number("base_rtt_ns", 1))
        self.program.start(request.number("at_ns"))
        # Set-up is not measured: a daemon that prepares its data has no time for timers.
        self._lateness.clear()
        self._started = True
        return {}

    def _quiet(self, request: Request, now_ns: int) -> Fields:
        self._configured().quiet = True
        if self.gateway is not None:
            self.gateway.stop()
        return {}

    def _stats(self, request: Request, now_ns: int) -> Fields:
        network = self._configured()
        if self.agent is not None:
            self.agent.take_in(now_ns)
        paths = {
            name: {f"{p}/{u}": packets for (p, u), packets in network.endpoint.path_packets(peer).items()}
            for peer, name in network.peers.items()
        }
        found: Fields = {"paths": paths, "qps": self._qps.packets(), "flows": self._qps.flows()}
        return {"counters": self._counters(), **found, "lateness": self._lateness.summary()}

    def _stop(self, request: Request, now_ns: int) -> Fields:
        self.running = False
        return {}
