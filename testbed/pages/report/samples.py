"""samples.csv as charts need it: what NIC ports received over time, and where the kernel dropped. Reads the file."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mrc_testbed.testbed.rundir.files import RecordError, line_blocks
from mrc_testbed.testbed.rundir.tables import SAMPLES, Sample
from mrc_testbed.topos.names import parse_host

_TIME, _NODE, _PORT, _RECEIVED = map(Sample._fields.index, ("t_ns", "node", "port", "rx_bytes"))
_RX_DROPS, _TX_DROPS = map(Sample._fields.index, ("rx_drops", "tx_drops"))
_HEADER = Sample._fields[_TIME].encode()
_LIKE_A_HOST = b",h"
"""In every line of a host, and seldom in others."""


@dataclass(slots=True)
class PortSamples:
    """`times_ns`: when ports were read, all at once. `received`: by host and port, the bytes received up to each of
    these times. `drops`: time, node, port and how many packets interfaces had dropped by then, only where they did."""

    times_ns: list[int] = field(default_factory=list)
    received: dict[tuple[str, str], array[int]] = field(default_factory=dict)
    drops: list[tuple[int, str, str, int]] = field(default_factory=list)


def read_samples(folder: Path, drops_apart_ns: float = 0) -> PortSamples:
    """An hour of them is 100 MB to 1 GB: it is read block by block. `drops_apart_ns`: drops, which only grow, are not
    looked for more often. Empty where there is no such file. Raises RecordError."""
    path = folder / SAMPLES.file
    reader = _Reader()
    next_ns, t_ns = 0.0, 0
    lines: list[bytes] = []
    try:
        for t_ns, lines in _moments(path):
            reader.take_received(t_ns, lines)
            if t_ns >= next_ns:
                next_ns = t_ns + drops_apart_ns
                reader.take_drops(t_ns, lines)
        reader.take_drops(t_ns, lines)
    except (ValueError, OverflowError) as error:
        raise RecordError(path, f"a line is not what it should be: {error}") from None
    return _whole(reader.found)


def _moments(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """The whole lines of each moment, which follow each other. Raises RecordError, ValueError."""
    lines: list[bytes] = []
    for block in line_blocks(path):
        lines += block[1:] if block[0].removeprefix(BOM_UTF8).startswith(_HEADER) else block
        begin = 0
        while begin < len(lines):
            t_ns = _time(lines[begin])
            end = bisect_right(lines, t_ns, begin, key=_time)
            if end == len(lines):  # more of them may follow
                break
            yield t_ns, lines[begin:end]
            begin = end
        del lines[:begin]
    if whole := [line for line in lines if line.endswith(b"\n")]:  # a kill may have torn the last one
        yield _time(whole[0]), whole


def _time(line: bytes) -> int:
    return int(line.partition(b",")[_TIME])


class _Reader:
    """What was read so far."""

    def __init__(self) -> None:
        self.found = PortSamples()
        self._hosts: dict[tuple[bytes, bytes], array[int] | None] = {}
        self._dropped: dict[tuple[bytes, bytes], int] = {}

    def take_received(self, t_ns: int, lines: list[bytes]) -> None:
        """By NIC ports. Raises ValueError."""
        self.found.times_ns.append(t_ns)
        hosts = self._hosts
        for line in lines:
            if _LIKE_A_HOST in line:
                _, node, port, received, _ = line.split(b",", _RECEIVED + 1)
                if (node, port) not in hosts:
                    hosts[node, port] = self._line_of(node.decode(errors="replace"), port.decode(errors="replace"))
                if (readings := hosts[node, port]) is not None:
                    readings.append(int(received))

    def _line_of(self, node: str, port: str) -> array[int] | None:
        return None if parse_host(node) is None else self.found.received.setdefault((node, port), array("q"))

    def take_drops(self, t_ns: int, lines: list[bytes]) -> None:
        """By all ports where there are more than before. Raises ValueError."""
        for line in lines:
            cells = line.split(b",")
            if len(cells) != len(Sample._fields):
                raise ValueError(line.decode(errors="replace"))
            drops = int(cells[_RX_DROPS]) + int(cells[_TX_DROPS])
            key = cells[_NODE], cells[_PORT]
            if drops != self._dropped.get(key, 0):
                self._dropped[key] = drops
                node, port = (name.decode(errors="replace") for name in key)
                self.found.drops.append((t_ns, node, port, drops))


def _whole(found: PortSamples) -> PortSamples:
    """Without a last reading that lacks ports."""
    least = min(map(len, found.received.values()), default=0)
    del found.times_ns[least:]
    for readings in found.received.values():
        del readings[least:]
    return found
