"""The rank program of a host: a list of operations with real data dependencies, run without ever blocking.

Who drives it calls `advance(now_ns)` after every input, tells it of immediates and completed writes, and takes finished
steps with `poll_report()`. Operations and their arguments are listed in docs/architecture.md, "The control channel".

The data prove themselves. Every rank has a random base block; the input of step s is that block rotated by a distance
that no other step shares, and the right result of a reduction is the XOR of all ranks' blocks, rotated alike. So bytes
left over from an earlier step, another rank or a lost packet never pass for right.
"""

from __future__ import annotations

import inspect
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import gcd
from typing import Any, NamedTuple, Protocol

INPUT = "input"
"""The buffer that `begin` fills and whose length `check` works with."""
REGION_PREFIX = "region:"
"""`region:<qp id>` is the memory that the peer of that QP writes into."""
SLICE_BYTES = 1 << 16
"""Work done at one go: 64 KiB of XOR are 0.2 ms, short against the 5 ms of the fastest retransmission timer."""

_XOR_BYTES = 1 << 14
_AGAIN = 0
_STRIDE = 8209

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


@dataclass(frozen=True)
class Job:
    """What `load` brings: this rank's operations, its buffers (bytes by name) and the seed of everybody's data."""

    rank: int
    ranks: int
    buffers: Mapping[str, int]
    data_seed: int
    operations: Sequence[Sequence[Any]]


def base_block(data_seed: int, rank: int, size: int) -> bytes:
    """The bytes that a rank's inputs are made of: the same on every machine for the same seed."""
    return random.Random(f"{data_seed}/{rank}").randbytes(size)


def reduced_block(data_seed: int, ranks: int, size: int) -> bytes:
    """The XOR of the base blocks of all ranks."""
    total = 0
    for rank in range(ranks):
        total ^= int.from_bytes(base_block(data_seed, rank, size), "little")
    return total.to_bytes(size, "little")


class Rotating:
    """A block that every step sees rotated by another distance, without copying it."""

    def __init__(self, block: bytes) -> None:
        self._size = len(block)
        self._twice = memoryview(block + block)
        # Coprime to the length, so that no distance repeats before it must.
        self._stride = next(stride for stride in count(_STRIDE) if gcd(stride, self._size) == 1)

    def at(self, step: int) -> memoryview:
        """The block as step `step` sees it."""
        shift = step * self._stride % self._size
        return self._twice[shift : shift + self._size]


def xor_into(target: memoryview, source: memoryview) -> None:
    """target ^= source. Blocks of 16 KiB stay in the first-level cache: 2.6 ns a byte, against 4.2 with 64 KiB."""
    for at in range(0, len(target), _XOR_BYTES):
        into = target[at : at + _XOR_BYTES]
        result = int.from_bytes(into, "little") ^ int.from_bytes(source[at : at + _XOR_BYTES], "little")
        into[:] = result.to_bytes(len(into), "little")


def wrong_bytes(found: memoryview, right: memoryview) -> int:
    """How many bytes differ between two blocks of equal length."""
    # Comparing the views themselves goes byte by byte and takes sixty times as long.
    if bytes(found) == bytes(right):
        return 0
    difference = int.from_bytes(found, "little") ^ int.from_bytes(right, "little")
    return len(right) - difference.to_bytes(len(right), "little").count(0)


class Program:
    """Interpreter of one rank's operations over the QPs of `transport`.

    Raises ProgramError when an operation is unknown, has wrong arguments, or reaches outside its buffer: a mistake in
    a program is an answer to `load`, not a crash in the middle of a run.
    """

    def __init__(self, job: Job, transport: Transport) -> None:
        self._transport = transport
        self._buffers = {name: memoryview(bytearray(size)) for name, size in job.buffers.items()}
        self._operations = [self._checked(index, operation) for index, operation in enumerate(job.operations)]
        size = job.buffers.get(INPUT, 0)
        self._input = Rotating(base_block(job.data_seed, job.rank, size)) if size else None
        self._reduced = Rotating(reduced_block(job.data_seed, job.ranks, size)) if size else None
        self._immediates: dict[str, deque[int]] = {}
        self._unwritten: dict[str, int] = {}
        self._reports: deque[StepReport] = deque()
        self._now_ns = self._begin_ns = 0
        self._sent_bytes = self._wrong_bytes = 0
        self._flow: _Waits = iter(())
        self._resume_ns: int | None = None
        self.done = False

    # Input

    def start(self, at_ns: int) -> None:
        """Run from the first operation, beginning at `at_ns`."""
        self._flow = self._run()
        self._resume_ns = at_ns

    def immediate(self, qp: str, value: int) -> None:
        """The peer of this QP wrote with immediate; values come in the order they were sent."""
        self._immediates.setdefault(qp, deque()).append(value)
        self._wake()

    def written(self, qp: str) -> None:
        """One of this program's writes on this QP is complete: its memory may be reused."""
        self._unwritten[qp] -= 1
        self._wake()

    def _wake(self) -> None:
        if self._resume_ns is None:
            self._resume_ns = _AGAIN

    # Output

    def advance(self, now_ns: int) -> int | None:
        """Go as far as the time and the inputs allow, one slice of heavy work at most.

        Returns the time to be called again at (a past one: as soon as the sockets were served), or None when only an
        input can help or the program is over.
        """
        if self._resume_ns is not None and self._resume_ns <= now_ns:
            self._now_ns = now_ns
            self._resume_ns = next(self._flow, None)
        return self._resume_ns

    def poll_report(self) -> StepReport | None:
        """The next finished step, or None."""
        return self._reports.popleft() if self._reports else None

    # Operations. One that waits is a generator; the arguments are named as in the contract.

    def _run(self) -> _Waits:
        for name, arguments in self._operations:
            waits = _OPERATIONS[name](self, *arguments)
            if waits is not None:
                yield from waits
        self.done = True

    def _begin(self, step: int) -> None:
        self._sent_bytes = self._wrong_bytes = 0
        self._begin_ns = self._now_ns
        if self._input is not None:
            self._buffers[INPUT][:] = self._input.at(step)

    def _compute(self, ns: int) -> _Waits:
        until_ns = self._now_ns + ns
        while self._now_ns < until_ns:
            yield until_ns

    def _write(self, qp: str, buffer: str, offset: int, length: int, remote_offset: int, immediate: int | None) -> None:
        self._unwritten[qp] = self._unwritten.get(qp, 0) + 1
        self._sent_bytes += length
        self._transport.post_write(qp, self._span(buffer, offset, length), remote_offset, immediate)

    def _wait(self, qp: str, immediate: int) -> _Waits:
        arrived = self._immediates.setdefault(qp, deque())
        while not arrived:
            yield None
        value = arrived.popleft()
        if value != immediate:
            raise ProgramError(f"immediate {value} arrived on {qp} where {immediate} was due")

    def _drain(self, qp: str) -> _Waits:
        while self._unwritten.get(qp, 0):
            yield None

    def _xor(self, buffer: str, offset: int, other_buffer: str, other_offset: int, length: int) -> _Waits:
        target = self._span(buffer, offset, length)
        source = self._span(other_buffer, other_offset, length)
        for at in range(0, length, SLICE_BYTES):
            xor_into(target[at : at + SLICE_BYTES], source[at : at + SLICE_BYTES])
            yield _AGAIN

    def _copy(self, buffer: str, offset: int, other_buffer: str, other_offset: int, length: int) -> None:
        self._span(buffer, offset, length)[:] = self._span(other_buffer, other_offset, length)

    def _check(self, buffer: str, step: int) -> _Waits:
        if self._reduced is None:
            return
        found, right = self._buffers[buffer], self._reduced.at(step)
        for at in range(0, len(right), SLICE_BYTES):
            wrong = wrong_bytes(found[at : at + SLICE_BYTES], right[at : at + SLICE_BYTES])
            self._wrong_bytes += wrong
            if wrong:
                # Counting is a hundred times slower than comparing: let the sockets have their turn.
                yield _AGAIN

    def _end(self, step: int) -> None:
        report = StepReport(step, self._begin_ns, self._now_ns, self._sent_bytes, self._wrong_bytes)
        self._reports.append(report)

    def _memory(self, buffer: str) -> memoryview:
        if buffer.startswith(REGION_PREFIX):
            return self._transport.region(buffer.removeprefix(REGION_PREFIX))
        return self._buffers[buffer]

    def _span(self, buffer: str, offset: int, length: int) -> memoryview:
        return self._memory(buffer)[offset : offset + length]

    def _checked(self, index: int, operation: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
        try:
            name, *values = operation
            arguments = _named_arguments(name, values)
            self._check_memory(arguments)
        except (ProgramError, ValueError, TypeError) as error:
            raise ProgramError(f"operation {index} {operation!r}: {error}") from error
        return name, tuple(values)

    def _check_memory(self, arguments: dict[str, Any]) -> None:
        if "qp" in arguments:
            self._size_of(REGION_PREFIX + arguments["qp"])
        for prefix in ("", "other_"):
            name = arguments.get(f"{prefix}buffer")
            if name is None:
                continue
            size = self._size_of(name)
            if "length" not in arguments:
                _require(size == self._size_of(INPUT), f"{name} holds {size} bytes, {INPUT} another number")
                continue
            end = arguments[f"{prefix}offset"] + arguments["length"]
            _require(end <= size, f"{name} holds {size} bytes, the operation reaches to {end}")

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
}
_PARAMETERS = {name: tuple(inspect.signature(run).parameters)[1:] for name, run in _OPERATIONS.items()}
_TEXT = {"qp", "buffer", "other_buffer"}


def _named_arguments(name: str, values: list[Any]) -> dict[str, Any]:
    _require(name in _OPERATIONS, f"unknown; there are {', '.join(_OPERATIONS)}")
    parameters = _PARAMETERS[name]
    _require(len(values) == len(parameters), f"takes {len(parameters)} arguments: {', '.join(parameters)}")
    for parameter, value in zip(parameters, values, strict=True):
        if parameter in _TEXT:
            _require(type(value) is str, f"{parameter} must be a string")
        elif value is not None or (name, parameter) != ("write", "immediate"):
            _require(type(value) is int and value >= 0, f"{parameter} must be an integer of 0 or more")
    return dict(zip(parameters, values, strict=True))


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ProgramError(otherwise)
