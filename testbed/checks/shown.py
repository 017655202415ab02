"""The figures of a check as a person reads them: `<= 7.04 s`, `7.045 s`, `-0.07%`. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from mrc_testbed.testbed.checks.result import CheckResult
from mrc_testbed.testbed.checks.scale import number

NOTHING = "-"
UNKNOWN = "?"
"""What is not known; a file of the run folder says why."""
_DIGITS = range(3, 7)
"""Three say enough, unless the observed value and its bound would then read alike without being alike."""
_MANY_TIMES = 10.0
"""From this margin on a factor reads better than percent."""


@dataclass(frozen=True, slots=True)
class ShownCheck:
    """The cells of a check's row in a table; empty where there is nothing to say."""

    expected: str
    observed: str
    margin: str


def shown(check: CheckResult) -> ShownCheck:
    """In words and with units."""
    unit = f" {check.unit}" if check.unit else ""
    expected, observed = _numbers(check)
    return ShownCheck(
        f"{expected}{unit}" if expected else "",
        check.observed_as or (NOTHING if check.observed is None else f"{observed}{unit}"),
        "" if check.margin is None else margin_words(check.margin),
    )


def _numbers(check: CheckResult) -> tuple[str, str]:
    """Bound and observed value, with as many digits as tell them apart."""
    if check.observed is None:
        return check.expected, ""
    if check.limit is None:
        return check.expected, number(check.observed)
    limit, observed = told_apart(check.limit, check.observed)
    return f"{check.expected.partition(' ')[0]} {limit}", observed


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Both with as many digits as they need to differ, if they do."""
    told = [(number(one, digits), number(other, digits)) for digits in _DIGITS]
    return next((pair for pair in told if pair[0] != pair[1]), told[0])


def margin_words(margin: float) -> str:
    """In percent of the bound; a small one is not rounded away, and a large one is told as `901 x`, a multiple of the
    bound."""
    percent = 100 * margin
    if abs(margin) >= _MANY_TIMES:
        return f"{1 + abs(margin):.0f} x"
    return f"{percent:.0f}%" if abs(percent) >= 0.5 or not percent else f"{percent:.1g}%"
