"""JSON files of a run as table rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mrc_testbed.testbed.rundir.snapshot_lines import SnapshotReader

DocumentRow = dict[str, Any]


def recovery_rows(document: Mapping[str, Any]) -> Iterator[DocumentRow]:
    """A row per cycle, with nested keys flattened: `first_loss_ms`, `after_heal_evs_restored_first_ms`."""
    for occurrence in document.get("cycles", ()):
        yield dict(_flat(occurrence))


def _flat(values: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}_")
        else:
            yield f"{above}{name}", value


def history_rows(lines: Iterable[DocumentRow]) -> Iterator[DocumentRow]:
    """Lists of names as text."""
    for line in lines:
        yield {key: ", ".join(value) if isinstance(value, list) else value for key, value in line.items()}


def snapshot_rows(lines: Iterable[DocumentRow]) -> Iterator[tuple[tuple[int, str], Mapping[str, int]]]:
    """(time, host) and the endpoint's counters, of lines in the order of their file."""
    reader = SnapshotReader()
    for line in map(reader.whole, lines):
        yield (line["t_ns"], line["host"]), line["counters"]


def counter_rows(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str], Mapping[str, int]]]:
    """(host,) and the endpoint's counters."""
    for host, figures in document.get("hosts", {}).items():
        yield (host,), figures["counters"]


def port_rows(document: Mapping[str, Any], name: str) -> Iterator[DocumentRow]:
    """A row per port, from `ports` or `queues`."""
    for node, ports in document.get(name, {}).items():
        for port, counts in ports.items():
            yield {"node": node, "port": port, **counts}


def qp_rows(document: Mapping[str, Any]) -> Iterator[DocumentRow]:
    """A row per end of a QP."""
    for host, figures in document.get("hosts", {}).items():
        for qp, counts in figures.get("qps", {}).items():
            yield {"host": host, "qp": qp, **counts}


def path_rows(document: Mapping[str, Any]) -> Iterator[DocumentRow]:
    """A row per path of a sender."""
    for host, figures in document.get("hosts", {}).items():
        for peer, paths in figures.get("paths", {}).items():
            for path, packets in paths.items():
                plane, _, uplink = path.partition("/")
                yield {"host": host, "peer": peer, "plane": int(plane), "uplink": int(uplink), "packets": packets}
