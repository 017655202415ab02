"""Every count a RoCE-like endpoint keeps, by names of `mrc_testbed.hosts.mrc.counters` where they mean the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from mrc_testbed.hosts.common.bth import Refusal
from mrc_testbed.hosts.common.counting import Counted
from mrc_testbed.hosts.rc.reasons import RcIgnored


def _per_refusal() -> dict[Enum, int]:
    return {**dict.fromkeys(Refusal, 0), **dict.fromkeys(RcIgnored, 0)}


@dataclass(slots=True)
class RcCounters(Counted):
    """Counts since the endpoint was made, packets unless the name says otherwise."""

    data_sent: int = 0
    """Retransmissions included."""
    data_received: int = 0
    """Each PSN once."""
    reordered: int = 0
    """PSNs that came for the first time after a higher one (RFC 4737, Type-P-Reordered): overtaken, or lost and sent
    again, which these packets do not say."""
    bytes_sent: int = 0
    """Payload of data packets, retransmissions included."""
    bytes_delivered: int = 0
    """Payload of data packets received, each PSN once."""
    retransmitted: int = 0
    acks_sent: int = 0
    acks_received: int = 0
    nacks_sent: int = 0
    """NAKs of a gap (syndrome 0x60), which ask for packets again."""
    nacks_received: int = 0
    naks_sent: int = 0
    """NAKs that end a QP."""
    naks_received: int = 0
    duplicates: int = 0
    out_of_order: int = 0
    """Data packets that came before one of a lower PSN. Go-back-N drops them."""
    marked_received: int = 0
    """Data packets with a CE mark."""
    cnps_sent: int = 0
    cnps_received: int = 0
    rate_cuts: int = 0
    go_backs: int = 0
    """Times a QP began again with its oldest packet that is not acknowledged."""
    timeouts: int = 0
    """Times the retry counter of a QP went on."""
    resend_timeouts: int = 0
    """Timeouts of selective recovery, which its retry counter does not count."""
    plane_probes_sent: int = 0
    planes_left: int = 0
    """Times a plane to a host failed, for all QPs that spread over planes together."""
    planes_back: int = 0
    """Times one was used again."""
    control_dropped: int = 0
    """Control packets that found the queue for them full."""
    qp_errors: int = 0
    ports_failed: int = 0
    """Times that failover took a port of a QP out of use, or that a retry of operations held a QP."""
    ports_returned: int = 0
    """Times that such a port came back."""
    parts_replayed: int = 0
    """Parts of writes that were sent again, because the peer did not have them when a port failed."""
    immediates: int = 0
    """Immediates received, each once."""
    wimm_delivered: int = 0
    """Immediates handed to the application, in order."""
    messages_posted: int = 0
    messages_completed: int = 0
    refused: dict[Enum, int] = field(default_factory=_per_refusal)
    """Packets received that had no effect."""

    def refuse(self, reason: Enum) -> None:
        """Count one packet that had no effect."""
        self.refused[reason] += 1
