"""counters.json: counts of endpoints, ports and queues. Only valid counts pass; absent ones stay absent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.checks.conservation import Books
from mrc_testbed.testbed.checks.frame_balance import FrameBooks
from mrc_testbed.testbed.rundir.files import RecordError, read_json
from mrc_testbed.testbed.transports.base import Transport

_PER_NODE = ("icmp_in", "icmp_out")
_DEPTHS = {
    **dict.fromkeys(("bgp", "queues", "ports", "frames", "sids"), 3),
    **dict.fromkeys(("no_sid", "socket_losses", *_PER_NODE), 1),
}
"""Number of keys above a count: node, port and name, or the node alone."""


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


def read_counts(path: Path) -> Counts:
    """Read the file; empty if missing or incomplete. Raises RecordError for an invalid count."""
    content = read_json(path) or {}
    for name, depth in _DEPTHS.items():
        _refuse_others(path, content, name, depth)
    hosts: dict[str, dict[str, int]] = {}
    qps: dict[str, dict[str, QpCount]] = {}
    for host, figures in _mapping(path, "hosts", content.get("hosts", {})).items():
        where = f"hosts.{host}"
        if "counters" not in _mapping(path, where, figures):
            raise RecordError(path, f"{where} has no counters")
        _refuse_others(path, figures, "counters", 1, f"{where}.")
        hosts[host] = figures["counters"]
        if "qps" in figures:
            qps[host] = _qps(path, f"{where}.qps", figures["qps"])
    books, frames = _books(content, hosts), _frame_books(content, hosts)
    paused = tuple(_paused_ports(content))
    updates = route_updates(content["bgp"]) if "bgp" in content else None
    paths = _paths(path, content)
    return Counts(hosts, qps, paths, _data_to(paths), _queue_drops(content), paused, books, frames, updates)


def route_updates(told: Mapping[str, Mapping[str, Mapping[str, int]]]) -> int:
    """Both ends of a session count, and one whose daemon has started again has forgotten: each way, who knows more."""
    each_way: Counter[tuple[str, str]] = Counter()
    for switch, neighbours in told.items():
        for neighbour, counts in neighbours.items():
            for way, name in (((switch, neighbour), "updates_sent"), ((neighbour, switch), "updates_received")):
                each_way[way] = max(each_way[way], counts.get(name, 0))
    return each_way.total()


def _paths(path: Path, content: Mapping[str, Any]) -> dict[str, Mapping[str, Mapping[str, int]]]:
    for host, figures in content.get("hosts", {}).items():
        _refuse_others(path, figures, "paths", 2, f"hosts.{host}.")
    return {host: figures.get("paths", {}) for host, figures in content.get("hosts", {}).items()}


def _data_to(paths: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Mapping[str, int] | None:
    sent: Counter[str] = Counter()
    for peers in paths.values():
        for peer, ways in peers.items():
            sent[peer] += sum(ways.values())
    return sent or None


def _qps(path: Path, where: str, rows: Any) -> dict[str, QpCount]:
    found = {}
    for name, row in _mapping(path, where, rows).items():
        figures = _mapping(path, f"{where}.{name}", row)
        sent, lost = figures.get("sent"), figures.get("lost")
        for key, count in (("sent", sent), ("lost", lost)):
            _refuse_others(path, {key: count}, key, 0, f"{where}.{name}.")
        found[name] = QpCount(str(figures.get("peer")), int(sent or 0), int(lost or 0))
    return found


def _refuse_others(path: Path, parent: Mapping[str, Any], name: str, depth: int, above: str = "") -> None:
    if name in parent:
        for where, count in _leaves(path, above + name, parent[name], depth):
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                raise RecordError(path, f"{where} is not a count: {count!r}")


def _leaves(path: Path, where: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if depth == 0:
        yield where, value
        return
    for key, item in _mapping(path, where, value).items():
        yield from _leaves(path, f"{where}.{key}", item, depth - 1)


def _mapping(path: Path, where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RecordError(path, f"{where} is not an object")
    return value


def _queue_drops(content: Mapping[str, Any]) -> int | None:
    """Packets dropped by shapers, and by port programs before them because the queue was full."""
    queues = content.get("queues")
    if queues is None:
        return None
    rows = [port for node in queues.values() for port in node.values()]
    if any("drops" not in port for port in rows):
        return None
    ports = [port for node in content.get("ports", {}).values() for port in node.values()]
    dropped = (port.get(name, 0) for port in ports for name in ("out_dropped", "out_other_dropped"))
    return sum(int(port["drops"]) for port in rows) + sum(map(int, dropped))


def _paused_ports(content: Mapping[str, Any]) -> Iterator[PausedPort]:
    for node in content.get("queues", {}).values():
        for port in node.values():
            if "pauses" in port and "paused_ns" in port:
                yield PausedPort(port["pauses"], port["paused_ns"])


def _books(content: Mapping[str, Any], hosts: Mapping[str, Mapping[str, int]]) -> Books | None:
    """Absent counts stay absent; the conservation check notices."""
    if "ports" not in content:
        return None
    ports = {(node, port): figures for node, rows in content["ports"].items() for port, figures in rows.items()}
    return Books(ports, _all_host_books(content, hosts))


def _frame_books(content: Mapping[str, Any], hosts: Mapping[str, Mapping[str, int]]) -> FrameBooks | None:
    if "frames" not in content:
        return None
    queues = content.get("queues", {})
    ports = {
        (node, port): {**queues.get(node, {}).get(port, {}), **figures}
        for node, rows in content["frames"].items()
        for port, figures in rows.items()
    }
    nodes = {
        node: {name: content[name][node] for name in _PER_NODE if node in content.get(name, {})}
        for node in content["frames"]
    }
    return FrameBooks(ports, nodes, _all_host_books(content, hosts))


def _all_host_books(content: Mapping[str, Any], hosts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    losses = content.get("socket_losses", {})
    return {host: _host_books(counters, losses.get(host)) for host, counters in hosts.items()}


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
