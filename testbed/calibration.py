"""The result of `mrc-testbed calibrate`, stored in the user's state folder.

It is valid for the machine it was measured on: not with another kernel, other CPUs or another host name.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.state import state_paths
from topos.budget import ANY_MACHINE, Capacity, budget
from topos.shape import Shape

FILE = "calibration.json"


@dataclass(frozen=True, slots=True)
class Step:
    """One load of a calibration. `carried`: the run passed. `margin`: how far the worst fidelity figure, `worst`,
    stayed inside its limit, as a share of the limit."""

    offered_pps: float
    carried: bool
    margin: float
    worst: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Calibration:
    """`pps`: the greatest load that was carried. `switch_ports`: the kind of switch port."""

    measured: str
    host: str
    kernel: str
    cpus: int
    switch_ports: str
    pps: float
    steps: tuple[Step, ...]

    def stale(self) -> str:
        """Why it is not valid for this machine (any more); empty if it is."""
        kernel, cpus, host = machine()
        if self.host != host:
            return f"it was measured on {self.host}, this is {host}"
        if self.kernel != kernel:
            return f"it was measured with kernel {self.kernel}, this is {kernel}"
        return f"it was measured with {self.cpus} CPUs, here are {cpus}" if self.cpus != cpus else ""

    def capacity(self) -> Capacity:
        """As the planner needs it."""
        return Capacity(self.pps, f"calibrated on {self.measured[:10]}")


def machine() -> tuple[str, int, str]:
    """Kernel, CPUs, name."""
    return platform.release(), os.cpu_count() or 1, platform.node()


def state_file() -> Path:
    """Where it is written: in the home of the user who called sudo."""
    return next(state_paths(FILE))


def load_calibration() -> Calibration | None:
    """The saved calibration; None if there is none that can be read."""
    for path in state_paths(FILE):
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            return Calibration(**{**value, "steps": tuple(Step(**step) for step in value["steps"])})
        except (OSError, ValueError, TypeError, KeyError):
            continue
    return None


def calibration_text(calibration: Calibration) -> str:
    """The content of the file."""
    return json.dumps(asdict(calibration), indent=1) + "\n"


def machine_capacity() -> Capacity:
    """The capacity of this machine: as calibrated, else the default."""
    found = load_calibration()
    if found is None:
        return ANY_MACHINE
    if found.stale():
        return Capacity(ANY_MACHINE.pps, f"two cores; the calibration is stale: {found.stale()}")
    return found.capacity()


def budget_warnings(shape: Shape) -> tuple[str, ...]:
    """Warnings for a fabric of this shape on this machine."""
    return tuple(warning.text for warning in budget(shape, machine_capacity()).warnings)
