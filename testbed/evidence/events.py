"""events.jsonl of a run as typed data. An hour of 64 hosts in congestion has five million lines: most of them are
snapshots and paths that rest for a moment, and are kept as numbers."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mrc_testbed.testbed.evidence.probes import ToldProbes, told_probes_of
from mrc_testbed.testbed.evidence.snapshots import SnapshotPlaces, Snapshots, snapshot_of
from mrc_testbed.testbed.rundir.files import RecordError, line_blocks, parse_json
from mrc_testbed.testbed.rundir.snapshot_lines import COUNTERS, NONZERO
from mrc_testbed.topos.names import host_name

GOOD = "GOOD"
SKIP = "SKIP"
ASSUMED_BAD = "ASSUMED_BAD"
DENIED = "DENIED"
_KNOWN = re.compile(
    rb'\{"host":"([^"\\]+)","event":"(?:ev_state","t_ns":(\d{1,18}),("peer":"[^"\\]+","plane":\d{1,9},"uplink":\d{1,9}),'
    rb'"from":"(?:GOOD","to":"(?=SKIP")|SKIP","to":"(?=GOOD"))([SG])|'
    rb'snapshot","t_ns":(\d{1,18}),"(?:(counters)|nonzero)":\{)',
    re.ASCII,
)
"""How a line begins, as every run writes it: a path that ECN laid to rest, or that is back from there, or a snapshot.
One expression for both: a long run has millions of them."""
_END = b"}\n"
"""Of a whole line."""


@dataclass(frozen=True, slots=True)
class EvChange:
    """One path of a sender changed state.

    `first_lost_tx_ns` 0: no lost packet is known; `last_tx_ns` 0: no data packet was sent on it.
    """

    t_ns: int
    host: str
    peer: str
    plane: int
    uplink: int
    old: str
    new: str
    first_lost_tx_ns: int
    last_tx_ns: int = 0

    @property
    def path(self) -> tuple[str, str, int, int]:
        """The path and its sender: host, peer, plane and uplink."""
        return self.host, self.peer, self.plane, self.uplink

    @property
    def retired(self) -> bool:
        """True if the path left use."""
        return self.old in (GOOD, SKIP) and self.new == ASSUMED_BAD

    @property
    def restored(self) -> bool:
        """True if the path returned to use."""
        return self.old == ASSUMED_BAD and self.new in (GOOD, SKIP)


@dataclass(frozen=True, slots=True)
class Notice:
    """An event with a reason: a QP error (`peer`: its other end), the end of a daemon, or a program of the user that
    failed."""

    t_ns: int
    host: str
    reason: str
    peer: str = ""
    qp: str = ""


@dataclass(frozen=True, slots=True)
class Stall:
    """A time in which a QP of `host` to `peer` had work outstanding and delivered nothing. `end_ns` None: until the end
    of the run, as far as was reported."""

    host: str
    peer: str
    qp: str
    begin_ns: int
    end_ns: int | None


@dataclass(frozen=True, slots=True)
class PortChange:
    """A NIC port changed state, as a host saw it: its own (`peer` empty), or a peer's as reported."""

    t_ns: int
    host: str
    peer: str
    plane: int
    state: str


@dataclass(frozen=True, slots=True)
class QpPortMove:
    """The library of a QP of `host` left the port of `plane`, gave it up, or has it back: `state` as of its event.
    `carrier`: the plane whose port has its part."""

    t_ns: int
    host: str
    peer: str
    qp: str
    plane: int
    state: str
    carrier: int


@dataclass(slots=True)
class PathRests:
    """When ECN laid one path to rest, and when it came back: `states` has an S or a G for each of `times_ns`."""

    times_ns: array[int] = field(default_factory=lambda: array("q"))
    states: bytearray = field(default_factory=bytearray)

    def add(self, t_ns: int, state: bytes) -> None:
        """The next one, `state` by its name."""
        self.times_ns.append(t_ns)
        self.states.append(state[0])


class PathKey(NamedTuple):
    """A path of a sender to a peer."""

    host: str
    peer: str
    plane: int
    uplink: int


@dataclass
class Events:
    """What endpoints reported. `rests`: by path the changes between GOOD and SKIP; `ev_changes`: all others."""

    ev_changes: list[EvChange] = field(default_factory=list)
    rests: dict[PathKey, PathRests] = field(default_factory=dict)
    qp_errors: list[Notice] = field(default_factory=list)
    fatals: list[Notice] = field(default_factory=list)
    program_failures: list[Notice] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    port_changes: list[PortChange] = field(default_factory=list)
    port_moves: list[QpPortMove] = field(default_factory=list)
    probes: list[ToldProbes] = field(default_factory=list)

    def notices(self, kind: str) -> list[Notice]:
        """Those of events of this name."""
        return {"qp_error": self.qp_errors, "program_failed": self.program_failures, "fatal": self.fatals}[kind]

    def path_rests(self, host: bytes, path_words: bytes) -> PathRests:
        """Those of a path, as a line names it."""
        fields = parse_json(f"{{{path_words.decode(errors='replace')}}}")
        key = PathKey(host.decode(errors="replace"), fields["peer"], fields["plane"], fields["uplink"])
        return self.rests.setdefault(key, PathRests())


def read_events(path: Path) -> tuple[Events, Snapshots]:
    """Those of a file; its last line may be torn. Raises RecordError."""
    found, snapshots = Events(), Snapshots(path)
    rests: dict[tuple[bytes, bytes], PathRests] = {}
    shots: dict[bytes, SnapshotPlaces] = {}
    end, bad = 0, 0
    for number, (line, known) in enumerate(_lines(path), 1):
        begin, end = end, end + len(line)
        if bad and line.strip():
            raise RecordError(path, f"line {bad} is not JSON")
        if known and line.endswith(_END):
            host, t_ns, path_words, state, shot_ns, names_all = known.groups()
            if state:
                key = host, path_words
                (rests.get(key) or rests.setdefault(key, found.path_rests(*key))).add(int(t_ns), state)
            else:
                places = shots.get(host) or shots.setdefault(host, snapshots.places(host.decode(errors="replace")))
                places.add(int(shot_ns), begin, len(line), names_all is not None)
            continue
        try:
            row = parse_json(line.decode(errors="replace"))
        except ValueError:  # incomplete, if it is the last line
            bad = bad or number
            continue
        if not isinstance(row, dict):
            raise RecordError(path, f"line {number} is not an object")
        _take(found, snapshots, path, row, (begin, len(line)))
    return found, snapshots


def _lines(path: Path) -> Iterator[tuple[bytes, re.Match[bytes] | None]]:
    """Each with what is known of its begin. Raises RecordError."""
    for lines in line_blocks(path):
        yield from zip(lines, map(_KNOWN.match, lines), strict=True)


def _take(found: Events, snapshots: Snapshots, path: Path, row: Mapping[str, Any], place: tuple[int, int]) -> None:
    """A line that was parsed, and its place: offset and length. Raises RecordError."""
    try:
        if not isinstance(row.get("host", ""), str):
            raise TypeError("'host'")
        match row.get("event"):
            case "snapshot":
                short = NONZERO in row
                shot = snapshot_of({**row, COUNTERS: row[NONZERO]} if short else row)
                snapshots.places(shot.host).add(shot.t_ns, *place, not short)
            case "ev_state":
                _take_change(found, ev_change_of(row))
            case "qp_error" | "program_failed" | "fatal" as kind:
                found.notices(kind).append(_notice(row))
            case "stall":
                found.stalls.append(_stall(row))
            case "port_state":
                found.port_changes.append(port_change_of(row))
            case "failover":
                found.port_moves.append(_port_move(row))
            case "map_window":
                found.probes.append(told_probes_of(row))
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise RecordError(path, f"a line lacks or misspells {error}: {row}") from None


def _take_change(found: Events, change: EvChange) -> None:
    if {change.old, change.new} == {GOOD, SKIP}:
        key = PathKey(change.host, change.peer, change.plane, change.uplink)
        found.rests.setdefault(key, PathRests()).add(change.t_ns, change.new.encode())
    else:
        found.ev_changes.append(change)


def ev_change_of(row: Mapping[str, Any]) -> EvChange:
    """Of the fields of its line. Raises KeyError, TypeError or ValueError."""
    peer = row["peer"]
    peer = host_name(peer) if isinstance(peer, int) else str(peer)
    where = int(row["plane"]), int(row["uplink"])
    sent = (int(row.get(key) or 0) for key in ("first_lost_tx_ns", "last_tx_ns"))
    return EvChange(int(row["t_ns"]), row["host"], peer, *where, row["from"], row["to"], *sent)


def _notice(row: Mapping[str, Any]) -> Notice:
    reason = str(row.get("reason") or "no reason given")
    return Notice(int(row["t_ns"]), row["host"], reason, str(row.get("peer") or ""), str(row.get("qp") or ""))


def _stall(row: Mapping[str, Any]) -> Stall:
    end = row.get("end_ns")
    ended = None if end is None else int(end)
    return Stall(row["host"], str(row["peer"]), str(row["qp"]), int(row["begin_ns"]), ended)


def port_change_of(row: Mapping[str, Any]) -> PortChange:
    """Of the fields of its line. Raises KeyError, TypeError or ValueError."""
    return PortChange(int(row["t_ns"]), row["host"], str(row["peer"] or ""), int(row["plane"]), row["state"])


def _port_move(row: Mapping[str, Any]) -> QpPortMove:
    ports = int(row["plane"]), str(row["state"]), int(row["carrier"])
    return QpPortMove(int(row["t_ns"]), row["host"], str(row["peer"]), str(row["qp"]), *ports)
