"""counters.json: counts of endpoints, ports and queues. Only valid counts pass; absent ones stay absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.checks.conservation import Books
from testbed.rundir.files import RecordError, read_json
from testbed.scenario.transports import TransportKind

_DEPTHS = {"queues": 3, "ports": 3, "socket_losses": 1}
"""Number of keys above a count: node, port and name, or the node alone."""


@dataclass(frozen=True, slots=True)
class QpCount:
    """One end of a QP: data packets `sent` for the first time (0: this end sends none) and declared `lost`."""

    peer: str
    sent: int
    lost: int


@dataclass(frozen=True, slots=True)
class Counts:
    """`hosts`: the counters of each endpoint; `qps`: by host and name, where counted.

    `queue_drops`: None if queues were not read; `books`: the counts for the conservation check.
    """

    hosts: Mapping[str, Mapping[str, int]]
    qps: Mapping[str, Mapping[str, QpCount]]
    queue_drops: int | None
    books: Books | None

    def books_of(self, transport: str) -> Books | None:
        """The books without what hosts do not count: the packets of kernel TCP."""
        return replace(self.books, hosts=None) if self.books and transport == TransportKind.TCP else self.books


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
    return Counts(hosts, qps, _queue_drops(content), _books(content, hosts))


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


def _books(content: Mapping[str, Any], hosts: Mapping[str, Mapping[str, int]]) -> Books | None:
    """Absent counts stay absent; the conservation check notices."""
    if "ports" not in content:
        return None
    losses = content.get("socket_losses", {})
    ports = {(node, port): figures for node, rows in content["ports"].items() for port, figures in rows.items()}
    return Books(ports, {host: _host_books(counters, losses.get(host)) for host, counters in hosts.items()})


def _host_books(counters: Mapping[str, int], socket_losses: int | None) -> dict[str, int]:
    errors = [count for name, count in counters.items() if name.startswith("send_lost_")]
    data = counters.get("data_sent")
    books = {
        # A probe that waits with the data is data to a switch.
        "data_sent": None if data is None else data + counters.get("suspect_probes_sent", 0),
        "packets_out": counters.get("packets_out"),
        "packets_in": counters.get("packets_in"),
        "send_errors": sum(errors),
        "strangers": counters.get("unknown_source"),
        "socket_drops": socket_losses,
    }
    return {name: count for name, count in books.items() if count is not None}
