"""Why a run is no pass: causes as data, their order, and their words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mrc_testbed.testbed.checks.result import CheckResult, Fidelity, FidelityFigure
from mrc_testbed.testbed.checks.shown import NOTHING, shown, told_apart
from mrc_testbed.testbed.rundir.lines import Party


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a run is no pass, as people read it. `what`: an expectation as written, a check of every run, a figure of the
    machine, or what ended the run. `observed` and `bound`: with their units, empty where there is none. `place`: of the
    expectation in the user's own file. `next_step`: what to do, if that is known. `more`: how many causes follow it.
    """

    who: Party
    what: str
    observed: str = ""
    bound: str = ""
    place: str = ""
    next_step: str = ""
    why: str = ""
    more: int = 0

    def __str__(self) -> str:
        """`network: goodput >= 90%: observed 80 %, expected >= 90 % (mine.yaml:7, and 2 more)`, in every medium."""
        behind = ", ".join(filter(None, (self.place, f"and {self.more} more" if self.more else "")))
        return f"{self.who}: {self.said}{f' ({behind})' if behind else ''}"

    @property
    def said(self) -> str:
        """The same without party and place."""
        return f"{self.what}{': ' if self.seen else ''}{self.seen}"

    @property
    def seen(self) -> str:
        """The observed value, the bound and why, without the name of the check."""
        observed = f"observed {self.observed}" if self.observed else ""
        bound = f"expected {self.bound}" if self.observed and self.bound else ""
        return "; ".join(filter(None, (", ".join(filter(None, (observed, bound))), self.why)))


def causes_of_checks(checks: Iterable[CheckResult]) -> list[Cause]:
    """Of checks that decide, first what explains the others; else in their order."""

    def rank(check: CheckResult) -> int:
        return next((place for place, holds in enumerate(_FIRST) if holds(check)), len(_FIRST))

    return [of_check(check) for check in sorted(checks, key=rank)]


def causes_of_machine(fidelity: Fidelity) -> list[Cause]:
    """Of a machine that did not keep time, most serious first; empty where it did."""
    broken = [Cause(fidelity.who, fidelity.caveat, next_step=fidelity.next_step)] if fidelity.caveat else []
    return broken + [of_figure(figure) for figure in fidelity.figures if not figure.ok]


_FIRST: tuple[Callable[[CheckResult], bool], ...] = (
    lambda check: check.hard,
    lambda check: check.who is Party.MACHINE,
    lambda check: check.who is Party.PROGRAM and not check.place,
    lambda check: not check.place,
    lambda check: check.who is Party.PROGRAM,
)
"""The order of causes: data that arrived wrong; what the machine or the testbed spoiled; a program that failed by
itself, before all that follows from it; how the work ended, before figures of it; figures of programs, of the rest."""


def of_check(check: CheckResult) -> Cause:
    """The cause of a check that does not hold, or is not known."""
    figures = shown(check)
    observed = "" if figures.observed == NOTHING else figures.observed
    return Cause(check.who, check.name, observed, figures.expected, check.place, check.next_step, check.why)


def of_figure(figure: FidelityFigure) -> Cause:
    """Of a figure of the machine that is outside its limit, or unknown."""
    limit, observed = told_apart(figure.limit or 0, figure.observed or 0)
    seen = "" if figure.observed is None else f"{observed} {figure.unit}"
    bound = "" if figure.limit is None else f"<= {limit} {figure.unit}"
    return Cause(figure.who, figure.name, seen, bound, next_step=figure.next_step, why=figure.why)
