"""Bound, observed value and margin beside each other: what is not alike does not read alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.cause import of_check
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.shown import shown
from tests.unit.checks.test_folder import RunFolder


def check(op: str, limit: float, observed: float, unit: str = "s", margin: float | None = None) -> CheckResult:
    return CheckResult("x", Status.FAIL, observed, f"{op} {limit:.3g}", unit, margin=margin, limit=limit)


@pytest.mark.parametrize(
    ("op", "limit", "observed", "expected", "told"),
    [
        ("<=", 7.04, 7.0431, "<= 7.04 s", "7.043 s"),
        ("<=", 7.04, 7.04000002, "<= 7.04 s", "7.04 s"),  # no digit that is worth showing tells them apart
        ("<=", 7.04, 7.04, "<= 7.04 s", "7.04 s"),
        ("<=", 7.04, 3.21987, "<= 7.04 s", "3.22 s"),
        ("<=", 150.2, 150.4, "<= 150.2 s", "150.4 s"),
        (">=", 39.96, 39.958, ">= 39.96 s", "39.958 s"),
    ],
)
def test_the_observed_value_is_told_from_its_bound(
    op: str, limit: float, observed: float, expected: str, told: str
) -> None:
    figures = shown(check(op, limit, observed))
    assert (figures.expected, figures.observed) == (expected, told)


@pytest.mark.parametrize(
    ("margin", "says"),
    [
        (0.25, "25%"),
        (0.0, "0%"),
        (-0.0004, "-0.04%"),
        (0.0071, "1%"),
        (-1.31, "-131%"),
        (-899.51, "901 x"),
        (24.0, "25 x"),
        (None, ""),
    ],
)
def test_margins_are_neither_rounded_away_nor_strings_of_digits(margin: float | None, says: str) -> None:
    assert shown(check("<=", 1, 2, margin=margin)).margin == says


def test_all_that_show_a_check_show_the_same(tmp_path: Path) -> None:
    """The slowest step takes 1.2 s, which a bound of 1199.9 ms reads like."""
    folder = RunFolder(expect=["step_time.p100 <= 1199.6ms"]).write(tmp_path)
    (slow, *_) = judge(load_record(folder)).checks
    figures = shown(slow)
    assert (slow.status, figures.expected, figures.observed) == (Status.FAIL, "<= 1199.6 ms", "1200 ms")
    assert figures.margin == "-0.03%"
    assert of_check(slow).seen == "observed 1200 ms, expected <= 1199.6 ms"
