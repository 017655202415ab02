"""samples.csv as charts need it: what NIC ports received over time, and where the kernel dropped. Reads the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from testbed.rundir.tables import SAMPLES, Sample
from topos.names import parse_host

_FIELDS = len(Sample._fields)
_TIME, _NODE, _PORT, _RECEIVED = map(Sample._fields.index, ("t_ns", "node", "port", "rx_bytes"))
_RX_DROPS, _TX_DROPS = map(Sample._fields.index, ("rx_drops", "tx_drops"))


@dataclass(slots=True)
class PortSamples:
    """`times_ns`: when ports were read, all at once. `received`: by host and port, the bytes received up to each of
    these times. `drops`: time, node, port and how many packets interfaces had dropped by then, only where they did."""

    times_ns: list[int] = field(default_factory=list)
    received: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    drops: list[tuple[int, str, str, int]] = field(default_factory=list)


def read_samples(folder: Path) -> PortSamples:
    """An hour of them is 100 MB and more: it is read line by line. Empty where there is no such file."""
    try:
        with (folder / SAMPLES.file).open(encoding="utf-8", errors="replace") as file:
            next(file, "")
            return _gathered(_rows(file))
    except FileNotFoundError:
        return PortSamples()


Row = tuple[int, str, str, int, int]


def _rows(lines: Iterable[str]) -> Iterator[Row]:
    """Time, node, port, bytes received and packets dropped. A line that a kill tore ends them."""
    for line in lines:
        cells = line.split(",")
        if len(cells) != _FIELDS or not line.endswith("\n"):
            return
        drops = int(cells[_RX_DROPS]) + int(cells[_TX_DROPS])
        yield int(cells[_TIME]), cells[_NODE], cells[_PORT], int(cells[_RECEIVED]), drops


def _gathered(rows: Iterable[Row]) -> PortSamples:
    found = PortSamples()
    hosts: dict[str, bool] = {}
    dropped: dict[tuple[str, str], int] = {}
    for t_ns, node, port, received, drops in rows:
        if not found.times_ns or found.times_ns[-1] != t_ns:
            found.times_ns.append(t_ns)
        if node not in hosts:
            hosts[node] = parse_host(node) is not None
        if hosts[node]:
            found.received.setdefault((node, port), []).append(received)
        if drops != dropped.get((node, port), 0):
            dropped[node, port] = drops
            found.drops.append((t_ns, node, port, drops))
    return _whole(found)


def _whole(found: PortSamples) -> PortSamples:
    """Without a last reading that lacks ports."""
    least = min(map(len, found.received.values()), default=0)
    del found.times_ns[least:]
    for readings in found.received.values():
        del readings[least:]
    return found
