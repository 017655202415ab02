"""What every endpoint without I/O does alike: its queues and turns, its timers, its counters, its figures."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from mrc_testbed.hosts.common.bth import CLASS_CONTROL, seal, whole
from mrc_testbed.hosts.common.errors import UnknownQpError
from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.common.figures import QpPackets
from mrc_testbed.hosts.common.memory import QpTerms, ReadableMemory
from mrc_testbed.hosts.common.pacer import Pacer
from mrc_testbed.hosts.common.qpstate import QueuePair
from mrc_testbed.hosts.common.stalls import StallWatch, stalled_since
from mrc_testbed.hosts.common.timers import NEVER, Timers

FIRST_QPN = 0x10
"""0 and 1 are management QPs; in MRC 2 means endpoint operations."""
REGION_SPACING = 1 << 32
"""Virtual addresses of regions: QP number times this, so that no two regions touch."""
Packet = tuple[int, Hashable, int]
"""Size, where to send it, traffic class."""
ControlPacket = tuple[int, Hashable, Callable[..., int], tuple[Any, ...], int]
"""Plane, where it goes, `emit(buffer, now_ns, *arguments) -> size`, and the traffic class. It is written when sent, so
that it says the latest."""


class DataSender:
    """One QP's sender in the queue of its endpoint. `ready`: it is in it."""

    __slots__ = ("lost_packets", "qpn", "ready", "silence")
    lost_packets: int
    """Packets taken for lost."""
    qpn: int
    ready: bool
    silence: StallWatch

    def may_send_at(self, now_ns: int) -> int:
        """When its next packet may go, a time past for now; NEVER if it has none, and it has left the queue then."""
        raise NotImplementedError

    def transmit(self, now_ns: int, buffer: memoryview) -> Packet | None:
        """Write the next packet, and leave `ready` saying whether another may follow."""
        raise NotImplementedError

    @property
    def sent_packets(self) -> int:
        """Data packets sent for the first time."""
        raise NotImplementedError


class SharedContext:
    """The queues of one endpoint. `control_room`: control packets that may wait to be sent. Nothing holds them back but
    the application, which polls after every few inputs: what finds no room answers a flood."""

    __slots__ = (
        "blocked_until", "control", "control_room", "events", "held", "lends", "lent", "pacer", "ready", "timers"
    )  # fmt: skip

    def __init__(self, pacer: Pacer, control_room: int) -> None:
        self.pacer = pacer
        self.control_room = control_room
        self.control: deque[ControlPacket] = deque()
        self.events: deque[Any] = deque()
        self.ready: deque[DataSender] = deque()
        """Senders with something to send and room to send it, in turn."""
        self.held: dict[int, int] = {}
        """What each paused port had been given in advance, ns."""
        self.timers = Timers()
        self.blocked_until = 0
        """No sender can go before this time; 0: not known, look."""
        self.lends = False
        """Senders may write headers alone, and leave their payload in `lent`."""
        self.lent: memoryview | None = None

    def figures(self) -> dict[str, int]:
        """All counters so far, flat."""
        raise NotImplementedError

    def no_room(self) -> None:
        """Count a control packet that found none."""
        raise NotImplementedError

    def queue_control(
        self,
        plane: int,
        token: Hashable,
        emit: Callable[..., int],
        arguments: tuple[Any, ...] = (),
        traffic_class: int = CLASS_CONTROL,
    ) -> bool:
        """Queue one packet that is not data; False, and it is counted, when there is no room for it."""
        if len(self.control) >= self.control_room:
            self.no_room()
            return False
        self.control.append((plane, token, emit, arguments, traffic_class))
        return True

    def make_ready(self, sender: DataSender) -> None:
        """Put a sender at the end of the queue."""
        sender.ready = True
        self.ready.append(sender)
        self.blocked_until = 0


ContextT = TypeVar("ContextT", bound=SharedContext)
QpT = TypeVar("QpT", bound=QueuePair)


class EndpointBase(Generic[ContextT, QpT]):
    """The base of endpoints that a datagram loop drives. `ContextT`, `QpT`: the context and the QPs of this kind."""

    __slots__ = ("_context", "_icrc", "_next_qpn", "_qps")
    _context: ContextT
    _icrc: bool
    """Packets carry a CRC."""
    _next_qpn: int
    _qps: dict[int, QpT]

    # --- application ---

    def new_qpn(self) -> int:
        """A number for a QP that a program connects later."""
        qpn = self._next_qpn
        self._next_qpn += 1
        return qpn

    def destroy_qp(self, qpn: int) -> None:
        """Any state -> gone, with its region: `region` views that the application still holds are its own affair.

        The number is not given again. The peer is not told, as in verbs; its QP fails when it next sends.
        """
        self._qp(qpn).destroy()
        del self._qps[qpn]
        self._forget_events(qpn)

    def region(self, qpn: int) -> memoryview:
        """The registered region, writable; the peer's data appears here."""
        return self._qp(qpn).region

    def post_write(
        self,
        qpn: int,
        data: memoryview | bytes | bytearray,
        remote_address: int,
        wr_id: int,
        immediate: int | None = None,
    ) -> None:
        """Queue one WRITE (with `immediate`: WRITE-with-IMM). `data` is not copied: leave it alone until completion.

        Raises `QpStateError` unless the QP is in RTS, so also after a `QpError`.
        """
        self._qp(qpn).post(memoryview(data).cast("B"), remote_address, wr_id, immediate)

    # --- QPs of programs ---

    def post_of_program(
        self, qpn: int, data: ReadableMemory, remote_address: int, rkey: int, wr_id: int, immediate: int | None
    ) -> None:
        """Queue one write into the region that `rkey` names at the peer. `data` is read when a packet is sent, again
        when it is sent again. Raises `QpStateError` unless the QP is in RTS."""
        self._qp(qpn).post(data, remote_address, wr_id, immediate, rkey)

    def enable_send(self, qpn: int, psn: int, terms: QpTerms) -> None:
        """RTR -> RTS: the first packet has `psn`. Until the peer has answered once, no path is blamed and no try is
        counted: its program may not be ready."""
        self._qp(qpn).enable_send(psn, terms)

    def post_receives(self, qpn: int, count: int) -> None:
        """Let `count` more writes with immediate in."""
        self._qp(qpn).post_receives(count)

    def fail_qp(self, qpn: int, reason: QpFailure) -> None:
        """Any state but RESET -> ERROR, because of its program."""
        self._qp(qpn).fail(reason)

    def close_qp(self, qpn: int) -> bool:
        """The program has destroyed the QP, or ended: send nothing more, and take nothing new. True if the QP stays for
        now, to acknowledge again what had come, until `destroy_qp`; False if it is gone already."""
        qp = self._qp(qpn)
        if not qp.receives:
            self.destroy_qp(qpn)
            return False
        qp.close()
        self._forget_events(qpn)
        return True

    def _qp(self, qpn: int) -> QpT:
        qp = self._qps.get(qpn)
        if qp is None:
            raise UnknownQpError(qpn)
        return qp

    def port_paused(self, plane: int, now_ns: int) -> None:
        """PFC: the port of `plane` may send no data from now on, and takes none."""
        self._context.held[plane] = self._context.pacer.hold(plane, now_ns)

    def port_resumed(self, plane: int, now_ns: int) -> None:
        """The pause of `port_paused` is over."""
        context = self._context
        context.pacer.release(plane, now_ns, context.held.pop(plane))
        context.blocked_until = 0

    # --- timers, input and output ---

    def handle_datagram(
        self,
        view: memoryview,
        peer: int,
        flow_label: int,
        udp_port: int,
        traffic_class: int,
        arrival_ns: int,
        now_ns: int,
    ) -> None:
        """Take in one UDP payload from host `peer`. The view is not kept."""
        raise NotImplementedError

    def handle_parts(
        self,
        headers: bytes,
        payload: memoryview,
        peer: int,
        flow_label: int,
        udp_port: int,
        traffic_class: int,
        arrival_ns: int,
        now_ns: int,
    ) -> None:
        """`handle_datagram` for a packet whose payload was lent, and which nothing has changed on its way."""
        view = memoryview(whole(headers, payload))
        self.handle_datagram(view, peer, flow_label, udp_port, traffic_class, arrival_ns, now_ns)

    def handle_timeout(self, now_ns: int) -> None:
        """Run every timer that is due. Calling it early or late is allowed."""
        self._context.timers.run(now_ns)

    def next_timeout(self) -> int | None:
        """When to call `handle_timeout` or `poll_transmit` next at the latest; None: no need to.

        Only meaningful after `poll_transmit` returned None.
        """
        when = self.timeout_ns()
        return None if when == NEVER else when

    def timeout_ns(self) -> int:
        """The same; NEVER: no need to."""
        context = self._context
        when = context.timers.next_ns
        return context.blocked_until if context.ready and context.blocked_until < when else when

    def poll_event(self) -> Any:
        """Next event, oldest first; None when there is none."""
        events = self._context.events
        return events.popleft() if events else None

    def poll_transmit(self, now_ns: int, buffer: memoryview) -> Packet | None:
        """Write the next datagram into `buffer` (at least 4,200 bytes): (size, token, traffic class), or None."""
        context = self._context
        if context.control:
            plane, token, emit, arguments, traffic_class = context.control.popleft()
            size = emit(buffer, now_ns, *arguments)
            context.pacer.charge(plane, size, now_ns)
            packet = size, token, traffic_class
        elif now_ns < context.blocked_until:
            return None
        else:
            data = self._poll_data(now_ns, buffer)
            if data is None:
                return None
            packet = data
        if self._icrc:
            seal(buffer, packet[0])
        return packet

    def lend_payloads(self) -> None:
        """From now on `poll_transmit` may write the headers of a packet alone; who polls has to look at `take_lent`.
        With a CRC all is written as ever."""
        self._context.lends = not self._icrc

    def take_lent(self) -> memoryview | None:
        """The payload of the packet polled last, which never changes; None: it was written behind its headers."""
        context = self._context
        lent = context.lent
        if lent is not None:
            context.lent = None
        return lent

    def _poll_data(self, now_ns: int, buffer: memoryview) -> Packet | None:
        """Senders take turns, packet by packet; one that has to wait lets the others go on."""
        context = self._context
        ready = context.ready
        context.blocked_until = 0
        earliest = NEVER
        for _ in range(len(ready)):
            sender = ready.popleft()
            free_at = sender.may_send_at(now_ns)
            if free_at == NEVER:
                continue
            if free_at > now_ns:
                ready.append(sender)
                earliest = min(earliest, free_at)
                continue
            packet = sender.transmit(now_ns, buffer)
            if sender.ready:
                ready.append(sender)
            if packet is not None:
                return packet
        if earliest != NEVER:
            context.blocked_until = earliest
        return None

    @property
    def burst_ns(self) -> int:
        """What a port is given in advance lasts so long: who polls less often than that leaves it idle."""
        return self._context.pacer.burst_ns

    def counters(self) -> dict[str, int]:
        """All counters so far, flat."""
        return self._context.figures()

    # --- reading ---

    def _senders(self) -> Iterable[DataSender]:
        """Of all QPs that were ever connected."""
        raise NotImplementedError

    def qp_packets(self) -> dict[int, QpPackets]:
        """What each QP that was ever connected has sent and lost, by its number."""
        return {each.qpn: QpPackets(each.sent_packets, each.lost_packets) for each in self._senders()}

    def lost_packets(self) -> dict[int, int]:
        """Packets taken for lost by each QP that lost any: what snapshots need, at the price of a glance at each."""
        return {each.qpn: each.lost_packets for each in self._senders() if each.lost_packets}

    def stalled(self, now_ns: int) -> dict[int, int]:
        """When the stalls began that go on at `now_ns`, by QP number; those of failed QPs too."""
        return stalled_since((each.silence for each in self._senders()), now_ns)

    def _forget_events(self, qpn: int) -> None:
        events = self._context.events
        kept = [event for event in events if getattr(event, "qpn", None) != qpn]
        events.clear()
        events.extend(kept)
