"""A program as the endpoint of a host in virtual time: each call of the host becomes a line to it.

The host keeps what can be kept without it: memory, the books of packets, and which paths have answered a probe.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from mrc_testbed.hosts.common.bth import CLASS_CONTROL, ECN_MASK
from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.events import ImmediateDelivered, QpError, WriteCompleted
from mrc_testbed.hosts.common.figures import PathReport, QpFlow, QpPackets
from mrc_testbed.hosts.common.placed import PlacedBytes
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import QpAttributes
from mrc_testbed.hosts.mrc.counters import Counters
from mrc_testbed.hosts.mrc.path_log import Counts
from mrc_testbed.hosts.mrc.paths import PathId
from mrc_testbed.testbed.interop.answers import MOST_PACKETS, OutgoingPacket, known, read_qp, read_turn
from mrc_testbed.testbed.interop.program import ContractFailure, ContractProgram, Fields
from mrc_testbed.testbed.interop.tape import Crossing, Tape

Paths = Mapping[int, Mapping[tuple[int, int], Hashable]]
"""By peer and (plane, uplink): where to send."""
_SENT = {
    wire.SACK: "sacks_sent",
    wire.NACK: "nacks_sent",
    wire.TRANSPORT_ACK: "acks_sent",
    wire.ENDPOINT_RESPONSE: "probe_responses_sent",
}
_CAME = {wire.SACK: "sacks_received", wire.NACK: "nacks_received", wire.TRANSPORT_ACK: "acks_received"}
"""By opcode: the count of packets."""
_WROTE = 1 << 20
"""Most bytes of one request that are data, as hex."""


class _ForeignQp:
    """What the host knows of a QP: its memory, and both ends' attributes."""

    def __init__(self, peer: int, own: QpAttributes) -> None:
        self.peer = peer
        self.own = own
        self.memory = memoryview(bytearray(own.region_bytes))
        self.placed = PlacedBytes()
        self.remote_qpn = -1
        self.failed = False
        self.posted: set[int] = set()
        self.sent = self.again = 0


class ContractEndpoint:
    """See mrc_testbed.hosts.transport.DatagramEndpoint. `burst_ns`: as there. Raises ContractFailure and Unsupported
    wherever the program is asked."""

    def __init__(self, program: ContractProgram, tape: Tape, paths: Paths, burst_ns: int, twice_every: int = 0) -> None:
        """`twice_every`: each packet whose number is a multiple of it is given to the program twice; 0: none."""
        self.burst_ns = burst_ns
        self._twice_every = twice_every
        self._came = 0
        self._program = program
        self._tape = tape
        self._paths = paths
        self._qps: dict[int, _ForeignQp] = {}
        self._by_remote: dict[tuple[int, int], _ForeignQp] = {}
        self._counters = Counters()
        self._sent_on: Counter[tuple[int, PathId]] = Counter()
        self._asked: dict[tuple[int, PathId, int], int] = {}
        self._rtts_ns: dict[tuple[int, PathId], int] = {}
        self._incoming: list[list[Any]] = []
        self._outgoing: deque[OutgoingPacket] = deque()
        self._events: deque[object] = deque()
        self._timeout_ns: int | None = 0
        self._now_ns = 0
        self._look = True
        """It was told something, or has more to send: it may have packets."""

    # The application's side

    def open_qp(self, peer: int, region_bytes: int) -> QpAttributes:
        with self._program.noting():
            own = read_qp(self._ask("open_qp", peer=peer, region_bytes=region_bytes), region_bytes)
            if own.qpn in self._qps:
                raise ContractFailure(f"`open_qp` gave the number {own.qpn} twice")
        self._qps[own.qpn] = _ForeignQp(peer, own)
        self._tape.told.append((self._now_ns, "open_qp", {"peer": peer, "qp": own.as_json()}))
        return own

    def connect_qp(self, qpn: int, remote: QpAttributes) -> None:
        self._tell("connect_qp", qpn=qpn, remote=remote.as_json())
        qp = self._qps[qpn]
        qp.remote_qpn = remote.qpn
        self._by_remote[qp.peer, remote.qpn] = qp

    def reset_qp(self, qpn: int) -> QpAttributes:
        """Contract 1 has no such request."""
        raise QpStateError(qpn, "contract 1", "reset")

    def destroy_qp(self, qpn: int) -> None:
        """Contract 1 has no such request."""
        raise QpStateError(qpn, "contract 1", "be destroyed")

    def region(self, qpn: int) -> memoryview:
        return self._qps[qpn].memory

    def post_write(
        self, qpn: int, data: memoryview, remote_address: int, wr_id: int, immediate: int | None = None
    ) -> None:
        qp = self._qps[qpn]
        if qp.failed:
            raise QpStateError(qpn, "ERROR", "post")
        if len(data) > _WROTE:
            raise ContractFailure(f"a write of {len(data)} B is more than a line may carry")
        with_immediate = {} if immediate is None else {"immediate": immediate}
        fields = {"qpn": qpn, "wr_id": wr_id, "address": remote_address, **with_immediate}
        qp.posted.add(wr_id)
        self._counters.messages_posted += 1
        self._ask("write", **fields, data=bytes(data).hex())

    def deny(self, peer: int, paths: Sequence[PathId]) -> None:
        self._tell("deny", peer=peer, paths=[list(path) for path in paths])

    def allow(self, peer: int, paths: Sequence[PathId], now_ns: int) -> None:
        self._now_ns = now_ns
        self._tell("allow", peer=peer, paths=[list(path) for path in paths])

    def port_down(self, plane: int, now_ns: int) -> None:
        self._now_ns = now_ns
        self._tell("port", plane=plane, up=False)

    def port_up(self, plane: int, now_ns: int) -> None:
        self._now_ns = now_ns
        self._tell("port", plane=plane, up=True)

    def port_paused(self, plane: int, now_ns: int) -> None:
        """No port pauses MRC."""

    def port_resumed(self, plane: int, now_ns: int) -> None:
        """No port pauses MRC."""

    def probe_paths(self, peer: int, now_ns: int) -> None:
        self._now_ns = now_ns
        self._ask("probe_paths", peer=peer)

    def path_report(self, peer: int) -> PathReport:
        """By the probes that went out and the answers that came back."""
        paths = list(self._paths[peer])
        rtts = {path: rtt for (whose, path), rtt in self._rtts_ns.items() if whose == peer}
        silent = [path for path in paths if path not in rtts]
        return PathReport([path for path in paths if path in rtts], silent, min(rtts.values(), default=None))

    def agree_on_base_rtt(self, base_ns: int) -> None:
        self._ask("base_rtt", base_rtt_ns=base_ns)

    # Time and packets

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
        packet = bytes(view)
        entropy = (flow_label & 0xFFFF) << 16 | udp_port
        row = [peer, entropy, traffic_class, arrival_ns, packet.hex()]
        self._incoming.append(row)
        self._came += 1
        if self._twice_every and self._came % self._twice_every == 0:
            self._incoming.append(row)
        path = entropy >> 24, entropy >> 16 & 0xFF
        crossing = Crossing(now_ns, False, peer, *path, traffic_class, packet)
        self._tape.packets.append(crossing)
        self._count(_CAME.get(crossing.opcode) or ("data_received" if crossing.is_data else ""))
        if packet[:1] == bytes([wire.ENDPOINT_RESPONSE]) and len(packet) == wire.RESPONSE_BYTES:
            self._answered(peer, view, arrival_ns)

    def _answered(self, peer: int, view: memoryview, arrival_ns: int) -> None:
        _, number, entropy, *_ = wire.parse_response(view)
        path = entropy >> 24, entropy >> 16 & 0xFF
        asked_ns = self._asked.pop((peer, path, number), None)
        if asked_ns is not None:
            rtt_ns = arrival_ns - asked_ns
            self._rtts_ns[peer, path] = min(rtt_ns, self._rtts_ns.get((peer, path), rtt_ns))
            self._counters.probes_answered += 1

    def handle_timeout(self, now_ns: int) -> None:
        with self._program.noting():
            self._turn(now_ns)

    def next_timeout(self) -> int | None:
        return 0 if self._incoming else self._timeout_ns

    def poll_event(self) -> object | None:
        return self._events.popleft() if self._events else None

    def poll_transmit(self, now_ns: int, buffer: memoryview) -> tuple[int, Any, int] | None:
        if not self._outgoing and self._look:
            self.handle_timeout(now_ns)
        if not self._outgoing:
            return None
        each = self._outgoing.popleft()
        size = len(each.packet)
        buffer[:size] = each.packet
        self._enter(each, now_ns)
        return size, self._paths[each.peer][each.plane, each.uplink], each.traffic_class

    def _turn(self, now_ns: int) -> None:
        """Give it what came and the time, and take what it has to say."""
        self._now_ns, datagrams, self._incoming = now_ns, self._incoming, []
        turn = read_turn(self._ask("turn", datagrams=datagrams, most=MOST_PACKETS))
        self._look = turn.more
        self._timeout_ns = turn.timeout_ns
        for qpn, offset, data in turn.place:
            self._place(qpn, offset, data)
        for event in turn.events:
            self._take_event(event)
        for each in turn.transmit:
            known("peer", each.peer, self._paths)
            known("path", (each.plane, each.uplink), self._paths[each.peer])
        self._outgoing.extend(turn.transmit)

    def _place(self, qpn: int, offset: int, data: bytes) -> None:
        known("QP", qpn, self._qps)
        qp = self._qps[qpn]
        if offset + len(data) > len(qp.memory):
            raise ContractFailure(f"wrote {len(data)} B at {offset}, outside of the region of QP {qpn}")
        qp.memory[offset : offset + len(data)] = data
        qp.placed.note(len(data), self._now_ns)
        self._counters.bytes_delivered += len(data)

    def _take_event(self, event: Fields) -> None:
        self._tape.told.append((self._now_ns, event["event"], event))
        if event["event"] == "ev_state":
            return
        known("QP", event["qpn"], self._qps)
        qp, qpn = self._qps[event["qpn"]], event["qpn"]
        match event["event"]:
            case "completed":
                if event["wr_id"] not in qp.posted:
                    raise ContractFailure(f"completed write {event['wr_id']} of QP {qpn}, which is not under way")
                qp.posted.discard(event["wr_id"])
                self._counters.messages_completed += 1
                self._events.append(WriteCompleted(qpn, event["wr_id"]))
            case "immediate":
                self._events.append(ImmediateDelivered(qpn, event["immediate"], 0))
            case "qp_error":
                qp.failed = True
                self._events.append(QpError(qpn, qp.peer, str(event.get("reason", "no reason given"))))

    def _enter(self, each: OutgoingPacket, now_ns: int) -> None:
        """Into the books: it leaves now."""
        path = each.plane, each.uplink
        crossing = Crossing(now_ns, True, each.peer, *path, each.traffic_class, each.packet)
        self._tape.packets.append(crossing)
        opcode = crossing.opcode
        self._count(_SENT.get(opcode, ""))
        if crossing.is_data:
            self._counters.data_sent += 1
            self._counters.retransmitted += crossing.again
            self._sent_on[each.peer, path] += 1
            qp = self._by_remote.get((each.peer, crossing.qpn))
            if qp is not None:
                qp.again += crossing.again
                qp.sent += not crossing.again
        elif opcode == wire.PROBE_REQUEST and each.traffic_class & ~ECN_MASK != CLASS_CONTROL:
            self._counters.suspect_probes_sent += 1
        elif opcode == wire.ENDPOINT_REQUEST and len(each.packet) == wire.REQUEST_BYTES:
            _, number, *_ = wire.parse_request(memoryview(each.packet))
            self._asked[each.peer, path, number] = now_ns

    def _count(self, name: str) -> None:
        if name:
            setattr(self._counters, name, getattr(self._counters, name) + 1)

    def _tell(self, command: str, **fields: Any) -> None:
        self._tape.told.append((self._now_ns, command, fields))
        self._ask(command, **fields)

    def _ask(self, command: str, **fields: Any) -> Fields:
        if command not in ("turn", "open_qp", "connect_qp"):
            self._look = True
        return self._program.ask(command, now_ns=self._now_ns, **fields)

    # Books

    def counters(self) -> dict[str, int]:
        """Of what the host saw; what only the program knows is 0."""
        return self._counters.as_dict()

    def qp_packets(self) -> dict[int, QpPackets]:
        return {qpn: QpPackets(qp.sent, qp.again) for qpn, qp in self._qps.items() if qp.remote_qpn >= 0}

    def lost_packets(self) -> dict[int, int]:
        return {qpn: qp.again for qpn, qp in self._qps.items() if qp.again}

    def take_placed(self, qpn: int, mark_ns: int) -> int:
        return self._qps[qpn].placed.take(mark_ns)

    def path_counts(self, peer: int) -> Counts:
        """Of each path: packets sent; which were lost only the program knows."""
        return [(path, self._sent_on[peer, path], 0) for path in self._paths[peer]]

    def path_packets(self, peer: int) -> dict[PathId, int]:
        return {path: sent for path, sent, _ in self.path_counts(peer)}

    def qp_flows(self) -> dict[int, list[QpFlow]]:
        """None: this host chooses the path of every packet."""
        return {}

    def stalled(self, now_ns: int) -> dict[int, int]:
        """Only the program knows."""
        return {}
