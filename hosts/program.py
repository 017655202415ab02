"""The rank program of a host: lists of operations with real data dependencies, run without ever blocking.

A program has one or more tracks, each a list of operations; they run side by side and share memory and QPs. Who drives
it calls `advance(now_ns)` after every input, tells it of immediates and completed writes, and takes what there is to
report with `poll_report()`. Operations and their arguments are listed in docs/architecture.md, "The control channel".

The data of steps prove themselves (those of streams: hosts/stream.py). Every rank has a random base block; the input of
step s is that block rotated by a distance that no other step shares, and the right result of a reduction is the XOR of
all ranks' blocks, rotated alike. So bytes left over from an earlier step, another rank or a lost packet never pass for
right.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from hosts.blocks import Rotating, base_block, reduced_block, wrong_bytes, xor_into
from hosts.stream import GRAIN_NS, Content, Incoming, Interval, Outgoing, StreamError

INPUT = "input"
"""The buffer that `begin` fills and whose length `check` works with."""
REGION_PREFIX = "region:"
"""`region:<qp id>` is the memory that the peer of that QP writes into."""
SLICE_BYTES = 1 << 16
"""Work done at one go: 64 KiB of XOR are 0.2 ms, short against the 5 ms of the fastest retransmission timer."""

_AGAIN = 0

_Waits = Iterator[int | None]
"""What an operation yields: the time to go on at (`_AGAIN`: at once), or None when only an input can help."""


class ProgramError(Exception):
    """A program that cannot be run, or that met an immediate it did not expect. The text is for the user."""


class Transport(Protocol):
    """What a program needs from the endpoint, with QPs by the names that `open_qps` gave them."""

    def region(self, qp: str) -> memoryview:
        """The registered memory of this side of the QP. Raises KeyError for an unknown QP."""

    def post_write(self, qp: str, data: memoryview, remote_offset: int, immediate: int | None) -> None:
        """Queue a write into the peer's region. `data` must not change until the write is reported complete."""


class StepReport(NamedTuple):
    """A finished step. Times are CLOCK_MONOTONIC; `sent_bytes` were written by this rank in the step."""

    step: int
    begin_ns: int
    end_ns: int
    sent_bytes: int
    wrong_bytes: int


class IntervalReport(NamedTuple):
    """What came in on a QP in a stretch of time."""

    qp: str
    interval: Interval


class CompletedReport(NamedTuple):
    """Messages sent on a QP and acknowledged: when, and how long after they were posted, in ns."""

    qp: str
    completed: list[tuple[int, int]]


Report = StepReport | IntervalReport | CompletedReport


@dataclass(frozen=True)
class Job:
    """What `load` brings: this rank's tracks, its buffers (bytes by name) and the seed of everybody's data."""

    rank: int
    ranks: int
    buffers: Mapping[str, int]
    data_seed: int
    tracks: Sequence[Sequence[Sequence[Any]]]


@dataclass(slots=True, eq=False)
class _Track:
    """One list of operations and how far it has come. `resume_ns` None: only an input can help."""

    operations: list[tuple[str, tuple[Any, ...]]]
    waits: _Waits = field(default_factory=lambda: iter(()))
    resume_ns: int | None = None
    begin_ns: int = 0
    sent_bytes: int = 0
    wrong_bytes: int = 0
    done: bool = False

    def wake(self) -> None:
        """An input came. Who waits for a time as well looks at the clock himself."""
        self.resume_ns = _AGAIN


class Program:
    """Interpreter of one rank's tracks over the QPs of `transport`.

    Raises ProgramError when an operation is unknown, has wrong arguments, or reaches outside its buffer: a mistake in
    a program is an answer to `load`, not a crash in the middle of a run.
    """

    def __init__(self, job: Job, transport: Transport) -> None:
        self._transport = transport
        self._buffers = {name: memoryview(bytearray(size)) for name, size in job.buffers.items()}
        self._waiting: dict[str, list[_Track]] = {}
        self._tracks = [self._track(index, operations) for index, operations in enumerate(job.tracks)]
        size = job.buffers.get(INPUT, 0)
        self._data_seed = job.data_seed
        self._input = Rotating(base_block(job.data_seed, job.rank, size)) if size else None
        self._reduced = Rotating(reduced_block(job.data_seed, job.ranks, size)) if size else None
        self._immediates: dict[str, deque[int]] = {}
        self._unwritten: dict[str, int] = {}
        self._reports: deque[Report] = deque()
        self._now_ns = self._start_ns = 0

    # Input

    def start(self, at_ns: int) -> None:
        """Run every track from its first operation, beginning at `at_ns`."""
        self._start_ns = at_ns
        for track in self._tracks:
            track.waits = self._run(track)
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
        """Every track has come to its end."""
        return all(track.done for track in self._tracks)

    def advance(self, now_ns: int) -> int | None:
        """Go as far as the time and the inputs allow, one slice of heavy work a track at most.

        Returns the time to be called again at (a past one: as soon as the sockets were served), or None when only an
        input can help or the program is over.
        """
        self._now_ns = now_ns
        next_ns = None
        for track in self._tracks:
            if track.resume_ns is not None and track.resume_ns <= now_ns:
                track.resume_ns = next(track.waits, None)
            if track.resume_ns is not None and (next_ns is None or track.resume_ns < next_ns):
                next_ns = track.resume_ns
        return next_ns

    def poll_report(self) -> Report | None:
        """The next thing to report, or None."""
        return self._reports.popleft() if self._reports else None

    # Operations. One that waits is a generator; the arguments are named as in the contract.

    def _run(self, track: _Track) -> _Waits:
        yield from self._until(self._start_ns)
        for name, arguments in track.operations:
            waits = _OPERATIONS[name](self, track, *arguments)
            if waits is not None:
                yield from waits
        track.done = True

    def _begin(self, track: _Track, step: int) -> None:
        track.sent_bytes = track.wrong_bytes = 0
        track.begin_ns = self._now_ns
        if self._input is not None:
            self._buffers[INPUT][:] = self._input.at(step)

    def _compute(self, _track: _Track, ns: int) -> _Waits:
        yield from self._until(self._now_ns + ns)

    def _until(self, at_ns: int) -> _Waits:
        while self._now_ns < at_ns:
            yield at_ns

    def _write(
        self,
        track: _Track,
        qp: str,
        buffer: str,
        offset: int,
        length: int,
        remote_offset: int,
        immediate: int | None,
    ) -> None:
        track.sent_bytes += length
        self._post(qp, self._span(buffer, offset, length), remote_offset, immediate)

    def _post(self, qp: str, data: memoryview, remote_offset: int, immediate: int | None) -> None:
        self._unwritten[qp] = self._unwritten.get(qp, 0) + 1
        self._transport.post_write(qp, data, remote_offset, immediate)

    def _wait(self, _track: _Track, qp: str, immediate: int) -> _Waits:
        arrived = self._immediates.setdefault(qp, deque())
        while not arrived:
            yield None
        value = arrived.popleft()
        if value != immediate:
            raise ProgramError(f"immediate {value} arrived on {qp} where {immediate} was due")

    def _drain(self, _track: _Track, qp: str) -> _Waits:
        while self._unwritten.get(qp, 0):
            yield None

    def _xor(
        self, _track: _Track, buffer: str, offset: int, other_buffer: str, other_offset: int, length: int
    ) -> _Waits:
        target = self._span(buffer, offset, length)
        source = self._span(other_buffer, other_offset, length)
        for at in range(0, length, SLICE_BYTES):
            xor_into(target[at : at + SLICE_BYTES], source[at : at + SLICE_BYTES])
            yield _AGAIN

    def _copy(
        self, _track: _Track, buffer: str, offset: int, other_buffer: str, other_offset: int, length: int
    ) -> None:
        self._span(buffer, offset, length)[:] = self._span(other_buffer, other_offset, length)

    def _check(self, track: _Track, buffer: str, step: int) -> _Waits:
        if self._reduced is None:
            return
        found, right = self._buffers[buffer], self._reduced.at(step)
        for at in range(0, len(right), SLICE_BYTES):
            wrong = wrong_bytes(found[at : at + SLICE_BYTES], right[at : at + SLICE_BYTES])
            track.wrong_bytes += wrong
            if wrong:
                # Counting is a hundred times slower than comparing: let the sockets have their turn.
                yield _AGAIN

    def _end(self, track: _Track, step: int) -> None:
        report = StepReport(step, track.begin_ns, self._now_ns, track.sent_bytes, track.wrong_bytes)
        self._reports.append(report)

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
        stream = Outgoing(self._content(qp, message_bytes), message_bytes, slots, depth, until_ns, messages)
        report_ns = begin_ns
        while not stream.done:
            stream.complete(self._now_ns, self._unwritten.get(qp, 0))
            for write in stream.writes(self._now_ns):
                self._post(qp, *write)
            if stream.completed and (stream.done or self._now_ns >= report_ns):
                report_ns = self._now_ns + GRAIN_NS
                self._reports.append(CompletedReport(qp, stream.completed))
                stream.completed = []
            if not stream.done:
                yield report_ns if stream.completed else None

    def _receive(self, _track: _Track, qp: str, message_bytes: int, slots: int) -> _Waits:
        content, region = self._content(qp, message_bytes), self._transport.region(qp)
        stream = Incoming(content, region, message_bytes, slots, self._start_ns, wrong_bytes)
        arrived = self._immediates.setdefault(qp, deque())
        while True:
            # Stretches that are over do not hold what has only now come.
            self._reports.extend(IntervalReport(qp, interval) for interval in stream.intervals(self._now_ns))
            try:
                while arrived:
                    stream.take(arrived.popleft())
            except StreamError as error:
                raise ProgramError(f"{qp}: {error}") from None
            if stream.done:
                break
            yield stream.report_ns
        self._reports.extend(IntervalReport(qp, interval) for interval in stream.intervals(self._now_ns))

    def _content(self, qp: str, message_bytes: int) -> Content:
        return Content(self._data_seed, qp, message_bytes)

    def _memory(self, buffer: str) -> memoryview:
        if buffer.startswith(REGION_PREFIX):
            return self._transport.region(buffer.removeprefix(REGION_PREFIX))
        return self._buffers[buffer]

    def _span(self, buffer: str, offset: int, length: int) -> memoryview:
        return self._memory(buffer)[offset : offset + length]

    def _track(self, index: int, operations: Any) -> _Track:
        _require(isinstance(operations, list), f"track {index} must be a list of operations")
        track = _Track([])
        for number, operation in enumerate(operations):
            try:
                name, *values = operation
                arguments = _named_arguments(name, values)
                self._check_memory(name, arguments)
            except (ProgramError, ValueError, TypeError) as error:
                raise ProgramError(f"track {index}, operation {number} {operation!r}: {error}") from error
            track.operations.append((name, tuple(values)))
            waiting = self._waiting.setdefault(arguments["qp"], []) if "qp" in arguments else [track]
            if track not in waiting:
                waiting.append(track)
        return track

    def _check_memory(self, name: str, arguments: dict[str, Any]) -> None:
        if "qp" in arguments:
            size = self._size_of(REGION_PREFIX + arguments["qp"])
            if name == "receive":
                end = arguments["slots"] * arguments["message_bytes"]
                _require(end <= size, f"the region holds {size} bytes, the slots reach to {end}")
        if name == "send":
            _require(arguments["depth"] < arguments["slots"], "there must be more slots than messages under way")
        for prefix in ("", "other_"):
            buffer = arguments.get(f"{prefix}buffer")
            if buffer is None:
                continue
            size = self._size_of(buffer)
            if "length" not in arguments:
                _require(size == self._size_of(INPUT), f"{buffer} holds {size} bytes, {INPUT} another number")
                continue
            end = arguments[f"{prefix}offset"] + arguments["length"]
            _require(end <= size, f"{buffer} holds {size} bytes, the operation reaches to {end}")

    def _size_of(self, buffer: str) -> int:
        try:
            return len(self._memory(buffer))
        except KeyError:
            raise ProgramError(f"there is no buffer or QP {buffer!r}") from None


_OPERATIONS: dict[str, Callable[..., _Waits | None]] = {
    "begin": Program._begin,
    "compute": Program._compute,
    "write": Program._write,
    "wait": Program._wait,
    "xor": Program._xor,
    "copy": Program._copy,
    "drain": Program._drain,
    "check": Program._check,
    "end": Program._end,
    "send": Program._send,
    "receive": Program._receive,
}
_PARAMETERS = {name: tuple(inspect.signature(run).parameters)[2:] for name, run in _OPERATIONS.items()}
_TEXT = {"qp", "buffer", "other_buffer"}
_POSITIVE = {"message_bytes", "slots", "depth"}
_OPTIONAL = {("write", "immediate"), ("send", "for_ns")}


def _named_arguments(name: str, values: list[Any]) -> dict[str, Any]:
    _require(name in _OPERATIONS, f"unknown; there are {', '.join(_OPERATIONS)}")
    parameters = _PARAMETERS[name]
    _require(len(values) == len(parameters), f"takes {len(parameters)} arguments: {', '.join(parameters)}")
    for parameter, value in zip(parameters, values, strict=True):
        if parameter in _TEXT:
            _require(type(value) is str, f"{parameter} must be a string")
        elif value is not None or (name, parameter) not in _OPTIONAL:
            least = int(parameter in _POSITIVE)
            _require(type(value) is int and value >= least, f"{parameter} must be an integer of {least} or more")
    return dict(zip(parameters, values, strict=True))


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ProgramError(otherwise)
