"""The endpoint over kernel TCP: a connection a QP, over whatever path the network hashes it to.

The host that writes (it has no region of its own) dials; where both or neither have one, the one with the smaller
number. Source ports follow from the seed, so that runs with the same seed have the same collisions. Unlike the other
endpoints this one has sockets, but no clock either: all its work is done in `receive`, `handle_timeout` and `transmit`,
which a loop calls in this order.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mrc_testbed.hosts.common.errors import UnknownPeerError, UnknownQpError
from mrc_testbed.hosts.common.events import QpEvent
from mrc_testbed.hosts.common.figures import PathReport, QpFlow, QpPackets
from mrc_testbed.hosts.common.prng import Prng
from mrc_testbed.hosts.common.qpstate import QpInput
from mrc_testbed.hosts.common.stalls import StallWatch, least_stall_ns, stalled_since
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.ktcp.attributes import TcpQpAttributes
from mrc_testbed.hosts.ktcp.connection import Connection, ConnectionEnded, text_of
from mrc_testbed.hosts.ktcp.counters import TcpCounters, packets_of, summed
from mrc_testbed.hosts.ktcp.dialling import RETRY_NS, Listener, Way, dial, passing, way_of
from mrc_testbed.hosts.ktcp.frames import FrameHeader, FrameRefused, TcpFrameKind
from mrc_testbed.hosts.ktcp.kernel import SocketOptions, TcpInfo
from mrc_testbed.hosts.ktcp.qp import TcpQp

_FIRST_QPN = 0x10
_LOOKS_PER_STALL = 4
"""How often progress is looked for in the time after which a silence is a stall."""


@dataclass(frozen=True, slots=True)
class TcpConfig:
    """Settings of one host. `ports`: its address by plane."""

    host: int
    seed: int
    rtt_ns: int
    ports: Mapping[int, str]
    congestion_control: str
    payload_bytes: int
    """Of a full packet, TCP options included."""
    hash_seed: int | None = None
    """With which connections are hashed to ports, as switches hash them; None deals them out in turn."""
    subflows: bool = False
    """MPTCP: a connection has a subflow in each plane that both hosts have."""

    @property
    def options(self) -> SocketOptions:
        """For every socket."""
        return SocketOptions(self.congestion_control, self.payload_bytes, self.subflows)


class TcpEndpoint:
    """Input: `receive`, `handle_timeout`. Output: `poll_event` until None, `transmit`, then a timer at `next_timeout`
    and a turn as soon as `fileno()` is readable."""

    def __init__(self, config: TcpConfig) -> None:
        """Listens from now on. Raises OSError, CommandError."""
        self._config = config
        self._listener = Listener(config.options)
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        self._ready: dict[int, Callable[[int, int], bool]] = {self._listener.fileno(): self._let_in}
        """By descriptor: what to call with (what it is ready for, now_ns)."""
        self._peers: dict[int, Mapping[int, str]] = {}
        self._qps: dict[int, TcpQp] = {}
        self._next_qpn = _FIRST_QPN
        self._prng = Prng(config.seed << 8 ^ config.host)
        self._ways: dict[int, Way] = {}
        """Of the QPs whose connections this host dials."""
        self._dials: dict[int, int] = {}
        """When to dial, by QP."""
        self._early: dict[int, socket.socket] = {}
        """Connections for QPs that do not know their peer's side yet."""
        self._dirty: dict[int, TcpQp] = {}
        """QPs that may have something to send."""
        self._events: deque[QpEvent] = deque()
        self._counters = TcpCounters()
        self._ended: list[tuple[int, TcpInfo]] = []
        """Last figures of connections that are gone, with the number of their QP."""
        self._dialled: dict[int, int] = {}
        """Connections dialled so far, less 1, by peer."""
        self._least_stall_ns = least_stall_ns(config.rtt_ns)
        self._look_every_ns = self._least_stall_ns // _LOOKS_PER_STALL
        self._look_ns = NEVER

    # --- application ---

    def add_peer(self, peer: int, ports: Mapping[int, str]) -> None:
        """Make host `peer` known. `ports`: its address by plane."""
        self._peers[peer] = ports

    def open_qp(self, peer: int, region_bytes: int) -> TcpQpAttributes:
        """Register a region of zeros; the result must reach the peer's `connect_qp`."""
        if peer not in self._peers:
            raise UnknownPeerError(peer)
        attributes = self._attributes(self._next_qpn, region_bytes)
        self._next_qpn += 1
        watch = StallWatch(attributes.qpn, peer, self._least_stall_ns, self._events)
        self._qps[attributes.qpn] = TcpQp(peer, attributes, watch, self._events, self._counters)
        return attributes

    def _attributes(self, qpn: int, region_bytes: int) -> TcpQpAttributes:
        return TcpQpAttributes(qpn, self._prng.bits() << 32 | self._prng.bits(), region_bytes)

    def connect_qp(self, qpn: int, remote: TcpQpAttributes) -> None:
        """Take the peer's side; dial, or wait for the peer to dial."""
        qp = self._qp(qpn)
        qp.learn(remote)
        early = self._early.pop(qpn, None)
        if early is not None:
            self._attach(qp, early)
        elif self._dials_itself(qp, remote):
            self._dials[qpn] = 0

    def _dials_itself(self, qp: TcpQp, remote: TcpQpAttributes) -> bool:
        own, theirs = bool(qp.region), bool(remote.region_bytes)
        return theirs if own is not theirs else self._config.host < qp.peer

    def reset_qp(self, qpn: int) -> TcpQpAttributes:
        """Forget the connection and what was posted; the region stays, under a new key."""
        qp = self._qp(qpn)
        qp.step(QpInput.RESET)
        self._leave(qp)
        qp.reset(self._attributes(qpn, len(qp.region)))
        return qp.attributes

    def destroy_qp(self, qpn: int) -> None:
        """Forget the QP with its region. The number is not given again."""
        qp = self._qp(qpn)
        qp.step(QpInput.RESET)
        self._leave(qp)
        qp.region = memoryview(b"")
        del self._qps[qpn]

    def _leave(self, qp: TcpQp) -> None:
        qpn = qp.attributes.qpn
        self._drop(qp)
        self._dials.pop(qpn, None)
        if qpn in self._early:
            self._early.pop(qpn).close()
        kept = [event for event in self._events if getattr(event, "qpn", None) != qpn]
        self._events.clear()
        self._events.extend(kept)

    def region(self, qpn: int) -> memoryview:
        """The registered region, writable; the peer's data appears here."""
        return self._qp(qpn).region

    def post_write(
        self, qpn: int, data: memoryview, remote_address: int, wr_id: int, immediate: int | None = None
    ) -> None:
        """Queue one write. `data` is not copied: leave it alone until completion. Raises QpStateError."""
        qp = self._qp(qpn)
        qp.post(memoryview(data).cast("B"), remote_address, wr_id, immediate)
        self._dirty[qpn] = qp

    def _qp(self, qpn: int) -> TcpQp:
        qp = self._qps.get(qpn)
        if qp is None:
            raise UnknownQpError(qpn)
        return qp

    def port_down(self, plane: int, now_ns: int) -> None:
        """Nothing: the kernel knows, and TCP waits."""

    def port_up(self, plane: int, now_ns: int) -> None:
        """Nothing, as for `port_down`."""

    def probe_paths(self, peer: int, now_ns: int) -> None:
        """Ask the other end of each connection to `peer` for an answer."""
        for qp in self._of_peer(peer):
            if qp.connection is not None:
                qp.send(FrameHeader(TcpFrameKind.PROBE))
                self._dirty[qp.attributes.qpn] = qp

    def path_report(self, peer: int) -> PathReport:
        """QPs that no probe has come back on, and the smallest RTT that the kernel knows."""
        qps = self._of_peer(peer)
        rtts = [qp.connection.info().rtt_ns for qp in qps if qp.connection is not None]
        silent = [qp.attributes.qpn for qp in qps if not qp.probed or self._lacks_subflows(qp)]
        return PathReport([], [], min(filter(None, rtts), default=None), silent)

    def _lacks_subflows(self, qp: TcpQp) -> bool:
        planes = self._config.ports.keys() & self._peers[qp.peer].keys() if self._config.subflows else ()
        return qp.connection is not None and len(qp.connection.flows()) < len(planes)

    def _of_peer(self, peer: int) -> list[TcpQp]:
        return [qp for qp in self._qps.values() if qp.peer == peer]

    def agree_on_base_rtt(self, base_ns: int) -> None:
        """Nothing: the kernel has its own."""

    # --- input ---

    def fileno(self) -> int:
        """Readable when `receive` has something to do."""
        return self._epoll.fileno()

    def receive(self, now_ns: int, everything: bool = False) -> bool:
        """Take in what has come on all sockets; returns whether there may be more. `everything`: also the part of a
        payload whose rest the kernel waits for (SO_RCVLOWAT)."""
        more = False
        ready = dict(self._epoll.poll(0))
        if everything:
            connected = (qp.connection for qp in self._qps.values() if qp.connection is not None)
            ready = {connection.fileno(): select.EPOLLIN for connection in connected} | ready
        for fd, mask in ready.items():
            # One of them may have ended another.
            if fd in self._ready:
                more |= self._ready[fd](mask, now_ns)
        return more

    def _let_in(self, mask: int, now_ns: int) -> bool:
        for accepted, hello in self._listener.arrivals():
            qp = self._expecting(hello)
            if qp is None:
                self._counters.strangers += 1
                accepted.close()
            elif qp.remote is None:
                self._early[qp.attributes.qpn] = accepted
            else:
                self._attach(qp, accepted)
        return False

    def _expecting(self, hello: FrameHeader | None) -> TcpQp | None:
        """The QP that this hello is for, unless it has a connection or was never told of."""
        qp = self._qps.get(hello.number) if hello is not None else None
        if qp is None or hello is None or hello.address != qp.attributes.key:
            return None
        return qp if qp.connection is None and hello.number not in self._early else None

    def _attach(self, qp: TcpQp, connected: socket.socket, hello: FrameHeader | None = None) -> None:
        """A connected socket is the QP's from now on."""
        connection = Connection(connected, qp.place, qp.take, qp.note)
        qp.attach(connection, hello)
        self._ready[connection.fileno()] = lambda mask, now_ns: self._on_ready(qp, connection, mask, now_ns)
        self._watch(connection, select.EPOLLIN)
        self._dirty[qp.attributes.qpn] = qp

    def _watch(self, watched: Connection | socket.socket, mask: int) -> None:
        try:
            self._epoll.modify(watched, mask)
        except FileNotFoundError:
            self._epoll.register(watched, mask)

    def _on_ready(self, qp: TcpQp, connection: Connection, mask: int, now_ns: int) -> bool:
        more = False
        try:
            if mask & ~select.EPOLLOUT:
                more = connection.receive(now_ns)
        except ConnectionEnded as ended:
            self._lose(qp, str(ended))
        except FrameRefused as refused:
            self._counters.frames_refused += 1
            self._fail(qp, f"refused a frame of the peer: {refused}")
        else:
            self._dirty[qp.attributes.qpn] = qp
        return more

    def _lose(self, qp: TcpQp, reason: str) -> None:
        """The connection has ended. That is a failure of the QP as soon as it has something to send."""
        qp.ended = reason
        if qp.outstanding:
            self._fail(qp, reason)
        else:
            self._drop(qp)

    def _fail(self, qp: TcpQp, reason: str) -> None:
        self._drop(qp)
        qp.fail(reason)

    def _drop(self, qp: TcpQp) -> None:
        """Let go of the connection; what it counted is kept."""
        self._dirty.pop(qp.attributes.qpn, None)
        dialling, qp.dialling = qp.dialling, None
        if dialling is not None:
            del self._ready[dialling.fileno()]
            dialling.close()
        connection, qp.connection = qp.connection, None
        if connection is not None:
            self._ended.append((qp.attributes.qpn, connection.info()))
            del self._ready[connection.fileno()]
            connection.close()

    def handle_timeout(self, now_ns: int) -> None:
        """Dial, and look for progress, where it is time."""
        for qpn, due_ns in list(self._dials.items()):
            if due_ns <= now_ns:
                del self._dials[qpn]
                self._dial(self._qps[qpn], now_ns)
        if now_ns >= self._look_ns:
            waiting = [qp for qp in self._qps.values() if qp.outstanding]
            for qp in waiting:
                qp.look_for_progress(now_ns)
            self._look_ns = now_ns + self._look_every_ns if waiting else NEVER

    def _dial(self, qp: TcpQp, now_ns: int) -> None:
        self._counters.dials += 1
        try:
            dialling = dial(self._way(qp), self._config.options)
        except OSError as error:
            self._dialled_in_vain(qp, error.errno or 0, now_ns)
            return
        self._ready[dialling.fileno()] = lambda mask, now_ns: self._on_dialled(qp, dialling, now_ns)
        self._watch(dialling, select.EPOLLOUT)
        qp.dialling = dialling

    def _way(self, qp: TcpQp) -> Way:
        qpn, peer = qp.attributes.qpn, qp.peer
        if qpn not in self._ways:
            hosts = self._config.host, peer
            ordinal = self._dialled[peer] = self._dialled.get(peer, -1) + 1
            ports = self._config.ports, self._peers[peer]
            self._ways[qpn] = way_of(self._config.seed, hosts, ordinal, *ports, self._config.hash_seed)
        return self._ways[qpn]

    def _on_dialled(self, qp: TcpQp, dialling: socket.socket, now_ns: int) -> bool:
        del self._ready[dialling.fileno()]
        qp.dialling = None
        code = dialling.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            dialling.close()
            self._dialled_in_vain(qp, code, now_ns)
        elif qp.remote is not None:
            remote = qp.remote
            self._attach(qp, dialling, FrameHeader(TcpFrameKind.HELLO, address=remote.key, number=remote.qpn))
        return False

    def _dialled_in_vain(self, qp: TcpQp, code: int, now_ns: int) -> None:
        if passing(code):
            self._dials[qp.attributes.qpn] = now_ns + RETRY_NS
        else:
            self._fail(qp, text_of(code))

    # --- output ---

    def poll_event(self) -> QpEvent | None:
        """Next event, oldest first; None when there is none."""
        return self._events.popleft() if self._events else None

    def transmit(self, now_ns: int) -> None:
        """Give the kernel what it takes of all that is to be sent."""
        dirty, self._dirty = self._dirty, {}
        for qp in dirty.values():
            self._flush(qp, now_ns)

    def _flush(self, qp: TcpQp, now_ns: int) -> None:
        if qp.outstanding and self._look_ns == NEVER:
            self._look_ns = now_ns + self._look_every_ns
        if qp.outstanding and qp.ended:
            self._fail(qp, qp.ended)
            return
        try:
            all_sent = qp.flush(now_ns)
        except ConnectionEnded as ended:
            self._lose(qp, str(ended))
            return
        if qp.connection is not None and all_sent is qp.blocked:
            qp.blocked = not all_sent
            self._watch(qp.connection, select.EPOLLIN | (0 if all_sent else select.EPOLLOUT))

    def next_timeout(self) -> int | None:
        """When to call `handle_timeout` next; None: no need to."""
        when = min(self._dials.values(), default=NEVER)
        when = min(when, self._look_ns)
        return None if when == NEVER else when

    # --- reading ---

    def counters(self) -> dict[str, int]:
        """All counters so far, flat."""
        return summed(self._counters, [info for _, info in self._infos()])

    def _infos(self) -> list[tuple[int, TcpInfo]]:
        """Of every connection there ever was, with the number of its QP."""
        live = [(qpn, qp.connection.info()) for qpn, qp in self._qps.items() if qp.connection is not None]
        return self._ended + live

    def qp_packets(self) -> dict[int, QpPackets]:
        """Data packets of each QP that was ever connected, as the kernel counts them."""
        found: dict[int, QpPackets] = {}
        for qpn, info in self._infos():
            if qpn in self._qps:
                found[qpn] = packets_of(info, found.get(qpn))
        return found

    def lost_packets(self) -> dict[int, int]:
        """Packets that the kernel sent again, by QP."""
        return {qpn: packets.lost for qpn, packets in self.qp_packets().items() if packets.lost}

    def take_placed(self, qpn: int, mark_ns: int) -> int:
        """Payload bytes read into the region of a connected QP, as `PlacedBytes.take`."""
        return self._qp(qpn).placed.take(mark_ns)

    def path_packets(self, peer: int) -> dict[tuple[int, int], int]:
        """None: it is the network that chooses paths."""
        return {}

    def qp_flows(self) -> dict[int, list[QpFlow]]:
        """Of each QP that has a connection; either end may have dialled it."""
        planes = {address: plane for plane, address in self._config.ports.items()}
        connected = [(qpn, qp.connection.flows()) for qpn, qp in self._qps.items() if qp.connection is not None]
        return {qpn: [QpFlow(planes[own], "tcp", *ports) for own, *ports in flows] for qpn, flows in connected if flows}

    def stalled(self, now_ns: int) -> dict[int, int]:
        """When the stalls began that go on at `now_ns`, by QP number; those of failed QPs too."""
        return stalled_since((qp.watch for qp in self._qps.values()), now_ns)
