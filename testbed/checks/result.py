"""Results of checks and the verdict over all of them: the content of verdict.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated, Any

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.expect.vocabulary import Severity


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
    """One figure of how well the machine kept time. `limit` None: for information, never decides."""

    name: str
    observed: float | None
    limit: float | None
    unit: str
    ok: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Whether the machine kept time. `caveat`: another reason to distrust all figures, such as an interrupted run.
    `late`: that it was broken off because the machine was too slow. `virtual`: in virtual time, which no machine has to
    keep; then only the books and the wire can be wrong. `stolen`: of the CPU time that the machine wanted, the part
    that other virtual machines had, if it is known."""

    figures: tuple[FidelityFigure, ...]
    measured_s: float | None = None
    caveat: str = ""
    late: bool = False
    virtual: bool = False
    stolen: float | None = None

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

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is wrong, in words, most serious first."""
        outside = (figure.why or figure.name for figure in self.figures if not figure.ok)
        return ((self.caveat,) if self.caveat else ()) + tuple(outside)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a run. `death`: how its job died, if it did: `job died at 3.79 s: QP h0->h1: retry exceeded`.
    `judged`: its expectations decide, as in all runs but those of baselines beside what is judged."""

    status: Status
    scenario: str
    checks: tuple[CheckResult, ...]
    fidelity: Fidelity
    death: str = ""
    judged: bool = True

    def decides(self, check: CheckResult) -> bool:
        """Whether one of `checks` has a say in it."""
        return check.decides(self.judged)

    @property
    def warnings(self) -> tuple[CheckResult, ...]:
        """Warnings that failed or are open."""
        warnings = (check for check in self.checks if check.level is Severity.WARNING)
        return tuple(check for check in warnings if (check.unbelieved or check.status) not in HARMLESS)

    @property
    def spoiled(self) -> bool:
        """The machine made it inconclusive: another try may know more. Where a file or a figure is lacking, or nothing
        was there to judge, it would not."""
        late = any(check.late and check.level is Severity.ERROR for check in self.checks)
        return self.status is Status.INCONCLUSIVE and (self.fidelity.spoiled or late)

    @property
    def exit_code(self) -> ExitCode:
        """0 pass, measured or died, 1 fail, 3 inconclusive."""
        codes = dict.fromkeys((Status.PASS, *NOT_JUDGED), ExitCode.PASS) | {Status.FAIL: ExitCode.FAIL}
        return codes.get(self.status, ExitCode.INCONCLUSIVE)

    @property
    def deciding(self) -> tuple[CheckResult, ...]:
        """The checks that keep it from being a pass; none where the machine alone does."""
        if self.exit_code is ExitCode.PASS or (self.status is Status.INCONCLUSIVE and not self.fidelity.ok):
            return ()
        return tuple(check for check in self.checks if check.status is self.status and self.decides(check))

    @property
    def reason(self) -> str:
        """Why it is not a pass, in one line; empty for a pass and for a measured run that came to its end."""
        if self.exit_code is ExitCode.PASS:
            return self.death if self.status is Status.DIED else ""
        if self.status is Status.INCONCLUSIVE and not self.fidelity.ok:
            return f"not reliable: {self.fidelity.reasons[0]}"
        bad = self.deciding
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        said = f"{'failed' if self.status is Status.FAIL else 'open'}: {bad[0].name}{more}" if bad else ""
        return "; ".join(filter(None, (said, self.death)))

    def as_dict(self) -> dict[str, Any]:
        """The content of verdict.json."""
        return {
            "verdict": self.status.value,
            "scenario": self.scenario,
            "checks": [asdict(check) for check in self.checks],
            "fidelity": {"ok": self.fidelity.ok, **asdict(self.fidelity)},
            "death": self.death,
            "judged": self.judged,
        }

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> Verdict:
        """The inverse of as_dict. Raises KeyError, TypeError or ValueError for malformed data."""
        checks = tuple(_check(check) for check in value["checks"])
        fidelity = value["fidelity"]
        figures = tuple(FidelityFigure(**figure) for figure in fidelity["figures"])
        machine = Fidelity(
            figures,
            fidelity["measured_s"],
            fidelity["caveat"],
            fidelity.get("late", False),
            fidelity.get("virtual", False),
            fidelity.get("stolen"),
        )
        status = Status(value["verdict"])
        judged = value.get("judged", status not in NOT_JUDGED)
        return Verdict(status, value["scenario"], checks, machine, value.get("death", ""), judged)


def _check(value: Mapping[str, Any]) -> CheckResult:
    unbelieved = value["unbelieved"]
    words = {"status": Status(value["status"]), "unbelieved": Status(unbelieved) if unbelieved else None}
    copied = {"place": f"scenario.yaml:{value['line']}"} if value["line"] and "place" not in value else {}
    return CheckResult(**{**value, **words, **copied, "level": Severity(value["level"])})
