"""The result of `mrc-testbed calibrate`, stored in the user's state folder.

It is valid for the machine it was measured on: not with another kernel, other CPUs or another host name. Each transport
has a measurement of its own.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.cpus import usable_cpus
from mrc_testbed.testbed.state import state_paths
from mrc_testbed.topos.budget import Capacity, budget, usual_capacity
from mrc_testbed.topos.cost import STANDARD_COST, Cost, Load
from mrc_testbed.topos.shape import Shape

FILE = "calibration.json"
_USUAL_CPUS = 2


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
class CarriedLoad:
    """What was measured of one transport. `pps`: the greatest load that was carried. `switch_ports`: the kind of switch
    port."""

    measured: str
    switch_ports: str
    pps: float
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Crowd:
    """What a packet costs among many hosts. `pps`: the greatest load that this number of hosts carried over MRC;
    `crowd`: what `mrc_testbed.topos.cost.Cost.crowd` is by it."""

    measured: str
    hosts: int
    pps: float
    crowd: float
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measurements of one machine, by transport; `crowd`: of all of them, None: not measured."""

    host: str
    kernel: str
    cpus: int
    transports: Mapping[str, CarriedLoad]
    crowd: Crowd | None = None

    def stale(self) -> str:
        """Why it is not valid for this machine (any more); empty if it is."""
        kernel, cpus, host = machine()
        if self.host != host:
            return f"it was measured on {self.host}, this is {host}"
        if self.kernel != kernel:
            return f"it was measured with kernel {self.kernel}, this is {kernel}"
        return f"it was measured with {self.cpus} CPUs, here are {cpus}" if self.cpus != cpus else ""

    def capacity(self, cost: Cost) -> Capacity:
        """As the planner needs it; the usual one for a transport that was not measured."""
        here = replace(cost, crowd=self.crowd.crowd) if self.crowd else cost
        found = self.transports.get(cost.of)
        if found is None:
            return replace(usual_capacity(cost), cost=here)
        return Capacity(found.pps, f"calibrated on {found.measured[:10]}", here)


def machine() -> tuple[str, int, str]:
    """Kernel, CPUs that this process may use, name."""
    return platform.release(), usable_cpus(), platform.node()


def state_file() -> Path:
    """Where it is written: in the home of the user who called sudo."""
    return next(state_paths(FILE))


def load_calibration() -> Calibration | None:
    """The saved calibration; None if there is none that can be read."""
    for path in state_paths(FILE):
        try:
            return _read(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue
    return None


def _read(value: dict[str, Any]) -> Calibration:
    """A file without `transports` is from a time when only MRC was measured."""
    about = {key: value[key] for key in ("host", "kernel", "cpus")}
    loads = value.get("transports") or {STANDARD_COST.of: {key: value[key] for key in value.keys() - about.keys()}}
    crowd = Crowd(**_with_steps(value["crowd"])) if value.get("crowd") else None
    known = {transport: CarriedLoad(**_with_steps(load)) for transport, load in loads.items()}
    return Calibration(**about, transports=known, crowd=crowd)


def _with_steps(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "steps": tuple(Step(**step) for step in value["steps"])}


def with_load(transport: str, load: CarriedLoad) -> Calibration:
    """The saved calibration of this machine with a new measurement; one of another machine is left behind."""
    here = _of_this_machine()
    return replace(here, transports={**here.transports, transport: load})


def with_crowd(crowd: Crowd) -> Calibration:
    """The same with a new measurement of many hosts."""
    return replace(_of_this_machine(), crowd=crowd)


def _of_this_machine() -> Calibration:
    found = load_calibration()
    if found and not found.stale():
        return found
    kernel, cpus, host = machine()
    return Calibration(host, kernel, cpus, {})


def calibration_text(calibration: Calibration) -> str:
    """The content of the file."""
    return json.dumps(asdict(calibration), indent=1) + "\n"


def machine_capacity(cost: Cost) -> Capacity:
    """What this machine carries over a transport: as calibrated, else what is usual."""
    found = load_calibration()
    if found is None:
        return _usual_here(cost)
    if found.stale():
        usual = _usual_here(cost)
        return replace(usual, known_by=f"{usual.known_by.partition(',')[0]}; the calibration is stale: {found.stale()}")
    return found.capacity(cost)


def _usual_here(cost: Cost) -> Capacity:
    """What two cores carry as a rule; half of it where this process may use one alone."""
    usual = usual_capacity(cost)
    if usable_cpus() >= _USUAL_CPUS:
        return usual
    return replace(usual, pps=usual.pps / 2, known_by=usual.known_by.replace("two cores", "half of two cores", 1))


def budget_warnings(shape: Shape, cost: Cost, written_planes: int, load: Load | None = None) -> tuple[str, ...]:
    """Warnings for a fabric of this shape on this machine. `written_planes`: its planes before any folding; `load`: as
    for `budget`."""
    found = budget(shape, machine_capacity(cost), written_planes, load)
    return tuple(warning.text for warning in found.warnings)
