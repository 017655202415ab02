"""The result of `mrc-testbed calibrate`, stored in the user's state folder: the loads that were tried. What they say of
the machine is reckoned when it is read.

It is valid for the machine it was measured on: not with another kernel, other CPUs or another host name, nor with the
core in Python where it was compiled. Each transport has a measurement of its own.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from mrc_testbed.hosts import compiled
from mrc_testbed.testbed.cpus import usable_cpus
from mrc_testbed.testbed.state import state_paths
from mrc_testbed.topos.budget import Capacity, budget, usual_capacity
from mrc_testbed.topos.cost import STANDARD_COST, Cost, Load
from mrc_testbed.topos.crowd import crowd_of, crowd_shape
from mrc_testbed.topos.shape import Shape

FILE = "calibration.json"
ROOM = 0.1
"""A load that was carried is held if the worst figure stayed inside its limit by this share of it."""
MARGIN = 1.15
"""Between a load that was held each time and what is promised: of 20 runs in one hour, a data packet took 80.5 µs in
the median with a standard deviation of 5 % (docs/measurements/machine-load.md, 2026-11-24), so it takes more than 1.15
times the median once in 1000 runs."""
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

    @property
    def held(self) -> bool:
        """Carried, with ROOM."""
        return self.carried and self.margin >= ROOM


def lasting_pps(steps: Iterable[Step]) -> float:
    """The greatest load that was held, where no load up to it was not; 0 if there is none."""
    known = list(steps)
    worst = least_doubtful_pps(known)
    return max((step.offered_pps for step in known if step.held and step.offered_pps < worst), default=0.0)


def least_doubtful_pps(steps: Iterable[Step]) -> float:
    """Infinite if each was held."""
    return min((step.offered_pps for step in steps if not step.held), default=inf)


def refused_pps(steps: Iterable[Step]) -> float:
    """The least load that was not carried, above all that were; the greatest that was, if there is none above."""
    known = list(steps)
    best = max((step.offered_pps for step in known if step.carried), default=0.0)
    return min((step.offered_pps for step in known if step.offered_pps > best), default=best)


@dataclass(frozen=True, slots=True)
class CarriedLoad:
    """What was measured of one transport. `switch_ports`: the kind of switch port."""

    measured: str
    switch_ports: str
    steps: tuple[Step, ...]

    @property
    def pps(self) -> float:
        """What is promised: with MARGIN, of what lasts."""
        return lasting_pps(self.steps) / MARGIN


@dataclass(frozen=True, slots=True)
class Crowd:
    """Loads of many hosts over MRC (`mrc_testbed.topos.crowd`)."""

    measured: str
    hosts: int
    steps: tuple[Step, ...]

    @property
    def pps(self) -> float:
        """What is promised of them; where no load lasted, of the least that was tried."""
        return (lasting_pps(self.steps) or min(step.offered_pps for step in self.steps)) / MARGIN

    @property
    def spread(self) -> float:
        """By how much more they never carried."""
        return max(refused_pps(self.steps) / self.pps, MARGIN)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measurements of one machine, by transport; `crowd`: of all of them, None: not measured. `core`: how it ran
    (`mrc_testbed.hosts.compiled.in_use`); empty in files of earlier versions, which do not say it."""

    host: str
    kernel: str
    cpus: int
    transports: Mapping[str, CarriedLoad]
    crowd: Crowd | None = None
    core: str = ""

    def stale(self) -> str:
        """Why it is not valid for this machine (any more); empty if it is."""
        kernel, cpus, host = machine()
        if self.host != host:
            return f"it was measured on {self.host}, this is {host}"
        if self.kernel != kernel:
            return f"it was measured with kernel {self.kernel}, this is {kernel}"
        if self.cpus != cpus:
            return f"it was measured with {self.cpus} CPUs, here are {cpus}"
        core = compiled.in_use()
        return f"it was measured with `core: {self.core}`, here it is {core}" if self.core not in ("", core) else ""

    def capacity(self, cost: Cost) -> Capacity:
        """As the planner needs it; the usual one for a transport without a load that lasts."""
        here = replace(cost, crowd=self.crowding)
        found = self.transports.get(cost.of)
        if found is None or not found.pps:
            return replace(usual_capacity(cost), cost=here)
        always = Capacity(found.pps, f"calibrated on {found.measured[:10]}", here)
        most = replace(always, pps=refused_pps(found.steps)).cpus / always.cpus
        return replace(always, spread=max(most, self.crowd.spread if self.crowd else 1.0))

    @property
    def crowding(self) -> float:
        """`mrc_testbed.topos.cost.Cost.crowd` by what both loads over MRC say; the usual one if they do not."""
        alone = self.transports.get(STANDARD_COST.of)
        if not self.crowd or not alone or not alone.pps:
            return STANDARD_COST.crowd
        return crowd_of(crowd_shape(self.crowd.pps), Capacity(alone.pps, "calibrated"))


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
    """A file without `transports` is from a time when only MRC was measured; what older ones say besides their steps
    is not used."""
    loads = value.get("transports") or {STANDARD_COST.of: value}
    many = value.get("crowd")
    return Calibration(
        value["host"],
        value["kernel"],
        value["cpus"],
        {word: CarriedLoad(one["measured"], one["switch_ports"], _steps(one)) for word, one in loads.items()},
        Crowd(many["measured"], many["hosts"], _steps(many)) if many else None,
        value.get("core", ""),
    )


def _steps(value: Mapping[str, Any]) -> tuple[Step, ...]:
    """Raises ValueError for none at all."""
    steps = tuple(Step(**step) for step in value["steps"])
    if not steps:
        raise ValueError("a calibration without steps")
    return steps


def with_load(transport: str, load: CarriedLoad, crowd: Crowd | None = None) -> Calibration:
    """The saved calibration of this machine with a new measurement, and of many hosts if given; one of another machine
    is left behind."""
    here = _of_this_machine()
    transports = {**here.transports, transport: load}
    return replace(here, transports=transports, crowd=crowd or here.crowd, core=compiled.in_use())


def _of_this_machine() -> Calibration:
    """What was saved, unless it is of another machine, another core, or before the core was noted."""
    found = load_calibration()
    if found and not found.stale() and found.core:
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
