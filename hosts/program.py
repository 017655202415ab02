"""The rank program of a host: lists of operations with real data dependencies, run without ever blocking.

A program has one or more tracks, each a list of operations; they run side by side and share memory and QPs. Who drives
it calls `advance(now_ns)` after every input, tells it of immediates and completed writes, and takes what there is to
report with `poll_report()`. Operations and their arguments are listed in docs/architecture.md, "The control channel".

The data of steps prove themselves (those of streams: hosts/stream.py). Every rank has a block of random bytes that each
step sees moved on, and what must be at a place is the block of the rank that sent it, or the XOR of the blocks of
those that added to it, moved on alike. So bytes left over from an earlier step, another rank, another place or a lost
packet never pass for right.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mrc_testbed.hosts.arrivals import IncomingFlows, OutgoingFlows
from mrc_testbed.hosts.blocks import PERIOD, Block, Xor, random_period, summed_period, xor_into
from mrc_testbed.hosts.operations import TAGS, TOGETHER, Operation, Operations, ProgramError, read_operations
from mrc_testbed.hosts.program_io import (
    CompletedReport,
    FlowsReport,
    IntervalReport,
    ProgramQps,
    RankPrograms,
    Report,
    StepReport,
)
from mrc_testbed.hosts.stream import Content, Incoming, Outgoing, StreamError

SLICE_BYTES = 1 << 16
"""Work done at one go: 64 KiB of XOR are 0.2 ms, short against the 5 ms of the fastest retransmission timer."""
_CHECKS_AT_ONCE = 16
"""Comparing is that much faster than XOR with the standard library."""
_POSTS_AT_ONCE = 32
_IMMEDIATE = 0xFFFFFFFF
_AGAIN = 0

_Waits = Iterator[int | None]
"""What an operation yields: the time to go on at (`_AGAIN`: at once), or None when only an input can help."""


@dataclass(slots=True)
class _Tally:
    """What is known of the step that goes on."""

    begin_ns: int = 0
    sent_bytes: int = 0
    wrong_bytes: int = 0
    waits: dict[str, int] = field(default_factory=dict)
    marks: set[int] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class _Track:
    """One list of operations and how far it has come. `resume_ns` None: only an input can help.

    `passed`: steps to be added to those that the operations name, in the later turns of a repetition.
    """

    operations: Operations
    tally: _Tally
    waits: _Waits = field(default_factory=lambda: iter(()))
    resume_ns: int | None = None
    passed: int = 0
    done: bool = False

    def wake(self) -> None:
        """An input came. A track that also waits for a deadline checks the clock again."""
        self.resume_ns = _AGAIN


class Program:
    """Interpreter of one rank's tracks over the QPs of `transport`. `xor` adds the data of two ranks.

    Raises ProgramError when an operation is unknown, has wrong arguments, or reaches outside its region.
    """

    def __init__(self, job: RankPrograms, transport: ProgramQps, xor: Xor = xor_into) -> None:
        self._transport = transport
        self._xor_into = xor
        self._data_seed = job.data_seed
        self._grain_ns = job.grain_ns
        self._waiting: dict[str, list[_Track]] = {}
        self._until_mark: dict[int, list[_Track]] = {}
        self._expected: dict[tuple[int, ...], Block] = {}
        self._contents: dict[str, Content] = {}
        self._receiving: list[str] = []
        """QPs of incoming streams."""
        self._longest_write = SLICE_BYTES
        self._tracks = [
            self._track(read_operations(raw, f"track {index}", self._region_size), _Tally(), ())
            for index, raw in enumerate(job.tracks)
        ]
        self._own = Block(random_period(job.data_seed, job.rank), self._longest_write)
        self._immediates: dict[str, deque[int]] = {}
        self._unwritten: dict[str, int] = {}
        self._reports: deque[Report] = deque()
        self._now_ns = self._start_ns = 0

    def _region_size(self, qp: str) -> int:
        return len(self._transport.region(qp))

    def _track(self, operations: Operations, tally: _Tally, above: tuple[_Track, ...]) -> _Track:
        """A track inside others, which wakes with all of them at an input on one of its QPs."""
        track = _Track((), tally)
        track.operations = self._prepare(operations, (*above, track))
        return track

    def _prepare(self, operations: Operations, tracks: tuple[_Track, ...]) -> Operations:
        """Get ready what they need; a running program has no time for that. Branches of a `together` become tracks."""
        return tuple(self._prepared(operation, tracks) for operation in operations)

    def _prepared(self, operation: Operation, tracks: tuple[_Track, ...]) -> Operation:
        match operation.name:
            case "together":
                branches = (self._track(branch, tracks[0].tally, tracks) for branch in operation.values)
                return replace(operation, values=tuple(branches))
            case "repeat":
                times, every, body = operation.values
                return replace(operation, values=(times, every, self._prepare(body, tracks)))
            case "begin" | "compute" | "end" | "mark":
                return operation
            case "until":
                self._until_mark.setdefault(operation.argument("number"), []).extend(tracks)
                return operation
            case "check":
                ranks = tuple(operation.argument("ranks"))
                if ranks not in self._expected:
                    self._expected[ranks] = Block(summed_period(self._data_seed, ranks), PERIOD)
            case "put":
                longest = min(operation.argument("length"), operation.argument("message_bytes"))
                self._longest_write = max(self._longest_write, longest)
            case "send" | "receive" | "send_flows" | "receive_flows":
                self._prepare_stream(operation)
        for qp in operation.qps:
            waiting = self._waiting.setdefault(qp, [])
            waiting.extend(track for track in tracks if track not in waiting)
        return operation

    def _prepare_stream(self, operation: Operation) -> None:
        receives = operation.name.startswith("receive")
        longest = PERIOD if receives else operation.argument("message_bytes")
        for qp in operation.qps:
            self._contents[qp] = Content(self._data_seed, qp, longest)
        if receives:
            self._receiving += operation.qps

    # Input

    def start(self, at_ns: int) -> None:
        """Run every track from its first operation, beginning at `at_ns`."""
        self._start_ns = at_ns
        for qp in self._receiving:
            self._transport.take_placed(qp, at_ns + self._grain_ns)
        for track in self._tracks:
            track.waits = self._from_start(track)
            track.resume_ns = at_ns

    def immediate(self, qp: str, value: int) -> None:
        """The peer of this QP wrote with immediate; values come in the order they were sent."""
        self._immediates.setdefault(qp, deque()).append(value)
        self._wake(qp)

    def written(self, qp: str) -> None:
        """One of this program's writes on this QP is complete: its memory may be reused."""
        self._unwritten[qp] -= 1
        self._wake(qp)

    def _wake(self, qp: str) -> None:
        for track in self._waiting.get(qp, ()):
            track.wake()

    # Output

    @property
    def done(self) -> bool:
        """Every track has come to its end, and all that was written is complete."""
        return all(track.done for track in self._tracks) and not any(self._unwritten.values())

    def advance(self, now_ns: int) -> int | None:
        """Go as far as the time and the inputs allow, one slice of heavy work a track at most.

        Returns the time to be called again at (a past one: as soon as the sockets were served), or None when only an
        input can help or the program is over.
        """
        self._now_ns = now_ns
        return self._go_on(self._tracks)

    def poll_report(self) -> Report | None:
        """The next thing to report, or None."""
        return self._reports.popleft() if self._reports else None

    def _go_on(self, tracks: Sequence[_Track]) -> int | None:
        for track in tracks:
            if track.resume_ns is not None and track.resume_ns <= self._now_ns:
                track.resume_ns = next(track.waits, None)
        next_ns = None  # known only now: a track may have woken one before it
        for track in tracks:
            if track.resume_ns is not None and (next_ns is None or track.resume_ns < next_ns):
                next_ns = track.resume_ns
        return next_ns

    def _from_start(self, track: _Track) -> _Waits:
        yield from self._until(self._start_ns)
        yield from self._to_end(track)

    def _to_end(self, track: _Track) -> _Waits:
        yield from self._run(track, track.operations)
        track.done = True

    def _run(self, track: _Track, operations: Operations) -> _Waits:
        for operation in operations:
            values = operation.after(track.passed) if track.passed else operation.values
            waits = _OPERATIONS[operation.name](self, track, *values)
            if waits is not None:
                yield from waits

    # Operations. One that waits is a generator; the arguments are named as in the contract.

    def _repeat(self, track: _Track, times: int, every: int, body: Operations) -> _Waits:
        for turn in range(times):
            track.passed = turn * every
            yield from self._run(track, body)
        track.passed = 0

    def _together(self, track: _Track, *branches: _Track) -> _Waits:
        for branch in branches:
            branch.passed, branch.done = track.passed, False
            branch.waits, branch.resume_ns = self._to_end(branch), _AGAIN
        while True:
            next_ns = self._go_on(branches)
            if all(branch.done for branch in branches):
                return
            yield next_ns

    def _begin(self, track: _Track, step: int) -> None:
        tally = track.tally
        tally.begin_ns, tally.sent_bytes, tally.wrong_bytes, tally.waits = self._now_ns, 0, 0, {}
        tally.marks = set()

    def _end(self, track: _Track, step: int) -> None:
        tally = track.tally
        figures = tally.sent_bytes, tally.wrong_bytes, tally.waits
        self._reports.append(StepReport(step, tally.begin_ns, self._now_ns, *figures))

    def _compute(self, _track: _Track, ns: int) -> _Waits:
        yield from self._until(self._now_ns + ns)

    def _until(self, at_ns: int) -> _Waits:
        while self._now_ns < at_ns:
            yield at_ns

    def _put(
        self,
        track: _Track,
        qp: str,
        step: int,
        place: int,
        length: int,
        remote_offset: int,
        message_bytes: int,
        tag: int,
    ) -> _Waits:
        def cut(at: int, size: int) -> memoryview:
            return self._own.at(step, place + at, size)

        yield from self._write(track, qp, cut, length, remote_offset, message_bytes, _immediate(step, tag))

    def _forward(
        self,
        track: _Track,
        qp: str,
        step: int,
        source: str,
        offset: int,
        length: int,
        remote_offset: int,
        message_bytes: int,
        tag: int,
    ) -> _Waits:
        region = self._transport.region(source)[offset : offset + length]

        def cut(at: int, size: int) -> memoryview:
            return region[at : at + size]

        yield from self._write(track, qp, cut, length, remote_offset, message_bytes, _immediate(step, tag))

    def _write(
        self,
        track: _Track,
        qp: str,
        cut: Callable[[int, int], memoryview],
        length: int,
        remote_offset: int,
        message_bytes: int,
        immediate: int,
    ) -> _Waits:
        track.tally.sent_bytes += length
        for number, at in enumerate(range(0, length, message_bytes), 1):
            size = min(message_bytes, length - at)
            # What came before on a QP is whole when an immediate is delivered, so the last one speaks for all.
            self._post(qp, cut(at, size), remote_offset + at, immediate if at + size == length else None)
            if number % _POSTS_AT_ONCE == 0:
                yield _AGAIN

    def _signal(self, _track: _Track, qp: str, step: int, tag: int) -> None:
        self._post(qp, _NOTHING, 0, _immediate(step, tag))

    def _post(self, qp: str, data: memoryview, remote_offset: int, immediate: int | None) -> None:
        self._unwritten[qp] = self._unwritten.get(qp, 0) + 1
        self._transport.post_write(qp, data, remote_offset, immediate)

    def _wait(self, track: _Track, qp: str, step: int, tag: int) -> _Waits:
        arrived = self._immediates.setdefault(qp, deque())
        begin_ns = self._now_ns
        while not arrived:
            yield None
        value, due = arrived.popleft(), _immediate(step, tag)
        if value != due:
            raise ProgramError(f"immediate {value} arrived on {qp} instead of {due}")
        self._has_waited(track, qp, begin_ns)

    def _take(self, track: _Track, qp: str, step: int, tag: int) -> _Waits:
        arrived = self._immediates.setdefault(qp, deque())
        begin_ns, due = self._now_ns, _immediate(step, tag)
        while due not in arrived:
            yield None
        arrived.remove(due)
        self._has_waited(track, qp, begin_ns)

    def _has_waited(self, track: _Track, qp: str, begin_ns: int) -> None:
        if self._now_ns > begin_ns:
            waits, peer = track.tally.waits, self._transport.peer(qp)
            waits[peer] = waits.get(peer, 0) + self._now_ns - begin_ns

    def _mark(self, track: _Track, number: int) -> None:
        track.tally.marks.add(number)
        for waiting in self._until_mark.get(number, ()):
            waiting.wake()

    def _until_marked(self, track: _Track, number: int) -> _Waits:
        while number not in track.tally.marks:
            yield None

    def _drain(self, _track: _Track, qp: str) -> _Waits:
        while self._unwritten.get(qp, 0):
            yield None

    def _xor(self, _track: _Track, qp: str, offset: int, length: int, step: int, place: int) -> _Waits:
        target = self._transport.region(qp)[offset : offset + length]
        for at in range(0, length, SLICE_BYTES):
            part = target[at : at + SLICE_BYTES]
            self._xor_into(part, self._own.at(step, place + at, len(part)))
            yield _AGAIN

    def _check(
        self, track: _Track, qp: str, offset: int, length: int, step: int, place: int, ranks: list[int]
    ) -> _Waits:
        found, right = self._transport.region(qp)[offset : offset + length], self._expected[tuple(ranks)]
        for number, at in enumerate(range(0, length, PERIOD), 1):
            wrong = right.wrong_bytes(found[at : at + PERIOD], step, place + at)
            track.tally.wrong_bytes += wrong
            # Counting is a hundred times slower than comparing.
            if wrong or number % _CHECKS_AT_ONCE == 0:
                yield _AGAIN

    def _send(
        self,
        _track: _Track,
        qp: str,
        message_bytes: int,
        slots: int,
        depth: int,
        after_ns: int,
        for_ns: int | None,
        messages: int,
    ) -> _Waits:
        begin_ns = self._start_ns + after_ns
        yield from self._until(begin_ns)
        until_ns = None if for_ns is None else begin_ns + for_ns
        stream = Outgoing(self._contents[qp], message_bytes, slots, depth, until_ns, messages)
        report_ns = begin_ns
        while not stream.done:
            stream.complete(self._now_ns, self._unwritten.get(qp, 0))
            for write in stream.writes(self._now_ns):
                self._post(qp, *write)
            if stream.completed and (stream.done or self._now_ns >= report_ns):
                report_ns = self._now_ns + self._grain_ns
                self._reports.append(CompletedReport(qp, stream.completed))
                stream.completed = []
            if not stream.done:
                yield report_ns if stream.completed else None

    def _send_flows(
        self, _track: _Track, qps: list[str], message_bytes: int, slots: int, depth: int, flows: list[list[int]]
    ) -> _Waits:
        contents = [(qp, self._contents[qp]) for qp in qps]
        begins = [(self._start_ns + start_ns, size) for start_ns, size in flows]
        stream = OutgoingFlows(contents, message_bytes, slots, depth, begins)
        peer, report_ns = self._transport.peer(qps[0]), self._start_ns
        while not stream.done:
            stream.complete(self._now_ns, self._outstanding)
            for write in stream.writes(self._now_ns):
                self._post(*write)
            if stream.completed and (stream.done or self._now_ns >= report_ns):
                report_ns = self._now_ns + self._grain_ns
                self._reports.append(FlowsReport(peer, stream.completed))
                stream.completed = []
            if not stream.done:
                due_ns = [] if stream.next_ns is None else [stream.next_ns]
                yield min([*due_ns, report_ns] if stream.completed else due_ns, default=None)

    def _outstanding(self, qp: str) -> int:
        """How many writes on a QP are not complete."""
        return self._unwritten.get(qp, 0)

    def _receive_flows(
        self, _track: _Track, qp: str, message_bytes: int, slots: int, depth: int, sizes: list[int]
    ) -> _Waits:
        region = self._transport.region(qp)
        take_placed = partial(self._transport.take_placed, qp)
        places = self._contents[qp], region, message_bytes, slots
        stream = IncomingFlows(*places, take_placed, self._start_ns, sizes, self._grain_ns)
        yield from self._take_stream(qp, stream, slots - depth)

    def _receive(self, _track: _Track, qp: str, message_bytes: int, slots: int, depth: int) -> _Waits:
        region = self._transport.region(qp)
        take_placed = partial(self._transport.take_placed, qp)
        content, times = self._contents[qp], (self._start_ns, self._grain_ns)
        stream = Incoming(content, region, message_bytes, slots, take_placed, *times)
        yield from self._take_stream(qp, stream, slots - depth)

    def _take_stream(self, qp: str, stream: Incoming, room: int) -> _Waits:
        """Take all of it; `room`: this many messages may wait without a slot being written again."""
        arrived = self._immediates.setdefault(qp, deque())

        def may_rest() -> bool:
            return len(arrived) < room

        while True:
            # Stretches that are over do not hold what has only now come.
            self._reports.extend(IntervalReport(qp, interval) for interval in stream.intervals(self._now_ns))
            try:
                while arrived:
                    for _ in stream.take(arrived.popleft(), may_rest):
                        yield _AGAIN
            except StreamError as error:
                raise ProgramError(f"{qp}: {error}") from None
            if stream.done:
                break
            yield stream.report_ns
        self._reports.extend(IntervalReport(qp, interval) for interval in stream.intervals(self._now_ns))


_NOTHING = memoryview(b"")


def _immediate(step: int, tag: int) -> int:
    return (step * TAGS + tag) & _IMMEDIATE


_OPERATIONS: dict[str, Callable[..., _Waits | None]] = {
    "begin": Program._begin,
    "compute": Program._compute,
    "put": Program._put,
    "forward": Program._forward,
    "signal": Program._signal,
    "wait": Program._wait,
    "take": Program._take,
    "mark": Program._mark,
    "until": Program._until_marked,
    "xor": Program._xor,
    "drain": Program._drain,
    "check": Program._check,
    "end": Program._end,
    "repeat": Program._repeat,
    TOGETHER: Program._together,
    "send": Program._send,
    "receive": Program._receive,
    "send_flows": Program._send_flows,
    "receive_flows": Program._receive_flows,
}
