"""A job on a design under failures: every number with its mark and range."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from testbed.planner.clos import Clos
from testbed.planner.numbers import MarkedNumber, Provenance
from testbed.planner.recovery import Recovery
from testbed.planner.reliability import DAY_S, Case, Inputs

FLAPS_GPUS = 131_072
"""Size of the job to which flaps of the parts list belong."""
_LINKS = ("nic_link",)
_EDGE = ("nic_link", "alone", "t0")
_RESTARTS = ("nic_link", "nic_transceiver", "alone", "t0", "other")
_RUNNING = (*_RESTARTS, "checkpoint", "restart")
_STALLS = (*_EDGE, "t1", "flaps")


@dataclass(frozen=True, slots=True)
class Failures:
    """What fails how often and what it costs. `numbers`: by the names of `Inputs`; each is worse when it grows.
    `flaps_gpus`: in how many GPUs so many flaps are."""

    numbers: Mapping[str, MarkedNumber]
    flaps_gpus: int = FLAPS_GPUS

    def with_flaps(self, flaps: MarkedNumber, gpus: int) -> Failures:
        """With so many flaps a minute in a job of `gpus` GPUs."""
        return replace(self, numbers={**self.numbers, "flaps": flaps}, flaps_gpus=gpus)

    def network_alone(self) -> Failures:
        """As if nothing but the network ever failed."""
        none = replace(self.numbers["other"], value=0.0, low=0.0, high=0.0, source="left out")
        return replace(self, numbers={**self.numbers, "other": none})


def load_failures(numbers: Mapping[str, MarkedNumber], given: Mapping[str, MarkedNumber]) -> Failures:
    """Those of the parts list, and what the user says over them."""
    return Failures({name: given.get(name, numbers[name]) for name in Inputs.__slots__})


@dataclass(frozen=True)
class Job:
    """A job on the first `gpus` NICs of a fabric, with what befalls it."""

    clos: Clos
    gpus: int
    failures: Failures

    @cached_property
    def case(self) -> Case:
        """With the value of every input."""
        return self._case(lambda number: number.value)

    @cached_property
    def ends(self) -> tuple[Case, Case]:
        """The best case and the worst: all inputs at their low ends, and all at their high ends."""
        return self._case(lambda number: number.low), self._case(lambda number: number.high)

    def _case(self, end: Callable[[MarkedNumber], float]) -> Case:
        inputs = Inputs(**{name: end(number) for name, number in self.failures.numbers.items()})
        return Case(self.clos, self.gpus, inputs, self.failures.flaps_gpus)

    def numbers(self) -> dict[str, MarkedNumber | None]:
        """Every number by its key. None: there is no such thing in this design."""
        return {
            "link_failures": self._number(
                "a day", "NIC-T0 links of the job x their rate", lambda case: case.link_failures * DAY_S, _LINKS
            ),
            "port_down": self._with_planes("some NIC port is down: 1 - exp(-failures x repair)", _down, "repair"),
            "slowdown": self._with_planes("while it is: exposed / (planes - 1), of the step", _slowdown, "exposed"),
            "port_loss": self._with_planes("port down x slowdown", _port_loss, "repair", "exposed"),
            "network_restarts": self._number(
                "a day", "what the network ends the job", lambda case: case.network_restarts * DAY_S, _RESTARTS[:-1]
            ),
            "restarts": self._number(
                "a day", "and everything else", lambda case: case.restarts * DAY_S, _RESTARTS
            ),
            "mtti": self._number("h", "1 / restarts", lambda case: case.mtti / 3600, _RESTARTS),
            "running": self._number(
                "%", "without stalls and lost ports: Young's interval, Daly's time", lambda case: 100 * case.running,
                _RUNNING,
            ),
        }  # fmt: skip

    def flap_loss(self, recovery: Recovery) -> MarkedNumber:
        """What flaps alone take, in percent; 100 or more: the job stands still."""
        return self._of(recovery, "flaps x stall", lambda case, stall: 100 * case.flap_loss(stall), ("flaps",))

    def effective(self, recovery: Recovery) -> MarkedNumber:
        """Effective training time, in percent."""
        used = dict.fromkeys((*_RUNNING, *_STALLS, "exposed", "repair"))
        how = "share of time kept after restarts x (1 - stalls - lost ports)"
        return self._of(recovery, how, lambda case, stall: 100 * case.effective(stall), tuple(used))

    def _of(
        self, recovery: Recovery, how: str, rule: Callable[[Case, float], float], used: tuple[str, ...]
    ) -> MarkedNumber:
        stall, (best, worst) = recovery.stall, self.ends
        low, high = sorted((rule(best, stall.low), rule(worst, stall.high)))
        rests_on = (*used, *(stall.rests_on or ("stall",)))
        return MarkedNumber(rule(self.case, stall.value), "%", Provenance.DERIVED, how, low, high, rests_on)

    def _number(self, unit: str, how: str, rule: Callable[[Case], float], used: tuple[str, ...]) -> MarkedNumber:
        low, high = sorted(rule(case) for case in self.ends)
        return MarkedNumber(rule(self.case), unit, Provenance.DERIVED, how, low, high, used)

    def _with_planes(self, how: str, rule: Callable[[Case], float], *more: str) -> MarkedNumber | None:
        return self._number("%", how, rule, (*_EDGE, *more)) if self.clos.planes > 1 else None


def _down(case: Case) -> float:
    return 100 * case.port_down


def _slowdown(case: Case) -> float:
    return 100 * case.slowdown


def _port_loss(case: Case) -> float:
    return 100 * case.port_down * case.slowdown
