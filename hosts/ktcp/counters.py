"""Counts of an endpoint over kernel TCP: its own, and those of its connections as the kernel keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from mrc_testbed.hosts.common.figures import QpPackets
from mrc_testbed.hosts.ktcp.kernel import TcpInfo


@dataclass(slots=True)
class TcpCounters:
    """What the kernel does not count."""

    messages_posted: int = 0
    messages_completed: int = 0
    immediates: int = 0
    """Immediates received."""
    qp_errors: int = 0
    frames_refused: int = 0
    """Bytes that no endpoint of ours sends; each ends its connection."""
    strangers: int = 0
    """Connections that said hello for no QP of this host, or nothing."""
    dials: int = 0
    """Attempts to connect."""


def summed(counters: TcpCounters, connections: Iterable[TcpInfo]) -> dict[str, int]:
    """All counts, flat. `connections`: of all there ever were. Names as in hosts/mrc/counters.py where they mean the
    same; bytes include the headers of frames, on both sides of `bytes_sent` over `bytes_delivered`."""
    infos = list(connections)
    timeouts = [info.timeouts for info in infos if info.timeouts is not None]
    retransmitted = sum(info.retransmitted for info in infos)
    return {
        **asdict(counters),
        "data_sent": sum(info.data_sent for info in infos),
        "data_received": sum(info.data_received for info in infos),
        "bytes_sent": sum(info.bytes_sent for info in infos),
        "bytes_delivered": sum(info.bytes_received for info in infos),
        "retransmitted": retransmitted,
        "lost_retransmitted": retransmitted,
        **({"timeouts": sum(timeouts)} if len(timeouts) == len(infos) else {}),
    }


def packets_of(info: TcpInfo, before: QpPackets | None) -> QpPackets:
    """Of a QP with a connection more; TCP takes for lost what it sends again."""
    sent, lost = before or (0, 0)
    return QpPackets(sent + info.data_sent - info.retransmitted, lost + info.retransmitted)
