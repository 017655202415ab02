"""What every kind of endpoint tells of its QPs and paths when asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple


@dataclass(frozen=True, slots=True)
class PathReport:
    """What a warm-up has shown about the way to one peer. Paths are (plane, uplink)."""

    answered: list[tuple[int, int]]
    silent: list[tuple[int, int]]
    rtt_ns: int | None
    """Smallest round trip seen to this peer, None before the first."""
    silent_qps: list[int] = field(default_factory=list)
    """Where the network chooses paths: the QPs, by number, over which nothing has been answered yet."""


class QpFlow(NamedTuple):
    """What switches hash of the packets that one end of a QP sends: protocol and ports, and the plane, which means
    both addresses."""

    plane: int
    protocol: Literal["udp", "tcp"]
    source_port: int
    destination_port: int


class QpPackets(NamedTuple):
    """Data packets of one QP: sent once, retransmissions aside, and taken for lost, each time it happened."""

    sent: int
    lost: int
