"""Events of a run, published by its phases to a `Progress` (progress.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mrc_testbed.testbed.faults.schedule import FaultStep
from mrc_testbed.testbed.mapper.mapper import MapAction, MapChange
from mrc_testbed.testbed.switching.port_counts import PortHits
from mrc_testbed.topos.units import plural

_SHORT_S = 0.01
_UNITS = (("s", 1), ("ms", 1e3), ("us", 1e6))
_GBPS_FROM = 10e9


def seconds_text(seconds: float) -> str:
    """`1.61 s`; shorter than a hundredth `201 us` or `1.61 ms`."""
    if seconds >= _SHORT_S or not seconds:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def count_text(done: int, of: int) -> str:
    """`3/60`; `3` where nobody knows how many there will be."""
    return f"{done}/{of}" if of else f"{done}"


def progress_text(done_s: float, of_s: float) -> str:
    """`3/60 s`; `3/60 ms` of what is shorter than a second, `3/60 us` of what is shorter than a millisecond."""
    unit, per_s = next(((unit, per_s) for unit, per_s in _UNITS if of_s * per_s >= 1), _UNITS[-1])
    return f"{done_s * per_s:.0f}/{of_s * per_s:.0f} {unit}"


@dataclass(frozen=True, slots=True)
class PhaseBegins:
    """A phase of the run (docs/architecture.md names them)."""

    name: str


@dataclass(frozen=True, slots=True)
class WorkloadBegins:
    """Start time of all programs, possibly in the future."""

    start_ns: int


@dataclass(frozen=True, slots=True)
class StepsDone:
    """Number of steps of a job finished by every rank, and the duration of the last and the slowest. `of`: 0 where
    nobody knows how many there will be. `job`: its name, empty where it is the only one."""

    done: int
    of: int
    last_s: float
    worst_s: float
    job: str = ""

    @property
    def text(self) -> str:
        """One line of text that says it."""
        whose = f"{self.job} " if self.job else ""
        count = count_text(self.done, self.of)
        return f"{whose}step {count}, last {seconds_text(self.last_s)}, worst {seconds_text(self.worst_s)}"


@dataclass(frozen=True, slots=True)
class FlowsMoved:
    """Flows after `done` of an estimated `of` seconds, and what each moved in the last one."""

    done: float
    of: float
    rates_bps: tuple[float, ...]

    @property
    def text(self) -> str:
        """One line of text that says it."""
        unit, bps = ("Gb/s", 1e9) if sum(self.rates_bps) >= _GBPS_FROM else ("Mb/s", 1e6)
        rates = [rate / bps for rate in self.rates_bps]
        each = f", flows {min(rates):.1f} to {max(rates):.1f}" if len(rates) > 1 else ""
        return f"{progress_text(self.done, self.of)}, {sum(rates):.1f} {unit}{each}"


@dataclass(frozen=True, slots=True)
class ProgramsRun:
    """Programs of the user after `done` of at most `of` seconds: how many run, and what they printed last."""

    done: float
    of: float
    running: int
    printed: tuple[tuple[str, str, float], ...] = ()
    """Figure, host, value."""

    @property
    def text(self) -> str:
        """One line of text that says it."""
        told = "".join(f", {figure} {value:g} of {host}" for figure, host, value in self.printed)
        return f"{progress_text(self.done, self.of)} at most, {plural(self.running, 'program')} running{told}"


@dataclass(frozen=True, slots=True)
class FaultDone:
    """A fault was injected or healed; the action began at `t_ns`."""

    step: FaultStep
    t_ns: int

    @property
    def text(self) -> str:
        """Title of the fault; `step.action` tells whether it begins or ends."""
        return f"{self.step.occurrence.fault}: {self.step.occurrence.title}"


@dataclass(frozen=True, slots=True)
class Note:
    """A note for people. `kind`: "qp" for a failed QP, else "note"."""

    t_ns: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class MapSaid:
    """The mapper accuses something, or does so no longer."""

    change: MapChange

    @property
    def t_ns(self) -> int:
        """When it did."""
        return self.change.t_ns

    @property
    def text(self) -> str:
        """One line of text that says it."""
        one = self.change
        what = f"{one.name} {one.direction}" if one.direction else one.name
        match one.action:
            case MapAction.ACCUSE:
                others = f", or {', '.join(one.alike)}" if one.alike else ""
                return f"{what}{others} loses {one.loss:.0%} of its packets"
            case MapAction.CLEAR:
                return f"{what} is well again"
            case MapAction.OVER:
                return f"{what} lost packets, and is well again"


@dataclass(frozen=True, slots=True)
class MapDecided:
    """The policy of the mapper denied something, allowed it again, or kept it in use (`op`: deny, allow, keep)."""

    t_ns: int
    op: str
    component: str
    why: str

    @property
    def text(self) -> str:
        """One line of text that says it."""
        done = {"deny": "is denied", "allow": "is allowed again", "keep": "stays in use"}[self.op]
        return f"{self.component} {done}{f': {self.why}' if self.why else ''}"


class DaemonEvent(NamedTuple):
    """An event of a daemon (docs/architecture.md, "The control channel"). Most events are of this kind, and a frozen
    dataclass takes three times as long to make."""

    host: str
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PortsSampled:
    """Interface counters of one moment, rows as Fabric.sample_ports gives them."""

    t_ns: int
    rows: Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class HitsSampled:
    """The port program's counts, by node and port, of those that have changed."""

    t_ns: int
    hits: Mapping[tuple[str, str], PortHits]


@dataclass(frozen=True, slots=True)
class MachineSeen:
    """Fidelity figures since the start of the workload, as far as known."""

    figures: Mapping[str, Any]


Work = StepsDone | FlowsMoved | ProgramsRun
RunEvent = (
    PhaseBegins
    | WorkloadBegins
    | Work
    | FaultDone
    | Note
    | MapSaid
    | MapDecided
    | DaemonEvent
    | PortsSampled
    | HitsSampled
    | MachineSeen
)
