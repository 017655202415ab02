"""Events of a run, published by its phases to a `Progress` (progress.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.faults.schedule import FaultStep


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
    """Number of steps of a job finished by every rank, and the duration of the last and the slowest. `job`: its name,
    empty where it is the only one."""

    done: int
    of: int
    last_s: float
    worst_s: float
    job: str = ""

    @property
    def text(self) -> str:
        """One line of text that says it."""
        whose = f"{self.job} " if self.job else ""
        return f"{whose}step {self.done}/{self.of}, last {self.last_s:.2f} s, worst {self.worst_s:.2f} s"


@dataclass(frozen=True, slots=True)
class FlowsMoved:
    """Flows after `done` of an estimated `of` seconds, and what each moved in the last one."""

    done: float
    of: float
    rates_bps: tuple[float, ...]

    @property
    def text(self) -> str:
        """One line of text that says it."""
        rates = [rate / 1e6 for rate in self.rates_bps]
        each = f", flows {min(rates):.1f} to {max(rates):.1f}" if len(rates) > 1 else ""
        return f"{self.done:.0f}/{self.of:.0f} s, {sum(rates):.1f} Mb/s{each}"


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
class DaemonEvent:
    """An event of a daemon (docs/architecture.md, "The control channel")."""

    host: str
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PortsSampled:
    """Interface counters of one moment, rows as Fabric.sample_ports gives them."""

    t_ns: int
    rows: Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class MachineSeen:
    """Fidelity figures since the start of the workload, as far as known."""

    figures: Mapping[str, Any]


Work = StepsDone | FlowsMoved
RunEvent = PhaseBegins | WorkloadBegins | Work | FaultDone | Note | DaemonEvent | PortsSampled | MachineSeen
