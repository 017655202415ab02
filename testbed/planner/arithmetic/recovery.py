"""The stall of a synchronous job when a path under it fails, by what brings the traffic onto another path."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber


@dataclass(frozen=True, slots=True)
class PathRecovery:
    """`name`: a transport, a routing, a timer. `stall`: of the whole job for one failed path, in s: one slow transfer
    holds up the step of all. `retries`: after how many s its NICs give up, which ends the job; None: never."""

    name: str
    stall: MarkedNumber
    retries: MarkedNumber | None = None

    @property
    def patience(self) -> tuple[float, float, float]:
        """Low end, value and high end of `retries`, in s."""
        retries = self.retries
        return (retries.low, retries.value, retries.high) if retries else (inf, inf, inf)

    @property
    def ends_job(self) -> bool:
        """Its NICs give up before the path is another."""
        return self.stall.value > self.patience[1]

    @property
    def may_end_job(self) -> bool:
        """The same where both are as bad as they may be."""
        return self.stall.high > self.patience[0]
