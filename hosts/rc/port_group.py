"""One connection over all ports of a host: a QP on each, every write cut evenly over them, one dead port borne.

What NCCL's net_ib does with failover on (`mrc_testbed.hosts.rc.failover` has its states and clocks), or what HCCL does
with a retry of operations, below the programs' writes. What differs from the library, all of it ours: the READ of the
completion flags names the port that failed, so the peer lets nothing more in by that port before it answers, and a
replay cannot meet a late original; one READ speaks for all open requests, and the QPs of the data lend their numbers to
it and to the messages of recovery, for which the library has QPs of its own; a receiver that has nothing under way on
the dead port learns of it by that READ.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.events import ImmediateDelivered, QpError, QpEvent, QpFailure, WriteCompleted
from mrc_testbed.hosts.common.figures import QpPackets
from mrc_testbed.hosts.common.placed import PlacedBytes
from mrc_testbed.hosts.common.psn import STRANGE
from mrc_testbed.hosts.common.stalls import StallWatch
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.rc import aside, wire
from mrc_testbed.hosts.rc.config import RcAttributes, RcConfig
from mrc_testbed.hosts.rc.context import RcContext
from mrc_testbed.hosts.rc.endpoint import RcEndpoint
from mrc_testbed.hosts.rc.failover import (
    ANSWER,
    FailoverTimes,
    PortRecovery,
    RcPortInput,
    RcPortState,
    RcPortTable,
    RecoveryStep,
    Replay,
)
from mrc_testbed.hosts.rc.part_watch import PartWatch
from mrc_testbed.hosts.rc.parts import MOST_OPEN, ArrivedParts, FlagsSeen, OpenRequest, label
from mrc_testbed.hosts.rc.port_events import PortMoved
from mrc_testbed.hosts.rc.qp import RcQp

_WR_SLOTS = 16


class PortGroup:
    """One end of a connection. Its QPs are numbered as the ports are. Who drives it hands on what happens to them; what
    it has to say is in `events`."""

    __slots__ = (
        "_arrived",
        "_config",
        "_context",
        "_generations",
        "_next",
        "_open",
        "_packets",
        "_peer",
        "_qps",
        "_recovery",
        "_remotes",
        "_replay",
        "_replay_ns",
        "_replayed",
        "_table",
        "_times",
        "_waiting",
        "dead",
        "events",
        "members",
        "placed",
        "qpn",
        "region",
        "silence",
        "wake_ns",
    )

    def __init__(
        self,
        qps: RcEndpoint,
        context: RcContext,
        config: RcConfig,
        peer: int,
        opened: tuple[int, memoryview, list[RcAttributes]],
        silence: StallWatch,
        events: deque[QpEvent | PortMoved],
    ) -> None:
        self._qps = qps
        self._context = context
        self._config = config
        self._peer = peer
        self.qpn, self.region, self.members = opened
        self.silence = silence
        self.events = events
        self.placed = PlacedBytes()
        self.dead = False
        self.wake_ns = NEVER
        ports = len(self.members)
        self._times = FailoverTimes().faster(config.speed)
        self._table = RcPortTable(ports)
        self._remotes: list[RcAttributes] = []
        self._generations = [0] * ports
        """How often the QP of each port was restored; both ends agree on it."""
        self._waiting: deque[OpenRequest] = deque()
        self._open: dict[int, OpenRequest] = {}
        """By number, in order."""
        self._next = 0
        self._arrived = ArrivedParts(ports)
        self._replay: Replay | None = None
        self._replay_ns = NEVER
        """When it goes on."""
        self._replayed = False
        """With one port: was what is open done once again?"""
        self._recovery = PortRecovery(self._times, False)
        self._packets = QpPackets(0, 0)
        """Those of QPs before they were restored."""

    # --- set-up and reading ---

    def connect(self, remotes: list[RcAttributes]) -> None:
        """The peer's QPs, in the order of the ports; this end's are connected."""
        self._remotes = remotes
        own, other = self.members[0].region_bytes, remotes[0].region_bytes
        # The end that sends registers nothing.
        self._recovery = PortRecovery(self._times, (own, self._config.host) < (other, self._peer))
        for port in range(len(remotes)):
            self._watch(port)

    def _watch(self, port: int) -> None:
        """Have the whole told of what a QP does."""
        qp = self._member(port)
        if qp.requester is not None and qp.responder is not None:
            qp.requester.silence = PartWatch(self.silence, self._context.events)
            qp.responder.placed = self.placed

    def _member(self, port: int) -> RcQp:
        return self._qps.member(self.members[port].qpn)

    def packets(self) -> QpPackets:
        """Of all its QPs together."""
        sent, lost = self._packets
        for own in self.members:
            requester = self._qps.member(own.qpn).requester
            if requester is not None:
                sent, lost = sent + requester.sent_packets, lost + requester.lost_packets
        return QpPackets(sent, lost)

    # --- writes ---

    def post(self, data: memoryview, address: int, wr_id: int, immediate: int | None) -> None:
        """Queue one write. Raises `QpStateError` once the connection has ended."""
        if self.dead or not self._remotes:
            raise QpStateError(self.qpn, "ERROR" if self.dead else "INIT", "post a write")
        self._waiting.append(OpenRequest(data, address, wr_id, immediate, len(self.members)))
        self._pump()

    def _pump(self) -> None:
        """Begin requests while there is room for them, and a port."""
        while self._waiting and len(self._open) < MOST_OPEN and RcPortState.HOLDING not in self._table.states:
            request = self._waiting.popleft()
            number, self._next = self._next, self._next + 1
            self._open[number] = request
            for slot in range(len(request.ports)):
                self._send(number, request, slot)

    def _send(self, number: int, request: OpenRequest, slot: int) -> None:
        """Give a part to the port whose turn it is. One whose QP has just failed takes nothing: then it is sent again
        with the others that were open there."""
        port = request.ports[slot] = self._table.carrier_of(slot % len(self.members))
        data, address = request.part(slot)
        told = label(number, slot, request.immediate)
        with suppress(QpStateError):
            self._qps.post_write(self.members[port].qpn, data, address, number * _WR_SLOTS + slot, told)

    def completed(self, wr_id: int) -> None:
        """The peer has acknowledged a part, or its flags say that it is there."""
        number, slot = divmod(wr_id, _WR_SLOTS)
        request = self._open.get(number)
        if request is None:
            return
        request.missing &= ~(1 << slot)
        while self._open and not (oldest := next(iter(self._open.items())))[1].missing:
            del self._open[oldest[0]]
            self.events.append(WriteCompleted(self.qpn, oldest[1].wr_id))
        self._pump()
        if not self._open:
            self._replayed = False
            self.silence.idle()

    def arrived(self, told: int) -> None:
        """The peer's part with this immediate is whole in the region."""
        if self.dead:
            return
        whole = self._arrived.take(told)
        if whole is None:
            self._end(QpFailure.PEER_INVALID_REQUEST)
            return
        first = self._arrived.base - len(whole) + 1
        for msn, immediate in enumerate(whole, first):
            if immediate is not None:
                self.events.append(ImmediateDelivered(self.qpn, immediate, msn & 0xFFFFFF))

    # --- failures ---

    def failed(self, qpn: int, reason: str, now_ns: int) -> None:
        """A QP of the group went to ERROR."""
        if self.dead or reason == QpFailure.BY_PROGRAM:  # closed here, because the peer had failed
            return
        if reason != QpFailure.RETRY_EXCEEDED:
            self._end(reason)
            return
        self._lose([own.qpn for own in self.members].index(qpn), now_ns)

    def _lose(self, port: int, now_ns: int) -> None:
        """A port is of no use: others take over, or all waits; or the connection ends."""
        moved = self._table.move(port, self._how_it_fails())
        if not moved or (self._replay is not None and self._replay.port != port) or self._replayed:
            self._end(QpFailure.RETRY_EXCEEDED)
            return
        self._context.counters.ports_failed += 1
        self._tell(port)
        if self._config.port_recovery:
            self._recovery.begin(now_ns)
        wait_ns = self._config.retry_hold_ns or self._times.probe_ns
        if any(port in request.ports for request in self._open.values()):
            self._replay = Replay(port, self._generations[port])
            self._replay_ns = now_ns + wait_ns
        self._arm()

    def _how_it_fails(self) -> RcPortInput:
        if self._config.retry_hold_ns:
            return RcPortInput.HELD
        return RcPortInput.FAILED_FOR_NOW if self._config.port_recovery else RcPortInput.FAILED

    def _tell(self, port: int) -> None:
        """Report the state of a port, and who carries its part."""
        plane, carrier = (self._member(each).way[0] for each in (port, self._table.carrier_of(port)))
        self.events.append(PortMoved(self.qpn, self._peer, plane, self._table.states[port].value, carrier))

    def stop(self) -> None:
        """The group has ended, by itself or by its program: no timer of it has anything to do any more."""
        self.dead = True
        self._replay = None
        self._recovery.end()

    def _end(self, reason: str) -> None:
        self.stop()
        for own in self.members:
            self._close(own.qpn)
        self._open.clear()
        self._waiting.clear()
        self.events.append(QpError(self.qpn, self._peer, reason))

    def _close(self, qpn: int) -> None:
        """Let nothing more in or out by a QP."""
        qp = self._qps.member(qpn)
        if qp.live:
            qp.fail(QpFailure.BY_PROGRAM)

    def _restore(self, port: int, generation: int) -> None:
        """Begin again with a QP whose other end does the same. What is still under way from before has no effect."""
        qp, before = self._member(port), self._generations[port]
        if qp.requester is not None:
            sent, lost = self._packets
            self._packets = QpPackets(sent + qp.requester.sent_packets, lost + qp.requester.lost_packets)
        qp.restore(2 * STRANGE * (generation - before))
        self._generations[port] = generation
        self._watch(port)

    def _returned(self, port: int) -> None:
        self._table.move(port, RcPortInput.RETURNED)
        self._context.counters.ports_returned += 1
        self._recovery.end()
        self._tell(port)
        self._pump()

    # --- time ---

    def _arm(self) -> None:
        self._context.timers.arm(self, self._due_ns())

    def _due_ns(self) -> int:
        return min(self._recovery.wake_ns, self._replay_ns if self._replay is not None else NEVER)

    def on_timer(self, now_ns: int) -> int:
        """Do what is due; return the next deadline or NEVER."""
        if self._replay is not None and now_ns >= self._replay_ns:
            self._ask_for_flags(self._replay, now_ns)
        if self.dead:
            return NEVER
        self._ask_for_port(now_ns)
        return self._due_ns()

    def _ask_for_flags(self, replay: Replay, now_ns: int) -> None:
        """READ them; a READ that has used up its retries is the end, as that of any other port is."""
        if replay.asked > self._config.retries:
            self._end(QpFailure.RETRY_EXCEEDED)
            return
        replay.asked += 1
        self._replay_ns = now_ns + self._config.timeout_ns
        over = self._table.carrier_of(replay.port)
        remote = self._remotes[over]
        way = self._member(over).way
        aside.send_read(self._context, way, remote.qpn, replay.generation, replay.port, remote.rkey)

    def _ask_for_port(self, now_ns: int) -> None:
        if RcPortState.RECOVERING not in self._table.states:
            return
        port = self._table.states.index(RcPortState.RECOVERING)
        messages = self._recovery.on_time(now_ns)
        if messages is None:
            self._table.move(port, RcPortInput.GIVEN_UP)
            self._recovery.end()
            self._tell(port)
            return
        for number in messages:
            self._say(port, number)

    def _say(self, port: int, immediate: int) -> None:
        way, remote = self._member(port).way, self._remotes[port]
        aside.send_message(self._context, way, remote.qpn, self._generations[port], immediate)

    # --- hearing ---

    def take(self, qpn: int, view: memoryview, now_ns: int) -> None:
        """What the peer's failover says to a QP of this group. All that its QPs have told before is handed on."""
        if self.dead or not self._remotes:
            return
        port = [own.qpn for own in self.members].index(qpn)
        if view[0] == wire.READ_REQUEST:
            self._on_read(port, view, now_ns)
        elif view[0] == wire.READ_RESPONSE:
            self._on_flags(view)
        else:
            self._on_message(port, view, now_ns)
        if not self.dead:
            self._arm()

    def _on_read(self, over: int, view: memoryview, now_ns: int) -> None:
        """The peer has lost a port. Close it here, too, before its flags are read."""
        failed, rkey, _ = wire.parse_reth(view)
        generation = wire.bits_and_psn(view) & 0xFFFFFF
        if rkey != self.members[over].rkey or failed >= len(self.members) or generation > self._generations[failed]:
            return
        if generation == self._generations[failed]:
            self._follow(failed, now_ns)
        if not self.dead:
            way, qpn = self._member(over).way, self._remotes[over].qpn
            aside.send_flags(self._context, way, qpn, generation, self._arrived.base, self._arrived.flags())

    def _follow(self, port: int, now_ns: int) -> None:
        """Take over the peer's finding that a port has failed."""
        qp = self._member(port)
        if qp.live:
            self._close(self.members[port].qpn)
            self._lose(port, now_ns)
        if self._config.retry_hold_ns and not self.dead:
            self._again(port, now_ns)

    def _again(self, port: int, now_ns: int) -> None:
        """With one port: the peer's READ came through, so the hold is over here, too."""
        self._restore(port, self._generations[port] + 1)
        if self._replay is None:
            self._returned(port)
        else:
            self._replay_ns = now_ns

    def _on_flags(self, view: memoryview) -> None:
        generation, base, flags = wire.parse_flags(view)
        replay = self._replay
        if replay is None or not replay.asked or generation != replay.generation:
            return
        self._replay = None
        if self._config.retry_hold_ns:
            if self._generations[replay.port] == generation:
                self._restore(replay.port, generation + 1)
            self._replayed = True
        self._do_again(replay.port, FlagsSeen(base, flags, next(iter(self._open), self._next)))
        if self._table.states[replay.port] is RcPortState.HOLDING:
            self._returned(replay.port)

    def _do_again(self, port: int, seen: FlagsSeen) -> None:
        """What was open on the port is there, or is sent again."""
        for number, request in list(self._open.items()):
            open_there = [slot for slot, at in enumerate(request.ports) if at == port and request.missing >> slot & 1]
            for slot in open_there:
                if seen.arrived(number, slot):
                    self.completed(number * _WR_SLOTS + slot)
                else:
                    self._context.counters.parts_replayed += 1
                    self._send(number, request, slot)

    def _on_message(self, port: int, view: memoryview, now_ns: int) -> None:
        """Recovery, over the port that is asked for, or was."""
        generation, immediate = wire.parse_message(view)
        step = self._step_of(port, immediate, generation - self._generations[port], now_ns)
        if step is RecoveryStep.RESTORE:
            self._restore(port, self._generations[port] + 1)
            self._say(port, ANSWER)
        elif step is RecoveryStep.FOLLOW:
            self._restore(port, generation)
            self._say(port, ANSWER)
            self._returned(port)
        elif step is RecoveryStep.USE:
            self._returned(port)
        elif step is RecoveryStep.REPEAT:
            self._say(port, ANSWER)

    def _step_of(self, port: int, immediate: int, restored: int, now_ns: int) -> RecoveryStep:
        state = self._table.states[port]
        if state is RcPortState.RECOVERING:
            return self._recovery.on_message(immediate, restored, now_ns)
        if state is RcPortState.OK:
            return self._recovery.on_message_after(immediate, restored)
        return RecoveryStep.NOTHING
