"""Every count an endpoint keeps. Plain attributes, because the hot path increments them."""

from __future__ import annotations

from enum import Enum

from hosts.core.reasons import Ignored, LossReason
from hosts.wire import Refusal

_PLAIN = (
    "data_sent",
    "data_received",
    "data_bytes_sent",
    "data_on_bad_ev",
    "retransmitted",
    "sacks_sent",
    "sacks_received",
    "sacks_with_ce",
    "nacks_sent",
    "nacks_received",
    "acks_sent",
    "acks_received",
    "naks_sent",
    "naks_received",
    "duplicates",
    "trimmed_received",
    "timeouts",
    "evs_retired",
    "evs_restored",
    "probes_sent",
    "probes_answered",
    "probe_responses_sent",
    "reliability_probes_sent",
    "reliability_probes_answered",
    "qp_errors",
    "immediates",
    "wimm_delivered",
    "messages_posted",
    "messages_completed",
)


class Counters:
    """Counts since the endpoint was made; `as_dict` flattens them, reasons as `refused_x`, `lost_x`, ..."""

    __slots__ = (*_PLAIN, "lost", "refused", "retransmitted_for")

    # mypy needs the names spelt out; the tuple above is what __slots__ and as_dict use.
    data_sent: int
    data_received: int
    data_bytes_sent: int
    data_on_bad_ev: int
    retransmitted: int
    sacks_sent: int
    sacks_received: int
    sacks_with_ce: int
    nacks_sent: int
    nacks_received: int
    acks_sent: int
    acks_received: int
    naks_sent: int
    naks_received: int
    duplicates: int
    trimmed_received: int
    timeouts: int
    evs_retired: int
    evs_restored: int
    probes_sent: int
    probes_answered: int
    probe_responses_sent: int
    reliability_probes_sent: int
    reliability_probes_answered: int
    qp_errors: int
    immediates: int
    wimm_delivered: int
    messages_posted: int
    messages_completed: int

    def __init__(self) -> None:
        for name in _PLAIN:
            setattr(self, name, 0)
        self.lost: dict[Enum, int] = dict.fromkeys(LossReason, 0)
        self.retransmitted_for: dict[Enum, int] = dict.fromkeys(LossReason, 0)
        self.refused: dict[Enum, int] = {**dict.fromkeys(Refusal, 0), **dict.fromkeys(Ignored, 0)}

    def refuse(self, reason: Enum) -> None:
        """Count one packet that had no effect."""
        self.refused[reason] += 1

    def as_dict(self) -> dict[str, int]:
        """Flat copy."""
        flat = {name: getattr(self, name) for name in _PLAIN}
        for prefix, table in (
            ("lost", self.lost),
            ("retransmitted", self.retransmitted_for),
            ("refused", self.refused),
        ):
            flat |= {f"{prefix}_{reason.value}": count for reason, count in table.items()}
        return flat
