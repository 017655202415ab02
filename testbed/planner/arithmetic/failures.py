"""A job on a design under failures: every number with its mark and range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from mrc_testbed.testbed.planner.arithmetic.clos import Clos
from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, Provenance
from mrc_testbed.testbed.planner.arithmetic.recovery import PathRecovery
from mrc_testbed.testbed.planner.arithmetic.reliability import DAY_S, FailureCase, Inputs

if TYPE_CHECKING:
    from mrc_testbed.testbed.planner.arithmetic.chance import Outlook

FLAPS_GPUS = 131_072
"""Size of the job to which flaps of the parts list belong."""
_EDGE = ("nic_link", "alone", "t0")
"""What failures between NICs and T0s rest on."""


@dataclass(frozen=True, slots=True)
class Failures:
    """What fails how often and what it costs. `numbers`: by the names of `Inputs`; each is worse when it grows.
    `flaps_gpus`: the number of GPUs that the flaps were counted in."""

    numbers: Mapping[str, MarkedNumber]
    flaps_gpus: int = FLAPS_GPUS

    def with_flaps(self, flaps: MarkedNumber, gpus: int) -> Failures:
        """With `flaps` flaps a minute in a job of `gpus` GPUs."""
        return replace(self, numbers={**self.numbers, "flaps": flaps}, flaps_gpus=gpus)


def listed_failures(numbers: Mapping[str, MarkedNumber]) -> Failures:
    """Of all numbers of [failures] and [job]."""
    return Failures({name: numbers[name] for name in Inputs.__slots__})


@dataclass(frozen=True)
class PlannedJob:
    """A job on the first `gpus` NICs of a fabric, with what befalls it."""

    clos: Clos
    gpus: int
    failures: Failures

    @cached_property
    def case(self) -> FailureCase:
        """With the value of every input."""
        return self._case(lambda number: number.value)

    @cached_property
    def ends(self) -> tuple[FailureCase, FailureCase]:
        """The best case and the worst: all inputs at their low ends, and all at their high ends."""
        return self._case(lambda number: number.low), self._case(lambda number: number.high)

    def _case(self, end: Callable[[MarkedNumber], float]) -> FailureCase:
        inputs = Inputs(**{name: end(number) for name, number in self.failures.numbers.items()})
        return FailureCase(self.clos, self.gpus, inputs, self.failures.flaps_gpus)

    def numbers(self) -> dict[str, MarkedNumber | None]:
        """Every number by its key. None: there is no such thing in this design. The mean time between restarts is open,
        its high end infinite, where the best case has none."""
        return {**self._failing(), **self._ports(), **self._restarts()}

    def _failing(self) -> dict[str, MarkedNumber | None]:
        return {
            "flaps": self._number("a minute", "they grow with the job", lambda case: case.flaps * 60, "flaps"),
            "link_failures": self._number(
                "a day", "NIC-T0 links of the job x their rate", lambda case: case.link_failures * DAY_S, "nic_link"
            ),
        }

    def _ports(self) -> dict[str, MarkedNumber | None]:
        if self.clos.planes == 1:
            return {}
        down = "some NIC port is down: 1 - exp(-failures x repair)"
        slower = "while one is down a step takes x = exposed / (planes - 1) longer: x / (1 + x)"
        return {
            "port_down": self._number("%", down, lambda case: 100 * case.port_down, *_EDGE, "repair"),
            "slowdown": self._number("%", slower, lambda case: 100 * case.slowdown, "exposed"),
            "port_loss": self._number(
                "%", "port down x slowdown", lambda case: 100 * case.port_loss, *_EDGE, "repair", "exposed"
            ),
        }

    def _restarts(self) -> dict[str, MarkedNumber | None]:
        network, everything = self._deadly, (*self._deadly, "other")
        mtti = self._number("s", "1 / restarts", lambda case: case.mtti, *everything)
        never = "the same if the network never failed"
        kept = "Young's interval between checkpoints, Daly's time; no stall and no lost port"
        return {
            "network_restarts": self._number(
                "a day", "what of the network ends the job", lambda case: case.network_restarts * DAY_S, *network
            ),
            "restarts": self._number(
                "a day", "what of all ends the job", lambda case: case.restarts * DAY_S, *everything
            ),
            "mtti": mtti if mtti.value < inf else None,
            "running": self._number("%", kept, lambda case: 100 * case.running, *everything, "checkpoint", "restart"),
            "spared": self._number("%", never, lambda case: 100 * case.spared, "other", "checkpoint", "restart"),
        }

    @property
    def _deadly(self) -> tuple[str, ...]:
        """What failures of the network that end the job rest on."""
        return _EDGE if self.clos.planes == 1 else ("nic_transceiver",)

    def flap_loss(self, recovery: PathRecovery) -> MarkedNumber:
        """What flaps alone take, in percent; 100 or more: the job makes no progress."""
        how, used = "flaps x stall", ["flaps"]
        if recovery.may_end_job:
            how, used = "flaps x stall, or restarts where it outlasts retries", [*used, "checkpoint", "restart"]
        return self._of(recovery, how, lambda case, stall, retries: 100 * case.flap_loss(stall, retries), *used)

    def effective(self, recovery: PathRecovery) -> MarkedNumber:
        """Effective training time, in percent."""
        how = "share of time kept after restarts x (1 - stalls - lost ports)"
        ports = (*_EDGE, "repair", "exposed") if self.clos.planes > 1 else ()
        used = (*self._deadly, "other", "checkpoint", "restart", *ports, "t1", "flaps")
        return self._of(recovery, how, lambda case, stall, retries: 100 * case.effective(stall, retries), *used)

    def _of(
        self, recovery: PathRecovery, how: str, rule: Callable[[FailureCase, float, float], float], *used: str
    ) -> MarkedNumber:
        stall, (best, worst), (least, retries, most) = recovery.stall, self.ends, recovery.patience
        low, high = sorted((rule(best, stall.low, most), rule(worst, stall.high, least)))
        value = rule(self.case, stall.value, retries)
        rests_on = (*used, recovery.name, *(("nic_retries",) if recovery.may_end_job else ()))
        return MarkedNumber(value, "%", Provenance.DERIVED, how, low, high, rests_on)

    def _number(self, unit: str, how: str, rule: Callable[[FailureCase], float], *used: str) -> MarkedNumber:
        low, high = sorted(rule(case) for case in self.ends)
        return MarkedNumber(rule(self.case), unit, Provenance.DERIVED, how, low, high, used)


@dataclass(frozen=True, slots=True)
class FailurePlan:
    """A job with what may bring its traffic onto another path. `stated`: further numbers on which stalls rest, by name.
    `outlook`: of simulated campaigns, if any were asked for."""

    job: PlannedJob
    recoveries: Sequence[PathRecovery]
    stated: Mapping[str, MarkedNumber]
    outlook: Outlook | None = None

    def part_numbers(self) -> dict[str, MarkedNumber]:
        """Everything on which derived numbers rest, by the names under which they do."""
        stalls = {recovery.name: recovery.stall for recovery in self.recoveries}
        retries = next((recovery.retries for recovery in self.recoveries if recovery.retries), None)
        given = {"nic_retries": retries} if retries else {}
        return {**self.job.failures.numbers, **self.stated, **stalls, **given}
