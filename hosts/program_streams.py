"""The operations of a rank program that send and receive streams of messages, and flows that begin over time.

What a stream writes next, and whether what came is right, is in hosts/stream.py and hosts/arrivals.py; here both meet
the QPs and the clock of a program.
"""

from __future__ import annotations

from functools import partial

from mrc_testbed.hosts.arrivals import IncomingFlows, OutgoingFlows
from mrc_testbed.hosts.blocks import PERIOD
from mrc_testbed.hosts.operations import Operation, ProgramError
from mrc_testbed.hosts.program_io import CompletedReport, FlowsReport, IntervalReport
from mrc_testbed.hosts.program_state import AGAIN, ProgramState, Waits
from mrc_testbed.hosts.stream import Content, Incoming, Outgoing, StreamError


class Streams:
    """All streams of one program. The arguments of an operation are named as in the contract."""

    def __init__(self, state: ProgramState, data_seed: int) -> None:
        self._state = state
        self._data_seed = data_seed
        self._contents: dict[str, Content] = {}
        self._receiving: list[str] = []
        """QPs of incoming streams."""

    def prepare(self, operation: Operation) -> None:
        """Make the bytes of its messages; a running program has no time for that."""
        receives = operation.name.startswith("receive")
        longest = PERIOD if receives else operation.argument("message_bytes")
        for qp in operation.qps:
            self._contents[qp] = Content(self._data_seed, qp, longest)
        if receives:
            self._receiving += operation.qps

    def start(self) -> None:
        """Count what comes in from the start of the program on."""
        for qp in self._receiving:
            self._state.transport.take_placed(qp, self._state.start_ns + self._state.grain_ns)

    def send(
        self,
        qp: str,
        message_bytes: int,
        slots: int,
        depth: int,
        after_ns: int,
        for_ns: int | None,
        messages: int,
    ) -> Waits:
        """Send messages, for a time or as many as are asked for."""
        begin_ns = self._state.start_ns + after_ns
        yield from self._state.until(begin_ns)
        until_ns = None if for_ns is None else begin_ns + for_ns
        stream = Outgoing(self._contents[qp], message_bytes, slots, depth, until_ns, messages)
        report_ns = begin_ns
        while not stream.done:
            stream.complete(self._state.now_ns, self._state.outstanding(qp))
            for data, remote_offset, immediate in stream.writes(self._state.now_ns):
                self._state.post(qp, data, remote_offset, immediate)
            if stream.completed and (stream.done or self._state.now_ns >= report_ns):
                report_ns = self._state.now_ns + self._state.grain_ns
                self._state.reports.append(CompletedReport(qp, stream.completed))
                stream.completed = []
            if not stream.done:
                yield report_ns if stream.completed else None

    def send_flows(self, qps: list[str], message_bytes: int, slots: int, depth: int, flows: list[list[int]]) -> Waits:
        """Send flows that begin over time."""
        contents = [(qp, self._contents[qp]) for qp in qps]
        begins = [(self._state.start_ns + start_ns, size) for start_ns, size in flows]
        stream = OutgoingFlows(contents, message_bytes, slots, depth, begins)
        peer, report_ns = self._state.transport.peer(qps[0]), self._state.start_ns
        while not stream.done:
            stream.complete(self._state.now_ns, self._state.outstanding)
            for qp, data, remote_offset, immediate in stream.writes(self._state.now_ns):
                self._state.post(qp, data, remote_offset, immediate)
            if stream.completed and (stream.done or self._state.now_ns >= report_ns):
                report_ns = self._state.now_ns + self._state.grain_ns
                self._state.reports.append(FlowsReport(peer, stream.completed))
                stream.completed = []
            if not stream.done:
                due_ns = [] if stream.next_ns is None else [stream.next_ns]
                yield min([*due_ns, report_ns] if stream.completed else due_ns, default=None)

    def receive_flows(self, qp: str, message_bytes: int, slots: int, depth: int, sizes: list[int]) -> Waits:
        """Take in and compare what `send_flows` of the peer writes."""
        region = self._state.transport.region(qp)
        take_placed = partial(self._state.transport.take_placed, qp)
        places = self._contents[qp], region, message_bytes, slots
        stream = IncomingFlows(*places, take_placed, self._state.start_ns, sizes, self._state.grain_ns)
        yield from self._take_stream(qp, stream, slots - depth)

    def receive(self, qp: str, message_bytes: int, slots: int, depth: int) -> Waits:
        """Take in and compare what `send` of the peer writes."""
        region = self._state.transport.region(qp)
        take_placed = partial(self._state.transport.take_placed, qp)
        content, times = self._contents[qp], (self._state.start_ns, self._state.grain_ns)
        stream = Incoming(content, region, message_bytes, slots, take_placed, *times)
        yield from self._take_stream(qp, stream, slots - depth)

    def _take_stream(self, qp: str, stream: Incoming, room: int) -> Waits:
        """Take all of it; `room`: this many messages may wait without a slot being written again."""
        arrived = self._state.arrived(qp)

        def may_rest() -> bool:
            return len(arrived) < room

        while True:
            # Stretches that are over do not hold what has only now come.
            self._state.reports.extend(
                IntervalReport(qp, interval) for interval in stream.intervals(self._state.now_ns)
            )
            try:
                while arrived:
                    for _ in stream.take(arrived.popleft(), may_rest):
                        yield AGAIN
            except StreamError as error:
                raise ProgramError(f"{qp}: {error}") from None
            if stream.done:
                break
            yield stream.report_ns
        self._state.reports.extend(IntervalReport(qp, interval) for interval in stream.intervals(self._state.now_ns))
