"""Every count an endpoint keeps. Plain attributes, because the hot path increments them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from mrc_testbed.hosts.common.bth import Refusal
from mrc_testbed.hosts.common.counting import Counted
from mrc_testbed.hosts.mrc.reasons import Ignored, LossReason


def _per_loss() -> dict[Enum, int]:
    return dict.fromkeys(LossReason, 0)


def _per_refusal() -> dict[Enum, int]:
    return {**dict.fromkeys(Refusal, 0), **dict.fromkeys(Ignored, 0)}


@dataclass(slots=True)
class Counters(Counted):
    """Counts since the endpoint was made, packets unless the name says otherwise."""

    data_sent: int = 0
    """Retransmissions included."""
    data_received: int = 0
    """Each PSN once."""
    reordered: int = 0
    """Those among them that came after one of a higher PSN, retransmissions left out (RFC 4737,
    Type-P-Reordered)."""
    bytes_sent: int = 0
    """Payload of data packets, retransmissions included."""
    bytes_delivered: int = 0
    """Data placed into regions of this host, each PSN once."""
    data_on_bad_ev: int = 0
    """Data packets sent on an EV that was ASSUMED_BAD or DENIED. Must stay 0."""
    data_on_skip_ev: int = 0
    """Data packets sent on an EV in SKIP because its plane had no GOOD one."""
    retransmitted: int = 0
    sacks_sent: int = 0
    sacks_received: int = 0
    sacks_with_ce: int = 0
    nacks_sent: int = 0
    nacks_received: int = 0
    acks_sent: int = 0
    acks_received: int = 0
    naks_sent: int = 0
    naks_received: int = 0
    duplicates: int = 0
    trimmed_received: int = 0
    timeouts: int = 0
    """Times the retry counter of a QP went on."""
    evs_skipped: int = 0
    """Times an EV went to SKIP."""
    floor_held: int = 0
    """Losses that did not retire their EV because too few of its plane were left."""
    evs_retired: int = 0
    evs_restored: int = 0
    probes_sent: int = 0
    """EV probes."""
    reverse_probes_sent: int = 0
    """Those among them that keep the way back alive."""
    probes_answered: int = 0
    probe_responses_sent: int = 0
    control_dropped: int = 0
    """Control packets that found the queue for them full, see `mrc_testbed.hosts.mrc.context.CONTROL_ROOM`."""
    port_updates_sent: int = 0
    """Port Status Updates."""
    port_updates_received: int = 0
    reliability_probes_sent: int = 0
    suspect_probes_sent: int = 0
    """Those among them that wait with the data, on the EV of the oldest missing packet, and EV probes that do."""
    suspect_probes_received: int = 0
    """Those of a peer."""
    reliability_probes_answered: int = 0
    qp_errors: int = 0
    immediates: int = 0
    """Immediates received."""
    wimm_delivered: int = 0
    """Immediates handed to the application, in order; the difference waits in the stash."""
    messages_posted: int = 0
    messages_completed: int = 0
    lost: dict[Enum, int] = field(default_factory=_per_loss)
    """Packets taken for lost."""
    retransmitted_for: dict[Enum, int] = field(default_factory=_per_loss)
    refused: dict[Enum, int] = field(default_factory=_per_refusal)
    """Packets received that had no effect."""

    def refuse(self, reason: Enum) -> None:
        """Count one packet that had no effect."""
        self.refused[reason] += 1
