"""What a port counts: by class of packet and by what was done to it, and what a person is told of that. Pure.

Both worlds count in rows of this layout: the port program in shared memory (port_maps.py), virtual ports in lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

CLASSES = 4
VERDICTS = 4
DATA = 0
TRIMMED = 1
CONTROL = 2
OTHER = 3
PASSED = 0
CHANGED = 1
"""Marked at egress, corrupted at ingress."""
CUT = 2
DROPPED = 3
COUNTS = 2 * CLASSES * VERDICTS
"""Length of a row: packets by class and verdict, then their bytes."""


@dataclass(frozen=True, slots=True)
class PortCounts:
    """What one port did to packets since the start, by class and decision; `out_` at egress, `in_` at ingress.

    Data are packets with payload of the transport, `trimmed` those a switch has cut, `control` those without payload
    (of MRC by their DSCP), `other` the rest: ping, multicast, and TCP in a fabric of SRv6. At egress of a switch port
    (that of a host counts nothing, all `out_` are 0): out_data = out_passed + out_trimmed + out_dropped, and out_marked
    is a part of out_passed. Packets that were trimmed before can be dropped only where they wait with data
    (`out_trimmed_dropped`, a part of `out_trimmed_through`). Of control packets only those of TCP wait with data and
    can be dropped with them (`out_control_dropped`, a part of `out_control`). At ingress, `in_X` is all that arrived of
    a class, `in_X_dropped` what rules dropped of it. Bytes are frames as they came to the port.
    """

    out_data: int
    out_passed: int
    out_marked: int
    out_trimmed: int
    out_dropped: int
    out_trimmed_through: int
    out_trimmed_dropped: int
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


def counts_of(egress: Sequence[int], ingress: Sequence[int]) -> PortCounts:
    """The counts that two rows hold."""
    return PortCounts(*_egress(egress), *_ingress(ingress))


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


def hits_of(egress: Sequence[int], ingress: Sequence[int]) -> PortHits:
    """The hits that two rows hold; the first VERDICTS of `egress` are enough."""
    lost = sum(ingress[DROPPED : CLASSES * VERDICTS : VERDICTS])
    return PortHits(egress[CHANGED], egress[CUT], egress[DROPPED], lost, ingress[CHANGED])


class LateArrivals(NamedTuple):
    """Packets that came in at one port long after their last bit had left a link without credit: the kernel had them
    for so long. `most_ns`: the latest."""

    packets: int
    most_ns: int


def _of(row: Sequence[int], kind: int) -> Sequence[int]:
    return row[kind * VERDICTS : (kind + 1) * VERDICTS]


def _bytes(row: Sequence[int]) -> tuple[int, int]:
    sizes = row[CLASSES * VERDICTS :]
    return sum(sizes), sum(sizes[DROPPED::VERDICTS])


def _egress(row: Sequence[int]) -> tuple[int, ...]:
    data, trimmed, control, other = (_of(row, kind) for kind in (DATA, TRIMMED, CONTROL, OTHER))
    return (
        sum(data),
        data[PASSED] + data[CHANGED],
        data[CHANGED],
        data[CUT],
        data[DROPPED],
        sum(trimmed),
        trimmed[DROPPED],
        sum(control),
        control[DROPPED],
        sum(other),
        other[CHANGED],
        other[DROPPED],
        *_bytes(row),
    )


def _ingress(row: Sequence[int]) -> tuple[int, ...]:
    kinds = [_of(row, kind) for kind in (DATA, TRIMMED, CONTROL, OTHER)]
    return (
        *(sum(kind) for kind in kinds),
        *(kind[DROPPED] for kind in kinds),
        kinds[DATA][CHANGED],
        *_bytes(row),
    )


class SidCounts(NamedTuple):
    """Packets and bytes that one uSID of a node has taken, since its route was written."""

    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class IpCounts:
    """What the kernel of a node says and hears by itself: ICMPv6 packets to a single node that it took in and sent out,
    and what it sent as `multicast`, by port."""

    icmp_in: int
    icmp_out: int
    multicast: Mapping[str, int]
