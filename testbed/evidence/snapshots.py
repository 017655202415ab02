"""The counters of all hosts over time (a long run has a million): found by host and time, read when asked for.

A snapshot as every run writes it is not parsed before its counters are wanted; only its place in the file is kept.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from mrc_testbed.testbed.rundir.files import (
    MOST_LINE_BYTES,
    MOST_TABLE_BYTES,
    RecordError,
    open_plain,
    parse_json,
)
from mrc_testbed.testbed.rundir.snapshot_lines import NONZERO, restored, zeros_of

_KEPT = 512
"""Snapshots that stay parsed: who asks for those around a fault asks for each of them several times."""
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The counters of a host at one time. `lost`: packets lost by QP, without zeros; None: not counted.
    `stalled`: since when, by QP, for those that deliver nothing; None: not watched. `sent_by_path`: by peer the data
    packets sent on each path since the host told of that peer last; None: not told. `lost_by_path`: by peer and
    `plane/number` those that vanished. `latest_ns`: how late the host has ever been awake."""

    t_ns: int
    host: str
    counters: Mapping[str, int]
    lost: Mapping[str, int] | None = None
    stalled: Mapping[str, int] | None = None
    sent_by_path: Mapping[str, Sequence[int]] | None = None
    lost_by_path: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    latest_ns: int = 0


class SnapshotPlaces:
    """Of the snapshots of one host: their times, where their lines begin and how long they are, and where the last one
    that names all counters begins; -1: nowhere before it."""

    def __init__(self) -> None:
        self.times_ns, self.offsets, self.lengths, self.named_at = array("q"), array("q"), array("I"), array("q")

    def add(self, t_ns: int, offset: int, length: int, names_all: bool) -> None:
        """The next one."""
        self.times_ns.append(t_ns)
        self.offsets.append(offset)
        self.lengths.append(length)
        before = self.named_at[-1] if self.named_at else -1
        self.named_at.append(offset if names_all else before)

    def place(self, number: int) -> _Place:
        """Of one of them."""
        return _Place(self.offsets[number], self.lengths[number], self.named_at[number])


class _Place(NamedTuple):
    offset: int
    length: int
    named_at: int


class Snapshots:
    """Those of a run, each host's in the order in which it told them, which is that of time."""

    def __init__(self, path: Path) -> None:
        """`path`: the file of the events."""
        self._path = path
        self._by_host: dict[str, SnapshotPlaces] = {}
        self._parsed: OrderedDict[int, Snapshot] = OrderedDict()
        self._zeros: dict[int, Mapping[str, int]] = {}

    def places(self, host: str) -> SnapshotPlaces:
        """The places of a host's snapshots; more can be added."""
        return self._by_host.setdefault(host, SnapshotPlaces())

    @property
    def last_ns(self) -> int | None:
        """When the last one in the file was taken."""
        known = self._by_host.values()
        return max(known, key=lambda places: places.offsets[-1]).times_ns[-1] if known else None

    def __len__(self) -> int:
        return sum(len(places.times_ns) for places in self._by_host.values())

    def times_ns(self, host: str) -> Sequence[int]:
        """When those of a host were taken."""
        return self._by_host[host].times_ns if host in self._by_host else ()

    def at(self, host: str, number: int) -> Snapshot:
        """One of a host's, counted from 0. Raises RecordError."""
        place = self._by_host[host].place(number)
        offset = place.offset
        if offset not in self._parsed:
            with self._opened() as file:
                self._parsed[offset] = self._read(file, place)
            if len(self._parsed) > _KEPT:
                self._parsed.popitem(last=False)
        return self._parsed[offset]

    def last(self) -> Mapping[str, Snapshot]:
        """The last one of each host. Raises RecordError."""
        return {host: self.at(host, -1) for host in self._by_host}

    def thinned(self, apart_ns: float) -> Iterator[Snapshot]:
        """Of each host the first, then always the first at least `apart_ns` later, and the last. Raises RecordError."""
        chosen = sorted(place for places in self._by_host.values() for place in _thinned(places, apart_ns))
        if chosen:
            with self._opened() as file:
                yield from (self._read(file, place) for place in chosen)

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        try:
            with open_plain(self._path, MOST_TABLE_BYTES) as file:
                yield file
        except OSError as error:
            raise RecordError(self._path, f"cannot be read: {error.strerror}") from None

    def _read(self, file: IO[bytes], place: _Place) -> Snapshot:
        file.seek(place.offset)
        line = file.read(place.length).decode(errors="replace")
        try:
            row = parse_json(line)
            return snapshot_of(restored(row, self._zeros_at(file, place.named_at)) if NONZERO in row else row)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise RecordError(self._path, f"a snapshot cannot be read: {error}: {line[:_SHOWN]}") from None

    def _zeros_at(self, file: IO[bytes], offset: int) -> Mapping[str, int] | None:
        """Of the line that names all counters; None: there is none."""
        if offset >= 0 and offset not in self._zeros:
            file.seek(offset)
            self._zeros[offset] = zeros_of(parse_json(file.readline(MOST_LINE_BYTES).decode(errors="replace")))
        return self._zeros.get(offset)


def _thinned(places: SnapshotPlaces, apart_ns: float) -> Iterator[_Place]:
    next_ns, last = 0.0, len(places.times_ns) - 1
    for number, t_ns in enumerate(places.times_ns):
        if t_ns >= next_ns or number == last:
            next_ns = t_ns + apart_ns
            yield places.place(number)


def snapshot_of(row: Mapping[str, Any]) -> Snapshot:
    """Of the fields of its line. Raises KeyError, TypeError, ValueError, OverflowError or
    AttributeError."""
    counters = row["counters"]
    array("q", counters.values())  # refuses what is no whole number, or none that a counter could reach
    sent, lost = row.get("sent_by_path"), row.get("lost_by_path") or {}
    for counts in (*(sent or {}).values(), *(each.values() for each in lost.values())):
        array("q", counts)
    latest_ns = int((row.get("lateness") or {}).get("max_ns") or 0)
    known = _by_qp(row, "lost"), _by_qp(row, "stalled")
    return Snapshot(int(row["t_ns"]), row["host"], counters, *known, sent, lost, latest_ns)


def _by_qp(row: Mapping[str, Any], key: str) -> Mapping[str, int] | None:
    """Whole numbers by QP, None if the line has none. Raises TypeError for anything else."""
    value = row.get(key)
    if value is None or (isinstance(value, dict) and all(isinstance(number, int) for number in value.values())):
        return value
    raise TypeError(repr(key))
