"""The commands that the runner gives a daemon, and the events that the daemon sends back.

A session goes one way: configure, open_qps, connect_qps, then warm_up and load in any order, start. After a program is
done, destroy_qps and reset_qps lead back to before open_qps and connect_qps. Whatever comes too early, twice, or with
wrong fields is answered with a reason and changes nothing.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hosts.carrier import Carrier
from hosts.common.errors import CoreError, PeerAttributeError, QpStateError
from hosts.common.events import ImmediateDelivered, WriteCompleted
from hosts.control import CommandError, ControlChannel, Fields, Request, number_in, text_in
from hosts.core.attributes import check_peer
from hosts.core.config import EndpointConfig, QpAttributes
from hosts.core.endpoint import Endpoint
from hosts.core.events import Event
from hosts.denylist import Denylist
from hosts.network import Network, PeerRow
from hosts.operations import ProgramError
from hosts.plugins import LoadedPlugins
from hosts.program import Program
from hosts.program_io import RankPrograms
from hosts.reports import describe, describe_report
from hosts.settings import read_settings
from hosts.udp import Lateness, RxSocket, TxSocket
from hosts.wire import CLASS_TRIMMABLE

SNAPSHOT_NS = 200_000_000
"""Five snapshots a second."""
_MIN_PROBE_PERIOD_NS = 10_000_000
_PROBE_PERIOD_RTTS = 4
_WARM_UP_ROUNDS = 3
"""The first round meets cold caches and every other host's burst; its RTTs alone would say too much."""


@dataclass(slots=True)
class NamedQp:
    """A QP by its name on this host. `remote_address` is the first byte of the peer's region, None until connected."""

    name: str
    peer: int
    qpn: int
    remote_address: int | None = None


@dataclass(slots=True)
class WarmUp:
    """A `warm_up` that waits for its answer."""

    request_id: Any
    until_ns: int
    probe_ns: int
    rounds: int
    broken: set[tuple[str, int, int]]
    """Peer name, plane, uplink of paths that need not answer."""


def _broken(table: Fields) -> set[tuple[str, int, int]]:
    """Paths as `silent` names them. Raises CommandError."""
    try:
        return {(peer, int(plane), int(uplink)) for peer, paths in table.items() for plane, uplink in paths}
    except (TypeError, ValueError) as error:
        raise CommandError(f"broken must be {{peer: [[plane, uplink], ...]}}: {error}") from None


class QpTransport:
    """A program's writes and regions, by QP name."""

    def __init__(self, endpoint: Endpoint, qps: dict[str, NamedQp], peers: dict[int, str]) -> None:
        self._endpoint = endpoint
        self._qps = qps
        self._peers = peers
        self._wr_id = 0

    def region(self, qp: str) -> memoryview:
        """This side's registered memory. Raises KeyError for an unknown QP."""
        return self._endpoint.region(self._qps[qp].qpn)

    def peer(self, qp: str) -> str:
        """The name of the host at the other end."""
        return self._peers[self._qps[qp].peer]

    def post_write(self, qp: str, data: memoryview, remote_offset: int, immediate: int | None) -> None:
        """Queue a write into the peer's region."""
        self._wr_id += 1
        target = self._qps[qp]
        if target.remote_address is None:
            raise ProgramError(f"QP {qp} is not connected")
        # A QP in ERROR takes nothing more, and its `qp_error` was reported: the program waits, the runner decides.
        with contextlib.suppress(QpStateError):
            self._endpoint.post_write(target.qpn, data, target.remote_address + remote_offset, self._wr_id, immediate)


class Session:
    """The state that commands build up. Who drives it reads `network`, `program` and `running`."""

    def __init__(self, channel: ControlChannel, lateness: Lateness) -> None:
        self._channel = channel
        self._lateness = lateness
        self._peers: dict[int, str] = {}
        self._qps: dict[str, NamedQp] = {}
        self._names: dict[int, str] = {}
        self._denylist = Denylist({}, {})
        self._warm_up: WarmUp | None = None
        self._snapshot_ns = 0
        self.next_tick_ns = 0
        """When `tick` has something to do."""
        self._started = False
        self._reported_done = False
        self.plugins = LoadedPlugins()
        self.network: Network | None = None
        self.program: Program | None = None
        self.running = True
        self._commands: dict[str, Callable[[Request, int], Fields | None]] = {
            "configure": self._configure,
            "open_qps": self._open_qps,
            "connect_qps": self._connect_qps,
            "reset_qps": self._reset_qps,
            "destroy_qps": self._destroy_qps,
            "deny": self._deny,
            "allow": self._allow,
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
        except (CommandError, CoreError, ProgramError, OSError, ValueError) as error:
            if self.plugins.blame(error) is not None:
                raise
            self._channel.send({"id": request_id, "ok": False, "error": str(error)})
            return
        if answer is not None:
            self._channel.send({"id": request_id, "ok": True, **answer})

    def take_event(self, event: Event, now_ns: int) -> None:
        """Pass on what the endpoint reports: to the program, or to the runner."""
        match event:
            case ImmediateDelivered():
                if self.program is not None:
                    self.program.immediate(self._names[event.qpn], event.immediate)
            case WriteCompleted():
                if self.program is not None:
                    self.program.written(self._names[event.qpn])
            case _:
                name, fields = describe(event, self._peers, self._names)
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
            self._snapshot_ns = now_ns + SNAPSHOT_NS
            seen = {"counters": self._counters(), "lost": self._lost(), "lateness": self._lateness.summary()}
            self.report("snapshot", now_ns, seen)
        if self._warm_up is not None:
            self._continue_warm_up(self._warm_up, now_ns)
        self.next_tick_ns = self._snapshot_ns
        if self._warm_up is not None:
            self.next_tick_ns = min(self._snapshot_ns, self._warm_up.probe_ns, self._warm_up.until_ns)

    # Output

    def report(self, event: str, now_ns: int, fields: Fields) -> None:
        """Send an event line."""
        self._channel.send({"event": event, "t_ns": now_ns, **fields})

    def _counters(self) -> Fields:
        network = self._configured()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            **network.endpoint.counters(),
            **{f"send_lost_{name}": count for name, count in network.tx.lost.items()},
            "packets_out": network.packets_out,
            "packets_in": network.packets_in,
            "unknown_source": network.rx.unknown_sources,
            "receive_buffer_drops": network.rx.buffer_drops(),
            "cpu_ns": int((usage.ru_utime + usage.ru_stime) * 1e9),
        }

    def _lost(self) -> dict[str, int]:
        lost = self._configured().endpoint.lost_packets()
        return {self._names[qpn]: count for qpn, count in lost.items()}

    # Commands: each returns the fields of its answer, or raises without having changed anything

    def _configured(self) -> Network:
        if self.network is None:
            raise CommandError("send configure first")
        return self.network

    def _configure(self, request: Request, now_ns: int) -> Fields:
        if self.network is not None:
            raise CommandError("already configured")
        config = EndpointConfig(
            host=request.number("host"),
            planes=request.number("planes", 1),
            udp_port=request.number("udp_port", 1),
            rtt_ns=request.number("rtt_ns"),
            port_rate_bps=request.number("port_rate_bps", 1),
            seed=request.number("seed"),
            **read_settings(request),
        )
        delay_ns = request.number("delay_ns")
        stamped = delay_ns > 0 or (request.has("port_program") and request.flag("port_program"))
        peers = [PeerRow.read(row) for row in request.rows("peers")]
        denylist = Denylist({peer.name: peer.host for peer in peers}, {peer.host: peer.paths for peer in peers})
        denied = denylist.select(request.rows("denylist")) if request.has("denylist") else []
        plugins = LoadedPlugins()
        plugins.load(request.rows("plugins") if request.has("plugins") else [])
        self.plugins = plugins
        endpoint = Endpoint(config, plugins.plugins)
        for peer in peers:
            endpoint.add_peer(peer.host, peer.paths)
        for host, ids in denied:
            endpoint.deny(host, ids)
        self._denylist = denylist
        rx = RxSocket({peer.address: peer.host for peer in peers}, delay_ns, stamped)
        tx = TxSocket(request.text("address"), config.udp_port, CLASS_TRIMMABLE)
        self._peers = {peer.host: peer.name for peer in peers}
        self.network = Network(endpoint, rx, tx, Carrier(config.planes), delay_ns, stamped, config.rtt_ns)
        self.network.follow_ports(now_ns)
        return {}

    def _open_qps(self, request: Request, now_ns: int) -> Fields:
        endpoint = self._configured().endpoint
        wanted = [
            (text_in(row, "id"), number_in(row, "peer"), number_in(row, "region_bytes")) for row in request.rows("qps")
        ]
        for name, peer, _ in wanted:
            if name in self._qps:
                raise CommandError(f"QP {name} is already open")
            if peer not in self._peers:
                raise CommandError(f"QP {name}: unknown peer, host {peer}")
        opened: Fields = {}
        for name, peer, region_bytes in wanted:
            attributes = endpoint.open_qp(peer, region_bytes)
            self._qps[name] = NamedQp(name, peer, attributes.qpn)
            self._names[attributes.qpn] = name
            opened[name] = attributes.as_json()
        return {"qps": opened}

    def _connect_qps(self, request: Request, now_ns: int) -> Fields:
        endpoint = self._configured().endpoint
        remotes: list[tuple[NamedQp, QpAttributes]] = []
        for name, fields in request.table("qps").items():
            qp = self._qps.get(name)
            if qp is None or qp.remote_address is not None:
                raise CommandError(f"QP {name} is not open" if qp is None else f"QP {name} is already connected")
            try:
                remote = QpAttributes.from_json(fields)
                check_peer(remote)
            except (KeyError, IndexError, TypeError) as error:
                raise CommandError(f"QP {name}: missing or malformed remote attribute {error}") from None
            except PeerAttributeError as error:
                raise CommandError(f"QP {name}: {error}") from None
            remotes.append((qp, remote))
        for qp, remote in remotes:
            endpoint.connect_qp(qp.qpn, remote)
            qp.remote_address = remote.region_address
        return {}

    def _reset_qps(self, request: Request, now_ns: int) -> Fields:
        endpoint = self._configured().endpoint
        attributes: Fields = {}
        for qp in self._unused(request):
            attributes[qp.name] = endpoint.reset_qp(qp.qpn).as_json()
            qp.remote_address = None
        return {"qps": attributes}

    def _destroy_qps(self, request: Request, now_ns: int) -> Fields:
        endpoint = self._configured().endpoint
        for qp in self._unused(request):
            endpoint.destroy_qp(qp.qpn)
            del self._qps[qp.name], self._names[qp.qpn]
        return {}

    def _unused(self, request: Request) -> list[NamedQp]:
        """The QPs that `qps` names, each once; no program has a hold of them any more."""
        rows = request.rows("qps")
        unknown = [str(name) for name in rows if type(name) is not str or name not in self._qps]
        if unknown:
            raise CommandError(f"QP {', '.join(unknown)} is not open")
        if self.program is not None and not self._reported_done:
            raise CommandError("a program is loaded, and may use these QPs: wait for program_done")
        self.program = None
        return [self._qps[name] for name in dict.fromkeys(rows)]

    def _deny(self, request: Request, now_ns: int) -> Fields:
        endpoint = self._configured().endpoint
        for peer, paths in self._denylist.select(request.rows("paths")):
            endpoint.deny(peer, paths)
        return {}

    def _allow(self, request: Request, now_ns: int) -> Fields:
        endpoint = self._configured().endpoint
        for peer, paths in self._denylist.select(request.rows("paths")):
            endpoint.allow(peer, paths, now_ns)
        return {}

    def _start_warm_up(self, request: Request, now_ns: int) -> None:
        self._configured()
        if self._warm_up is not None:
            raise CommandError("a warm-up is already running")
        broken = _broken(request.table("broken")) if request.has("broken") else set()
        self._warm_up = WarmUp(request.id, now_ns + request.number("timeout_ns"), now_ns, _WARM_UP_ROUNDS, broken)
        self.next_tick_ns = now_ns

    def _continue_warm_up(self, warm_up: WarmUp, now_ns: int) -> None:
        network = self._configured()
        reports = {peer: network.endpoint.path_report(peer) for peer in self._peers}
        silent = {self._peers[peer]: report.silent for peer, report in reports.items() if report.silent}
        waiting = any((name, *path) not in warm_up.broken for name, paths in silent.items() for path in paths)
        complete = not waiting and warm_up.rounds <= 0 and now_ns >= warm_up.probe_ns
        if complete or now_ns >= warm_up.until_ns:
            self._warm_up = None
            rtt_ns = {self._peers[peer]: report.rtt_ns for peer, report in reports.items() if report.rtt_ns is not None}
            self._channel.send({"id": warm_up.request_id, "ok": True, "rtt_ns": rtt_ns, "silent": silent})
        elif now_ns >= warm_up.probe_ns:
            warm_up.rounds -= 1
            warm_up.probe_ns = now_ns + max(_MIN_PROBE_PERIOD_NS, _PROBE_PERIOD_RTTS * network.rtt_ns)
            for peer in self._peers:
                network.endpoint.probe_paths(peer, now_ns)

    def _load(self, request: Request, now_ns: int) -> Fields:
        endpoint = self._configured().endpoint
        if self._started and not self._reported_done:
            raise CommandError("a program is running")
        job = RankPrograms(request.number("rank"), request.number("data_seed"), request.rows("program"))
        self.program = Program(job, QpTransport(endpoint, self._qps, self._peers))
        self._started = self._reported_done = False
        return {}

    def _start(self, request: Request, now_ns: int) -> Fields:
        if self.program is None:
            raise CommandError("send load first")
        if self._started:
            raise CommandError("the program has already been started")
        unconnected = [qp.name for qp in self._qps.values() if qp.remote_address is None]
        if unconnected:
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
        return {}

    def _stats(self, request: Request, now_ns: int) -> Fields:
        endpoint = self._configured().endpoint
        paths = {
            name: {f"{plane}/{uplink}": packets for (plane, uplink), packets in endpoint.path_packets(peer).items()}
            for peer, name in self._peers.items()
        }
        packets = endpoint.qp_packets()
        qps = {
            name: {"peer": self._peers[qp.peer], **packets[qp.qpn]._asdict()}
            for name, qp in self._qps.items()
            if qp.qpn in packets
        }
        return {"counters": self._counters(), "paths": paths, "qps": qps, "lateness": self._lateness.summary()}

    def _stop(self, request: Request, now_ns: int) -> Fields:
        self.running = False
        return {}
