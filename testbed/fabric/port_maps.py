"""The port program's maps in Python: layouts, and memory shared with the program.

Writing a value takes microseconds and no system call. The layouts are those of bpf/port.bpf.c.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from typing import NamedTuple

from testbed.fabric.thresholds import PortLevels

PORT = struct.Struct("7Q")
QUEUE = struct.Struct("2Q")
COUNTS = struct.Struct("32Q")
RULE = struct.Struct("6IQ")
RULES = 8
"""Rules that a port can hold at once."""
RULES_BYTES = 8 + RULES * RULE.size
VALUE_BYTES = {
    "ports": PORT.size,
    "queues": QUEUE.size,
    "egress_counts": COUNTS.size,
    "ingress_counts": COUNTS.size,
    "port_rules": RULES_BYTES,
}
COST_SHIFT = 20
LAST_HOP = 1
_WORD = struct.Struct("Q")
_NS_BITS = 8 * 10**9
_CLASSES = 4
_VERDICTS = 4
_DATA, _TRIMMED, _CONTROL, _OTHER = range(_CLASSES)
_PASSED, _CHANGED, _CUT, _DROPPED = range(_VERDICTS)
_VERDICT_COUNTS = struct.Struct("4Q")
"""The first of COUNTS: data, by decision."""


class SharedArray:
    """An array map in this process's memory."""

    def __init__(self, descriptor: int, entries: int, value_bytes: int) -> None:
        """Map it; takes over the descriptor."""
        self._step = -(-value_bytes // 8) * 8
        size = -(-entries * self._step // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            self.memory = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)

    def at(self, key: int) -> int:
        """Offset of the value of `key` in `memory`."""
        return key * self._step


def port_entry(levels: PortLevels, rate_bps: int, delay_ns: int) -> bytes:
    """A port's configuration: its levels as times at this rate, since the program keeps its queue in ns.

    `delay_ns`: what another qdisc of the port adds.
    """
    times = [level * _NS_BITS // rate_bps for level in (levels.ecn_low, levels.ecn_high, levels.trim, levels.drop)]
    return PORT.pack((_NS_BITS << COST_SHIFT) // rate_bps, *times, LAST_HOP if levels.last_hop else 0, delay_ns)


def queue_ns(queues: SharedArray, key: int) -> int:
    """Backlog of a port's virtual queue, in ns at its rate."""
    (free_at_ns,) = _WORD.unpack_from(queues.memory, queues.at(key))
    return max(0, int(free_at_ns) - time.monotonic_ns())


def stretch_queue(queues: SharedArray, key: int, old_bps: int, new_bps: int) -> None:
    """Rescale the queued bytes to another rate."""
    now = time.monotonic_ns()
    (free_at_ns,) = _WORD.unpack_from(queues.memory, queues.at(key))
    if free_at_ns > now:
        _WORD.pack_into(queues.memory, queues.at(key), now + (free_at_ns - now) * old_bps // new_bps)


@dataclass(frozen=True, slots=True)
class PortCounts:
    """What one port did to packets since the start, by class and decision; `out_` at egress, `in_` at ingress.

    Data are packets with payload of the transport, `trimmed` those a switch has cut, `control` those without payload
    (of MRC by their DSCP), `other` the rest: ping, multicast, and TCP in a fabric of SRv6. At egress of a switch port
    (that of a host counts nothing, all `out_` are 0): out_data = out_passed + out_trimmed + out_dropped, and out_marked
    is a part of out_passed. Of control packets only those of TCP wait with data and can be dropped with them
    (`out_control_dropped`, a part of `out_control`). At ingress, `in_X` is all that arrived of a class, `in_X_dropped`
    what rules dropped of it. Bytes are frames as they came to the port.
    """

    out_data: int
    out_passed: int
    out_marked: int
    out_trimmed: int
    out_dropped: int
    out_trimmed_through: int
    out_control: int
    out_control_dropped: int
    out_other: int
    out_other_marked: int
    out_other_dropped: int
    out_bytes: int
    out_dropped_bytes: int
    in_data: int
    in_trimmed: int
    in_control: int
    in_other: int
    in_data_dropped: int
    in_trimmed_dropped: int
    in_control_dropped: int
    in_other_dropped: int
    in_corrupted: int
    in_bytes: int
    in_dropped_bytes: int


def port_counts(egress: SharedArray, ingress: SharedArray, key: int) -> PortCounts:
    """The counts of a port now."""
    out = COUNTS.unpack_from(egress.memory, egress.at(key))
    into = COUNTS.unpack_from(ingress.memory, ingress.at(key))
    return PortCounts(*_egress(out), *_ingress(into))


class PortHits(NamedTuple):
    """Marked, trimmed, dropped, lost and corrupted packets of one port since the start; cheap to read.

    `marked`, `trimmed`, `dropped`: data packets at egress of a switch port; `lost`: packets of all classes that rules
    dropped at ingress; `corrupted`: data packets that rules changed at ingress.
    """

    marked: int
    trimmed: int
    dropped: int
    lost: int
    corrupted: int


def port_hits(egress: SharedArray, ingress: SharedArray, key: int) -> PortHits:
    """The hits of a port now, in 2 microseconds."""
    _, marked, trimmed, dropped = _VERDICT_COUNTS.unpack_from(egress.memory, egress.at(key))
    into = COUNTS.unpack_from(ingress.memory, ingress.at(key))
    lost = sum(into[_DROPPED : _CLASSES * _VERDICTS : _VERDICTS])
    return PortHits(marked, trimmed, dropped, lost, into[_CHANGED])


def _of(row: tuple[int, ...], kind: int) -> tuple[int, ...]:
    return row[kind * _VERDICTS : (kind + 1) * _VERDICTS]


def _bytes(row: tuple[int, ...]) -> tuple[int, int]:
    sizes = row[_CLASSES * _VERDICTS :]
    return sum(sizes), sum(sizes[_DROPPED::_VERDICTS])


def _egress(row: tuple[int, ...]) -> tuple[int, ...]:
    data, control, other = _of(row, _DATA), _of(row, _CONTROL), _of(row, _OTHER)
    return (
        sum(data),
        data[_PASSED] + data[_CHANGED],
        data[_CHANGED],
        data[_CUT],
        data[_DROPPED],
        sum(_of(row, _TRIMMED)),
        sum(control),
        control[_DROPPED],
        sum(other),
        other[_CHANGED],
        other[_DROPPED],
        *_bytes(row),
    )


def _ingress(row: tuple[int, ...]) -> tuple[int, ...]:
    kinds = [_of(row, kind) for kind in (_DATA, _TRIMMED, _CONTROL, _OTHER)]
    return (
        *(sum(kind) for kind in kinds),
        *(kind[_DROPPED] for kind in kinds),
        kinds[_DATA][_CHANGED],
        *_bytes(row),
    )


def write_rule(rules: SharedArray, key: int, slot: int, entry: bytes) -> None:
    """Fill an inactive slot, then activate it: the program may run at any moment in between."""
    start = rules.at(key)
    at = start + 8 + slot * RULE.size
    rules.memory[at : at + RULE.size] = entry
    (active,) = _WORD.unpack_from(rules.memory, start)
    _WORD.pack_into(rules.memory, start, active | 1 << slot)


def active_rules(rules: SharedArray, key: int) -> set[int]:
    """The active slots of a port."""
    (active,) = _WORD.unpack_from(rules.memory, rules.at(key))
    return {slot for slot in range(64) if active >> slot & 1}


def clear_rule(rules: SharedArray, key: int, slot: int) -> int:
    """Deactivate a slot. Returns how many packets it hit."""
    start = rules.at(key)
    (active,) = _WORD.unpack_from(rules.memory, start)
    _WORD.pack_into(rules.memory, start, active & ~(1 << slot))
    hits: int = RULE.unpack_from(rules.memory, start + 8 + slot * RULE.size)[-1]
    return hits
