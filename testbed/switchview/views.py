"""The views of `show`: which counts of a switch they have, in columns called as operators know them. Pure.

Sources of the names: SONiC (doc/packet_trimming/packet-trimming-design.md, `show` of sonic-utilities) and SAI's
statistics. Data wait in queue UC3 and what goes before them in UC6: that choice is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mrc_testbed.testbed.switchview.reading import PortReading, SwitchReading

Cell = str | int | None
"""None: nobody knows."""
DATA_QUEUE, HIGH_QUEUE = "UC3", "UC6"
_OTHER = ("out_other", "out_other_dropped")


@dataclass(frozen=True, slots=True)
class SwitchTable:
    """A view of one switch: its columns and rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def _less(whole: int | None, *parts: int | None) -> int | None:
    if whole is None:
        return None
    known = [part for part in parts if part is not None]
    return whole - sum(known) if len(known) == len(parts) else None


def _plus(*parts: int | None) -> int | None:
    return _sum(parts)


def _sum(parts: Iterable[int | None]) -> int | None:
    parts = tuple(parts)
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _srv6_stats(reading: SwitchReading) -> Iterator[tuple[Cell, ...]]:
    if reading.sid is None:
        return
    for sid, counts in (reading.sids or {}).items():
        yield sid, counts.packets, counts.bytes
    if not reading.sids:
        yield reading.sid, None, None
    yield "no SID, dropped", reading.no_sid, None


def _static_sids(reading: SwitchReading) -> Iterator[tuple[Cell, ...]]:
    if reading.sid is not None:
        yield reading.sid, reading.switch, "uN", None, None, None


def _interfaces(reading: SwitchReading) -> Iterator[tuple[Cell, ...]]:
    for port in reading.ports:
        counts = (port.sum(f"{way}_{what}") for way in ("rx", "tx") for what in ("packets", "bytes", "drops"))
        yield port.name, port.peer, *counts


def _trimmed(port: PortReading) -> tuple[int | None, int | None, int | None]:
    """Trimmed here, of these sent, of these dropped: whose share of drops in the high queue that was, nobody counts."""
    trimmed, drops = port.sum("out_trimmed"), port.sum("queue_drops_high")
    if trimmed is None or drops is None:
        return trimmed, None, None
    return (trimmed, trimmed, 0) if not trimmed or not drops else (trimmed, None, None)


def _interfaces_trim(reading: SwitchReading) -> Iterator[tuple[Cell, ...]]:
    for port in reading.ports:
        yield port.name, port.peer, *_trimmed(port)


def _queues(reading: SwitchReading) -> Iterator[tuple[Cell, ...]]:
    cut = ("out_trimmed", "out_trimmed_through")
    first = reading.trimming is None or reading.trimming.first
    for port in reading.ports:
        other = _less(*(port.sum(name) for name in _OTHER))
        headers = port.sum(*cut)
        with_data = 0 if first else _less(headers, port.sum("out_trimmed_dropped"))
        data = _less(_plus(port.sum("out_passed"), other, with_data), port.sum("queue_drops_data"))
        before = port.sum("out_control") if not first else _plus(port.sum("out_control"), headers)
        drops = port.sum("out_dropped", "out_other_dropped", "queue_drops_data")
        yield port.name, DATA_QUEUE, data, drops, port.sum("out_marked", "out_other_marked")
        high_drops = port.sum("queue_drops_high")
        yield port.name, HIGH_QUEUE, _less(before, high_drops), high_drops, 0 if before is not None else None


def _queues_trim(reading: SwitchReading) -> Iterator[tuple[Cell, ...]]:
    for port in reading.ports:
        yield port.name, DATA_QUEUE, *_trimmed(port)


def _watermarks(reading: SwitchReading) -> Iterator[tuple[Cell, ...]]:
    for port in reading.ports:
        yield port.name, port.peer, port.sum("most_queued_bytes")


def _trimming(reading: SwitchReading) -> Iterator[tuple[Cell, ...]]:
    rules = reading.trimming
    yield "Packet trimming size", None if rules is None else str(rules.size_bytes or "all headers")
    yield "Packet trimming DSCP value", None if rules is None else str(rules.dscp)
    yield "Packet trimming DSCP value, port to a host", None if rules is None else str(rules.dscp_last_hop)
    yield "Packet trimming queue", None if rules is None else (HIGH_QUEUE if rules.first else DATA_QUEUE)


def _switch_counters(reading: SwitchReading) -> Iterator[tuple[Cell, ...]]:
    cells = [_trimmed(port) for port in reading.ports]
    yield tuple(map(_sum, zip(*cells, strict=True)))


@dataclass(frozen=True, slots=True)
class SwitchView:
    """One view: what it shows, its columns, its rows. `of_trimming`: only where switches can trim."""

    shows: str
    columns: tuple[str, ...]
    rows: Callable[[SwitchReading], Iterator[tuple[Cell, ...]]]

    def table(self, reading: SwitchReading) -> SwitchTable:
        """The view of a switch."""
        return SwitchTable(self.columns, tuple(self.rows(reading)))


_TRIM = ("TRIM_PKTS", "TRIM_TX_PKTS", "TRIM_DRP_PKTS")
VIEWS: Mapping[str, SwitchView] = {
    "srv6 stats": SwitchView("packets by uSID, and those without one", ("MySID", "Packets", "Bytes"), _srv6_stats),
    "srv6 static-sids": SwitchView(
        "the uSID of the switch and what it does",
        ("SID", "Locator", "Action", "Decap DSCP Mode", "Decap VRF", "Offloaded"),
        _static_sids,
    ),
    "interfaces counters": SwitchView(
        "frames of each port",
        ("IFACE", "PEER", "RX_OK", "RX_BYTES", "RX_DRP", "TX_OK", "TX_BYTES", "TX_DRP"),
        _interfaces,
    ),
    "interfaces counters trim": SwitchView("trimmed packets of each port", ("IFACE", "PEER", *_TRIM), _interfaces_trim),
    "queue counters": SwitchView(
        "packets of each queue", ("Port", "TxQ", "Counter/pkts", "Drop/pkts", "EcnMarked/pkts"), _queues
    ),
    "queue counters trim": SwitchView("trimmed packets of each queue", ("Port", "TxQ", *_TRIM), _queues_trim),
    "queue watermark": SwitchView("the longest queue of each port", ("Port", "PEER", "Bytes"), _watermarks),
    "switch counters": SwitchView("trimmed packets of the switch", _TRIM, _switch_counters),
    "switch-trimming global": SwitchView("how packets are trimmed", ("Configuration", "Value"), _trimming),
}
"""By the words after `show`."""
