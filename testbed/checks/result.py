"""Results of checks, and whether the machine kept time: what a verdict is made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from mrc_testbed.testbed.expect.vocabulary import Severity
from mrc_testbed.testbed.rundir.lines import Party


class Status(StrEnum):
    """Of checks and runs. Without sufficient data neither passes nor fails.

    NOT_APPLICABLE, of checks alone: the transport of the run has no such figure; it decides nothing. MEASURED and DIED,
    of runs that are not judged, alone: a baseline ran beside what is judged, or its job ended by a QP that failed.
    """

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "n/a"
    MEASURED = "measured"
    DIED = "died"


HARMLESS = (Status.PASS, Status.NOT_APPLICABLE)
"""Checks that keep no run from passing."""
NOT_JUDGED = (Status.MEASURED, Status.DIED)
"""How runs end whose expectations decide nothing."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check. `observed`, `limit` and the number in `expected` are in `unit`. `limit` None: it has no bound of its
    own. `observed_as`: what is said in place of `observed`, where the number alone would mislead.

    `margin`: how far inside the bound, as a share of it (negative: outside); None where the bound is 0 or there is
    none. `line`: that of the expectation in `scenario.yaml`, `place`: the same in the user's own file. `hard`: a
    fail that no slow machine can cause (only packets that no endpoint sent). `unbelieved`: what the figures alone say,
    where they are not believed and the status is inconclusive. `late`: it is not known because the machine did
    something late. `worst`: of a check of each host or flow, whose figure this is. `level`: a warning decides nothing.
    `who`: whose fault it is, where it does not pass; `next_step`: what to do then, if that is known.
    """

    name: str
    status: Status
    observed: float | None = None
    expected: str = ""
    unit: str = ""
    why: str = ""
    margin: Annotated[float | None, "share of the bound"] = None
    line: int | None = None
    hard: bool = False
    unbelieved: Status | None = None
    worst: str | None = None
    level: Severity = Severity.ERROR
    limit: float | None = None
    observed_as: str = ""
    late: bool = False
    place: str = ""
    who: Party = Party.NETWORK
    next_step: str = ""

    def decides(self, judged: bool) -> bool:
        """Whether it has a say in the verdict. In a run that is not `judged` expectations have none, but for data that
        arrived wrong, which are a fail of any run; nor has how its job ended. Without its faults it measured nothing.
        """
        if self.level is not Severity.ERROR:
            return False
        return judged or (self.hard if self.status is Status.FAIL else not self.place)


NOBODY_SENT = "packets nobody sent"
"""The figure of packets that came from no endpoint."""


@dataclass(frozen=True, slots=True)
class FidelityFigure:
    """One figure of how well the machine kept time. `limit` None: for information, never decides. `why`: what else
    there is to say, or why it is unknown. `who` and `next_step`: as of a check, where it is outside its limit."""

    name: str
    observed: float | None
    limit: float | None
    unit: str
    ok: bool
    why: str = ""
    who: Party = Party.MACHINE
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Whether the machine kept time. `caveat`: another reason to distrust all figures, such as an interrupted run, with
    `who` and `next_step` as of a check. `lacks`: it was broken off for a feature that the machine lacks. `late`: that
    it was broken off because the machine was too slow. `virtual`: in virtual time, which no machine has to keep; then
    only the books and the wire can be wrong. `stolen`: of the CPU time that the machine wanted, the part that other
    virtual machines had, if it is known."""

    figures: tuple[FidelityFigure, ...]
    measured_s: float | None = None
    caveat: str = ""
    late: bool = False
    virtual: bool = False
    stolen: float | None = None
    who: Party = Party.MACHINE
    next_step: str = ""
    lacks: bool = False

    @property
    def ok(self) -> bool:
        """True when every figure is inside its limit."""
        return not self.caveat and all(figure.ok for figure in self.figures)

    @property
    def spoiled(self) -> bool:
        """The run was broken off for it, or some figure was measured and is outside its limit."""
        return self.late or any(not figure.ok and figure.observed is not None for figure in self.figures)

    @property
    def meddled_with(self) -> bool:
        """Something that is no endpoint sent packets: then not even wrong data are the transport's."""
        return any(not figure.ok and figure.name == NOBODY_SENT for figure in self.figures)
