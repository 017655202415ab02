"""How long a synchronous job stands still when a path under it fails, by what brings the traffic onto another path."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.planner.numbers import MarkedNumber


@dataclass(frozen=True, slots=True)
class PathRecovery:
    """`name`: a transport, a routing, a timer. `stall`: of the whole job for one failed path, in s: one slow transfer
    holds up the step of all."""

    name: str
    stall: MarkedNumber
