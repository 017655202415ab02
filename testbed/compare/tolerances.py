"""How far virtual time may be from the kernel, figure by figure, and why so far. Pure.

The kernel alone has a spread: the same scenario with the same seed, run three times. Virtual time has none. A tolerance
is a little more than that spread, so that what lies beyond it is a defect of one of the worlds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The greatest difference that still agrees: the greatest of the three parts.

    `share` of the greater value, `least` in base units (of figures in RTT: RTTs), and `deviations` standard deviations
    of the difference of two counts of independent events. `why`: the reason, for people.
    """

    why: str
    share: float = 0.0
    least: float = 0.0
    deviations: float = 0.0

    def allowed(self, kernel: float, virtual: float) -> float:
        """The greatest difference, in the unit of both values."""
        return max(
            self.share * max(kernel, virtual),
            self.least,
            self.deviations * sqrt(kernel + virtual) if self.deviations else 0.0,
        )

    def holds(self, kernel: float, virtual: float) -> bool:
        """Do these two values agree?"""
        return abs(virtual - kernel) <= self.allowed(kernel, virtual)
