"""counters.json: counts of endpoints, ports and queues. Only valid counts pass; absent ones stay absent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from mrc_testbed.testbed.checks.conservation import Books
from mrc_testbed.testbed.checks.frame_balance import FrameBooks
from mrc_testbed.testbed.rundir.files import RecordError, read_json
from mrc_testbed.testbed.transports.base import Transport

_Count = Annotated[int, Field(strict=True, ge=0)]
_ByNode = dict[str, _Count]
_ByPort = dict[str, dict[str, dict[str, _Count]]]
"""By node, port and name."""


@dataclass(frozen=True, slots=True)
class QpCount:
    """One end of a QP: data packets `sent` for the first time (0: this end sends none) and declared `lost`."""

    peer: str
    sent: int
    lost: int


@dataclass(frozen=True, slots=True)
class PausedPort:
    """How often and how long one port was paused (PFC)."""

    pauses: int
    paused_ns: int


@dataclass(frozen=True, slots=True)
class Counts:
    """`counters`: of each endpoint; `qps`: by host and name, where counted.

    `paths`: by host, peer and `plane/number` the data packets sent, retransmissions included, where hosts have paths.
    `data_to`: those sent to each host; None where senders do not count by peer.
    `queue_drops`: None if queues were not read; `paused_ports`: all ports, where they can be paused; `books`: the
    counts for the conservation check; `frame_books`: those where switch ports are plain shapers; `route_updates`:
    UPDATE messages of BGP, None if they were not counted.
    """

    counters: Mapping[str, Mapping[str, int]]
    qps: Mapping[str, Mapping[str, QpCount]]
    paths: Mapping[str, Mapping[str, Mapping[str, int]]]
    data_to: Mapping[str, int] | None
    queue_drops: int | None
    paused_ports: tuple[PausedPort, ...]
    books: Books | None
    frame_books: FrameBooks | None
    route_updates: int | None = None

    def of(self, transport: Transport) -> Counts:
        """Without what hosts do not count: the packets of kernel TCP."""
        if not transport.of_kernel:
            return self
        frames = self.frame_books
        return replace(
            self,
            books=self.books and replace(self.books, hosts=None),
            frame_books=frames and replace(frames, hosts=None),
        )


class _Qp(BaseModel):
    peer: object = None
    sent: _Count
    lost: _Count


class _Host(BaseModel):
    counters: dict[str, _Count]
    qps: dict[str, _Qp] | None = None
    paths: dict[str, dict[str, _Count]] = {}


class _File(BaseModel):
    """The counts that counters.json may have; absent ones stay absent."""

    hosts: dict[str, _Host] = {}
    bgp: _ByPort | None = None
    queues: _ByPort | None = None
    ports: _ByPort | None = None
    frames: _ByPort | None = None
    sids: _ByPort = {}
    no_sid: _ByNode = {}
    socket_losses: _ByNode = {}
    icmp_in: _ByNode = {}
    icmp_out: _ByNode = {}


def read_counts(path: Path) -> Counts:
    """Read the file; empty if missing or incomplete. Raises RecordError for an invalid count."""
    try:
        file = _File.model_validate(read_json(path) or {})
    except ValidationError as error:
        raise RecordError(path, _mistake(error.errors(include_url=False)[0])) from None
    counters = {host: figures.counters for host, figures in file.hosts.items()}
    paths = {host: figures.paths for host, figures in file.hosts.items()}
    qps = {
        host: {name: QpCount(str(one.peer), one.sent, one.lost) for name, one in figures.qps.items()}
        for host, figures in file.hosts.items()
        if figures.qps is not None
    }
    updates = None if file.bgp is None else route_updates(file.bgp)
    paused = tuple(_paused_ports(file))
    books, frames = _books(file), _frame_books(file)
    return Counts(counters, qps, paths, _data_to(paths), _queue_drops(file), paused, books, frames, updates)


def _mistake(error: ErrorDetails) -> str:
    *above, last = map(str, error["loc"])
    if error["type"] == "missing":
        return f"{'.'.join(above)} has no {last}"
    wrong = "object" if error["type"] in ("dict_type", "model_type") else f"count: {error['input']!r}"
    return f"{'.'.join([*above, last])} is not {'an' if wrong == 'object' else 'a'} {wrong}"


def route_updates(told: Mapping[str, Mapping[str, Mapping[str, int]]]) -> int:
    """Both ends of a session count, and one whose daemon has started again has forgotten: each way, who knows more."""
    each_way: Counter[tuple[str, str]] = Counter()
    for switch, neighbours in told.items():
        for neighbour, counts in neighbours.items():
            for way, name in (((switch, neighbour), "updates_sent"), ((neighbour, switch), "updates_received")):
                each_way[way] = max(each_way[way], counts.get(name, 0))
    return each_way.total()


def _data_to(paths: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Mapping[str, int] | None:
    sent: Counter[str] = Counter()
    for peers in paths.values():
        for peer, ways in peers.items():
            sent[peer] += sum(ways.values())
    return sent or None


def _queue_drops(file: _File) -> int | None:
    """Packets dropped by shapers, and by port programs before them because the queue was full."""
    if file.queues is None:
        return None
    rows = [port for node in file.queues.values() for port in node.values()]
    if any("drops" not in port for port in rows):
        return None
    ports = [port for node in (file.ports or {}).values() for port in node.values()]
    dropped = (port.get(name, 0) for port in ports for name in ("out_dropped", "out_other_dropped"))
    return sum(port["drops"] for port in rows) + sum(dropped)


def _paused_ports(file: _File) -> Iterator[PausedPort]:
    for node in (file.queues or {}).values():
        for port in node.values():
            if "pauses" in port and "paused_ns" in port:
                yield PausedPort(port["pauses"], port["paused_ns"])


def _books(file: _File) -> Books | None:
    if file.ports is None:
        return None
    ports = {(node, port): figures for node, rows in file.ports.items() for port, figures in rows.items()}
    return Books(ports, _all_host_books(file))


def _frame_books(file: _File) -> FrameBooks | None:
    if file.frames is None:
        return None
    queues, told = file.queues or {}, {"icmp_in": file.icmp_in, "icmp_out": file.icmp_out}
    ports = {
        (node, port): {**queues.get(node, {}).get(port, {}), **figures}
        for node, rows in file.frames.items()
        for port, figures in rows.items()
    }
    nodes = {node: {name: counts[node] for name, counts in told.items() if node in counts} for node in file.frames}
    return FrameBooks(ports, nodes, _all_host_books(file))


def _all_host_books(file: _File) -> dict[str, dict[str, int]]:
    return {host: _host_books(one.counters, file.socket_losses.get(host)) for host, one in file.hosts.items()}


def _strangers(counters: Mapping[str, int]) -> int | None:
    """Packets that no peer sent. Runs from before ports were looked at have no count of theirs."""
    addresses = counters.get("unknown_source")
    return None if addresses is None else addresses + counters.get("unknown_port", 0)


def _host_books(counters: Mapping[str, int], socket_losses: int | None) -> dict[str, int]:
    errors = [count for name, count in counters.items() if name.startswith("send_lost_")]
    data = counters.get("data_sent")
    books = {
        # A probe that waits with the data is data to a switch.
        "data_sent": None if data is None else data + counters.get("suspect_probes_sent", 0),
        "packets_out": counters.get("packets_out"),
        "packets_in": counters.get("packets_in"),
        "send_errors": sum(errors),
        "strangers": _strangers(counters),
        "socket_drops": socket_losses,
    }
    return {name: count for name, count in books.items() if count is not None}
