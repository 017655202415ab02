"""Durations as recovery.json gives them: in ms, in base RTTs, and in packets at line rate. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.statistics import statistic


@dataclass(frozen=True, slots=True)
class MeasuredDuration:
    """A duration in ns, or the reason why it is unknown."""

    ns: float | None
    why: str = ""

    def as_dict(self, record: RunRecord) -> dict[str, Any]:
        """`packets`: full data packets that a host can send in that time with all its ports."""
        shape = record.scenario.shape()
        if self.ns is None:
            return {"ms": None, "rtt": None, "packets": None, "why": self.why}
        packets = self.ns * shape.planes * shape.port_rate_bps / (8e9 * shape.wire_bytes)
        rtts = round(self.ns / record.base_rtt_ns, 2) if record.base_rtt_ns else None
        why = {} if record.base_rtt_ns else {"why": "the base RTT was not measured in warm-up"}
        return {"ms": round(self.ns / 1e6, 3), "rtt": rtts, "packets": round(packets, 1), **why}


@dataclass(frozen=True, slots=True)
class Times:
    """Durations in ns, one per counted item; `why` there are none. `still_open`: what had not ended when the record
    did, so the longest of them is not known."""

    values: Sequence[float]
    why: str = ""
    still_open: str = ""

    @property
    def number(self) -> int:
        """How many."""
        return len(self.values)

    def figure(self, stat: str) -> MeasuredDuration:
        """One statistic; unknown, with the reason, if there are none, or for the longest while some have not ended."""
        if self.still_open and stat in ("max", "p100"):
            return MeasuredDuration(None, self.still_open)
        return MeasuredDuration(statistic(self.values, stat)) if self.values else MeasuredDuration(None, self.why)

    def as_dict(self, record: RunRecord, **stats: str) -> dict[str, Any]:
        """Their number, and statistics under the given names."""
        figures = {name: self.figure(stat).as_dict(record) for name, stat in stats.items()}
        return {"number": self.number, **figures}
