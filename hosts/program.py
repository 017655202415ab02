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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mrc_testbed.hosts.blocks import PERIOD, Block, Xor, random_period, summed_period, xor_into
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.operations import REPEAT, TAGS, TOGETHER, Operation, Operations, ProgramError, read_operations
from mrc_testbed.hosts.program_io import ProgramQps, RankPrograms, Report, StepReport
from mrc_testbed.hosts.program_state import AGAIN, ProgramState, Waits
from mrc_testbed.hosts.program_streams import Streams

SLICE_BYTES = 1 << 16
"""Work done at one go: 64 KiB of XOR are 0.2 ms, short against the 5 ms of the fastest retransmission timer."""
_CHECKS_AT_ONCE = 16
"""Comparing is that much faster than XOR with the standard library."""
_POSTS_AT_ONCE = 32
_IMMEDIATE = 0xFFFFFFFF


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
    """One list of operations and how far it has come. `resume_ns` NEVER: only an input can help.

    `passed`: steps to be added to those that the operations name, in the later turns of a repetition.
    """

    operations: Operations
    tally: _Tally
    waits: Waits = field(default_factory=lambda: iter(()))
    resume_ns: int = NEVER
    passed: int = 0
    done: bool = False

    def wake(self) -> None:
        """An input came. A track that also waits for a deadline checks the clock again."""
        self.resume_ns = AGAIN


class Program:
    """Interpreter of one rank's tracks over the QPs of `transport`. `xor` adds the data of two ranks.

    Raises ProgramError when an operation is unknown, has wrong arguments, or reaches outside its region.
    """

    def __init__(self, job: RankPrograms, transport: ProgramQps, xor: Xor = xor_into) -> None:
        self._state = ProgramState(transport, job.grain_ns)
        self._streams = Streams(self._state, job.data_seed)
        self._xor_into = xor
        self._data_seed = job.data_seed
        self._waiting: dict[str, list[_Track]] = {}
        self._until_mark: dict[int, list[_Track]] = {}
        self._expected: dict[tuple[int, ...], Block] = {}
        self._longest_write = SLICE_BYTES
        self._tracks = [
            self._track(read_operations(raw, f"track {index}", self._region_size), _Tally(), ())
            for index, raw in enumerate(job.tracks)
        ]
        self._own = Block(random_period(job.data_seed, job.rank), self._longest_write)

    def _region_size(self, qp: str) -> int:
        return len(self._state.transport.region(qp))

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
                self._streams.prepare(operation)
        for qp in operation.qps:
            waiting = self._waiting.setdefault(qp, [])
            waiting.extend(track for track in tracks if track not in waiting)
        return operation

    # Input

    def start(self, at_ns: int) -> None:
        """Run every track from its first operation, beginning at `at_ns`."""
        self._state.start_ns = at_ns
        self._streams.start()
        for track in self._tracks:
            track.waits = self._run(track)
            track.resume_ns = at_ns

    def immediate(self, qp: str, value: int) -> None:
        """The peer of this QP wrote with immediate; values come in the order they were sent."""
        self._state.arrived(qp).append(value)
        self._wake(qp)

    def written(self, qp: str) -> None:
        """One of this program's writes on this QP is complete: its memory may be reused."""
        self._state.written(qp)
        self._wake(qp)

    def _wake(self, qp: str) -> None:
        for track in self._waiting.get(qp, ()):
            track.wake()

    # Output

    @property
    def done(self) -> bool:
        """Every track has come to its end, and all that was written is complete."""
        return all(track.done for track in self._tracks) and self._state.idle

    def advance(self, now_ns: int) -> int | None:
        """Go as far as the time and the inputs allow, one slice of heavy work a track at most.

        Returns the time to be called again at (a past one: as soon as the sockets were served), or None when only an
        input can help or the program is over.
        """
        self._state.now_ns = now_ns
        return self._go_on(self._tracks)

    def poll_report(self) -> Report | None:
        """The next thing to report, or None."""
        return self._state.reports.popleft() if self._state.reports else None

    def _go_on(self, tracks: Sequence[_Track]) -> int | None:
        for track in tracks:
            if track.resume_ns <= self._state.now_ns:
                resume_ns = next(track.waits, None)
                track.resume_ns = NEVER if resume_ns is None else resume_ns
        next_ns = NEVER  # known only now: a track may have woken one before it
        for track in tracks:
            if track.resume_ns < next_ns:
                next_ns = track.resume_ns
        return None if next_ns == NEVER else next_ns

    def _run(self, track: _Track) -> Waits:
        yield from self._state.until(self._state.start_ns)
        for operation in _in_order(track):
            values = operation.after(track.passed) if track.passed else operation.values
            waits = _OPERATIONS[operation.name](self, track, *values)
            if waits is not None:
                yield from waits
        track.done = True

    # Operations. One that waits is a generator; the arguments are named as in the contract.

    def _together(self, track: _Track, *branches: _Track) -> Waits:
        for branch in branches:
            branch.passed, branch.done = track.passed, False
            branch.waits, branch.resume_ns = self._run(branch), AGAIN
        while True:
            next_ns = self._go_on(branches)
            if all(branch.done for branch in branches):
                return
            yield next_ns

    def _begin(self, track: _Track, step: int) -> None:
        tally = track.tally
        tally.begin_ns, tally.sent_bytes, tally.wrong_bytes, tally.waits = self._state.now_ns, 0, 0, {}
        tally.marks = set()

    def _end(self, track: _Track, step: int) -> None:
        tally = track.tally
        figures = tally.sent_bytes, tally.wrong_bytes, tally.waits
        self._state.reports.append(StepReport(step, tally.begin_ns, self._state.now_ns, *figures))

    def _compute(self, _track: _Track, ns: int) -> Waits:
        yield from self._state.until(self._state.now_ns + ns)

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
    ) -> Waits:
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
    ) -> Waits:
        region = self._state.transport.region(source)[offset : offset + length]

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
    ) -> Waits:
        track.tally.sent_bytes += length
        for number, at in enumerate(range(0, length, message_bytes), 1):
            size = min(message_bytes, length - at)
            # What came before on a QP is whole when an immediate is delivered, so the last one speaks for all.
            self._state.post(qp, cut(at, size), remote_offset + at, immediate if at + size == length else None)
            if number % _POSTS_AT_ONCE == 0:
                yield AGAIN

    def _signal(self, _track: _Track, qp: str, step: int, tag: int) -> None:
        self._state.post(qp, _NOTHING, 0, _immediate(step, tag))

    def _wait(self, track: _Track, qp: str, step: int, tag: int) -> Waits:
        arrived = self._state.arrived(qp)
        begin_ns = self._state.now_ns
        while not arrived:
            yield None
        value, due = arrived.popleft(), _immediate(step, tag)
        if value != due:
            raise ProgramError(f"immediate {value} arrived on {qp} instead of {due}")
        self._has_waited(track, qp, begin_ns)

    def _take(self, track: _Track, qp: str, step: int, tag: int) -> Waits:
        arrived = self._state.arrived(qp)
        begin_ns, due = self._state.now_ns, _immediate(step, tag)
        while due not in arrived:
            yield None
        arrived.remove(due)
        self._has_waited(track, qp, begin_ns)

    def _has_waited(self, track: _Track, qp: str, begin_ns: int) -> None:
        if self._state.now_ns > begin_ns:
            waits, peer = track.tally.waits, self._state.transport.peer(qp)
            waits[peer] = waits.get(peer, 0) + self._state.now_ns - begin_ns

    def _mark(self, track: _Track, number: int) -> None:
        track.tally.marks.add(number)
        for waiting in self._until_mark.get(number, ()):
            waiting.wake()

    def _until_marked(self, track: _Track, number: int) -> Waits:
        while number not in track.tally.marks:
            yield None

    def _drain(self, _track: _Track, qp: str) -> Waits:
        while self._state.outstanding(qp):
            yield None

    def _xor(self, _track: _Track, qp: str, offset: int, length: int, step: int, place: int) -> Waits:
        target = self._state.transport.region(qp)[offset : offset + length]
        for at in range(0, length, SLICE_BYTES):
            part = target[at : at + SLICE_BYTES]
            self._xor_into(part, self._own.at(step, place + at, len(part)))
            yield AGAIN

    def _check(
        self, track: _Track, qp: str, offset: int, length: int, step: int, place: int, ranks: list[int]
    ) -> Waits:
        found, right = self._state.transport.region(qp)[offset : offset + length], self._expected[tuple(ranks)]
        for number, at in enumerate(range(0, length, PERIOD), 1):
            wrong = right.wrong_bytes(found[at : at + PERIOD], step, place + at)
            track.tally.wrong_bytes += wrong
            # Counting is a hundred times slower than comparing.
            if wrong or number % _CHECKS_AT_ONCE == 0:
                yield AGAIN


_NOTHING = memoryview(b"")


def _in_order(track: _Track) -> Iterator[Operation]:
    """All operations of a track, those of repetitions as often as they come."""
    for operation in track.operations:
        if operation.name != REPEAT:
            yield operation
            continue
        times, every, body = operation.values
        for turn in range(times):
            track.passed = turn * every
            yield from body
        track.passed = 0


def _immediate(step: int, tag: int) -> int:
    return (step * TAGS + tag) & _IMMEDIATE


def _of_streams(operation: Callable[..., Waits]) -> Callable[..., Waits]:
    def begun(program: Program, _track: _Track, *values: Any) -> Waits:
        return operation(program._streams, *values)

    return begun


_OPERATIONS: dict[str, Callable[..., Waits | None]] = {
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
    TOGETHER: Program._together,
    "send": _of_streams(Streams.send),
    "receive": _of_streams(Streams.receive),
    "send_flows": _of_streams(Streams.send_flows),
    "receive_flows": _of_streams(Streams.receive_flows),
}
