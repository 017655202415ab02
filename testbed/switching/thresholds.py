"""Levels at which a port marks, trims and drops: in plane-BDP, and converted to bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

NEVER = 1 << 40
"""A level that no queue reaches."""
ALWAYS = -1
"""A level that every queue is above, an empty one too."""


@dataclass(frozen=True, slots=True)
class PortThresholds:
    """Levels of a port's queue in plane-BDP, T x port rate (docs/switch.md, "The virtual queue").

    Between `ecn_low` and `ecn_high` the chance of a CE mark grows from 0 to 1; ports towards hosts never mark. Above
    `trim` (`trim_last_hop` towards hosts) a trimmable packet loses its payload, above `drop` data is dropped. Raises
    ValueError if the levels are not in this order.
    """

    ecn_low: float = 0.2
    ecn_high: float = 0.8
    trim: float = 1.0
    trim_last_hop: float = 1.5
    drop: float = 3.0

    def __post_init__(self) -> None:
        for trim in (self.trim, self.trim_last_hop):
            if not 0 <= self.ecn_low <= self.ecn_high <= self.drop or not 0 < trim <= self.drop:
                raise ValueError(f"port thresholds must grow from ecn_low to drop: {self}")

    def in_bytes(self, bdp_bytes: int, last_hop: bool) -> PortLevels:
        """The levels of a port whose plane-BDP is `bdp_bytes`; `last_hop` for a port towards a host."""
        low, high = (NEVER, NEVER) if last_hop else (int(self.ecn_low * bdp_bytes), int(self.ecn_high * bdp_bytes))
        trim = self.trim_last_hop if last_hop else self.trim
        return PortLevels(low, high, int(trim * bdp_bytes), int(self.drop * bdp_bytes), last_hop)


@dataclass(frozen=True, slots=True)
class PortLevels:
    """The levels of one port in bytes; they do not change with the rate of the link."""

    ecn_low: int
    ecn_high: int
    trim: int
    drop: int
    last_hop: bool


DEFAULT_THRESHOLDS = PortThresholds()


@dataclass(frozen=True, slots=True)
class LevelFlaws:
    """What faults change of the levels of a switch's ports.

    `marks`: it marks all that is ECN-capable, or nothing; None: as planned. `trims`: False: it trims nothing. `drop`:
    plane-BDP above which data is dropped, where that is less than planned; None: as planned.
    """

    marks: Literal["never", "always"] | None = None
    trims: bool = True
    drop: float | None = None

    def of(self, levels: PortLevels, bdp_bytes: int) -> PortLevels:
        """The levels of a port with these flaws; `bdp_bytes`: its plane-BDP."""
        if self.marks is not None:
            ecn = ALWAYS if self.marks == "always" else NEVER
            levels = replace(levels, ecn_low=ecn, ecn_high=ecn)
        if not self.trims:
            levels = replace(levels, trim=NEVER)
        return levels if self.drop is None else replace(levels, drop=min(levels.drop, int(self.drop * bdp_bytes)))


FLAWLESS = LevelFlaws()


def all_flaws(several: Iterable[LevelFlaws]) -> LevelFlaws:
    """Those of several faults at once: the least buffer counts, and of what they say of marks the last."""
    found = FLAWLESS
    for one in several:
        drops = [drop for drop in (found.drop, one.drop) if drop is not None]
        found = LevelFlaws(one.marks or found.marks, found.trims and one.trims, min(drops, default=None))
    return found


@dataclass(frozen=True, slots=True)
class MarkingCurve:
    """How switches mark for DCQCN: none up to `low`, all above `high`, both in plane-BDP, and between them a share that
    grows from 0 to `most`."""

    low: float
    high: float
    most: float


@dataclass(frozen=True, slots=True)
class PauseThresholds:
    """Levels of lossless ports (PFC) in plane-BDP: of what waits in a switch and came in by one port.

    Above `xoff` that port asks its link to pause, at `xon` to go on. `marking`: None marks nothing. Raises ValueError
    if the levels are not in this order.
    """

    xoff: float = 1.0
    xon: float = 0.8
    marking: MarkingCurve | None = None

    def __post_init__(self) -> None:
        if not 0 < self.xon <= self.xoff:
            raise ValueError(f"xon must be above 0 and at most xoff: {self}")

    def in_bytes(self, bdp_bytes: int) -> PauseLevels:
        """The levels of a port whose plane-BDP is `bdp_bytes`."""
        curve = self.marking or MarkingCurve(NEVER, NEVER, 0)
        ramp = int(curve.low * bdp_bytes), int(curve.high * bdp_bytes)
        return PauseLevels(int(self.xoff * bdp_bytes), int(self.xon * bdp_bytes), *ramp, curve.most)


@dataclass(frozen=True, slots=True)
class PauseLevels:
    """The levels of one lossless port in bytes, and the share of packets that is marked at `ecn_high`."""

    xoff: int
    xon: int
    ecn_low: int
    ecn_high: int
    most: float
