"""The verdict over all checks of a run, and why it is no pass: the content of verdict.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from mrc_testbed.testbed.checks.cause import Cause, causes_of_checks, causes_of_machine
from mrc_testbed.testbed.checks.end_rows import EndRow
from mrc_testbed.testbed.checks.result import HARMLESS, NOT_JUDGED, CheckResult, Fidelity, FidelityFigure, Status
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.expect.vocabulary import Severity
from mrc_testbed.testbed.rundir.lines import Party


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a run. `death`: how its job died, if it did: `job died at 3.79 s: QP h0->h1: retry exceeded`.
    `judged`: its expectations decide, as in all runs but those of baselines beside what is judged. `ends`: of each job,
    flow and program, and of QPs that failed."""

    status: Status
    scenario: str
    checks: tuple[CheckResult, ...]
    fidelity: Fidelity
    death: str = ""
    judged: bool = True
    ends: tuple[EndRow, ...] = ()

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
        """0 pass, measured or died, 1 fail, 4 inconclusive because the machine lacks something, else 3."""
        if self.status is Status.INCONCLUSIVE:
            return ExitCode.MISSING if self.fidelity.lacks else ExitCode.INCONCLUSIVE
        return ExitCode.FAIL if self.status is Status.FAIL else ExitCode.PASS

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What keeps it from being a pass, first what explains the others; of a measured run how its job died."""
        if self.status in (Status.PASS, *NOT_JUDGED):
            return (Cause(Party.NETWORK, self.death),) if self.status is Status.DIED else ()
        if self.status is Status.INCONCLUSIVE and not self.fidelity.ok:
            return tuple(causes_of_machine(self.fidelity))
        deciding = (check for check in self.checks if check.status is self.status and self.decides(check))
        first, *rest = causes_of_checks(deciding) or [Cause(Party.SCENARIO, "no check says anything of this run")]
        return (replace(first, why="; ".join(filter(None, (first.why, self.death)))), *rest)

    @property
    def cause(self) -> Cause | None:
        """The first of its causes; None for a pass and for a measured run that came to its end."""
        causes = self.causes
        return replace(causes[0], more=len(causes) - 1) if causes else None

    @property
    def next_step(self) -> str:
        """What to do about the first of its causes for which that is known; else empty."""
        return next((cause.next_step for cause in self.causes if cause.next_step), "")

    @property
    def reason(self) -> str:
        """Its cause in one line, the same in every medium; empty where there is none."""
        return str(self.cause or "")

    def as_dict(self) -> dict[str, Any]:
        """The content of verdict.json."""
        return {
            "verdict": self.status.value,
            "scenario": self.scenario,
            "checks": [asdict(check) for check in self.checks],
            "fidelity": {"ok": self.fidelity.ok, **asdict(self.fidelity)},
            "death": self.death,
            "judged": self.judged,
            "causes": [asdict(cause) for cause in self.causes],
            "ends": [asdict(end) for end in self.ends],
        }

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> Verdict:
        """The inverse of as_dict. Raises KeyError, TypeError or ValueError for malformed data."""
        checks = tuple(_check(check) for check in value["checks"])
        fidelity = value["fidelity"]
        figures = tuple(map(_figure, fidelity["figures"]))
        told = {key: each for key, each in fidelity.items() if key != "ok"}
        machine = Fidelity(**_with_party({**told, "figures": figures}))
        status = Status(value["verdict"])
        judged = value.get("judged", status not in NOT_JUDGED)
        ends = tuple(EndRow(**end) for end in value.get("ends", ()))
        return Verdict(status, value["scenario"], checks, machine, value.get("death", ""), judged, ends)


def _check(value: Mapping[str, Any]) -> CheckResult:
    unbelieved = value["unbelieved"]
    words = {"status": Status(value["status"]), "unbelieved": Status(unbelieved) if unbelieved else None}
    copied = {"place": f"scenario.yaml:{value['line']}"} if value["line"] and "place" not in value else {}
    return CheckResult(**_with_party({**value, **words, **copied, "level": Severity(value["level"])}))


def _figure(value: Mapping[str, Any]) -> FidelityFigure:
    """Of older runs `why` says all of it, its name first."""
    figure = FidelityFigure(**_with_party(value))
    if "who" in value:
        return figure
    return replace(
        figure,
        why=""
        if figure.observed is not None
        else figure.why.removeprefix(f"{figure.name} was ").removeprefix(f"{figure.name} is "),
    )


def _with_party(value: Mapping[str, Any]) -> dict[str, Any]:
    """Runs from before causes had a party have none."""
    return {**value, **({"who": Party(value["who"])} if "who" in value else {})}
