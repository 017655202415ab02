"""What a check observed, in a few words."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.checks.observed import observed_words
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.expect import parse_expectation

PASS, FAIL, UNKNOWN = Status.PASS, Status.FAIL, Status.INCONCLUSIVE


def words(text: str, status: Status, observed: float | None, unit: str = "", **more: object) -> str:
    check = CheckResult(text, status, observed, unit=unit, **more)  # type: ignore[arg-type]
    return observed_words(parse_expectation(text), check)


@pytest.mark.parametrize(
    ("text", "observed", "unit", "says"),
    [
        ("retransmissions == 0", 0, "", "retransmissions 0"),
        ("recovery.p100 <= 3 rtt during cut", 2.345, "rtt", "recovery.p100 2.35 rtt, during cut"),
        ("recovery.p100<=3rtt", 2, "rtt", "recovery.p100 2 rtt"),
        (
            "flow_goodput.min of first >= 0.95 line from 2s to 4s",
            0.9921,
            "line",
            "flow_goodput.min of first 0.992 line, from 2 s to 4 s",
        ),
        ("flow_goodput.min of h0->h4 > 0.9 line", 0.97, "line", "flow_goodput.min of h0->h4 0.97 line"),
        ("steps_done >= 3 during faults", 4, "", "steps_done 4, during faults"),
    ],
)
def test_value_unit_and_window(text: str, observed: float, unit: str, says: str) -> None:
    assert words(text, PASS, observed, unit) == says


@pytest.mark.parametrize(
    ("text", "share_of_limit", "says"),
    [
        ("goodput >= 70% of clean during cut", 1.1, "goodput 77.0% of clean, during cut"),
        ("step_time.p100 <= 1.5 x clean.median during cut", 0.8, "step_time.p100 1.2 x clean.median, during cut"),
        ("step_time.p100 < 2 x clean during cut", 0.5, "step_time.p100 1 x clean.p100, during cut"),
        ("goodput > 50% of clean during cut", 1.0, "goodput 50.0% of clean, during cut"),
    ],
)
def test_what_is_bounded_by_clean_is_shown_as_a_part_of_it(text: str, share_of_limit: float, says: str) -> None:
    limit = 40.0
    observed = share_of_limit * limit
    room = limit - observed if "<" in text else observed - limit
    assert words(text, PASS, observed, "MiB/s", margin=room / limit) == says


def test_without_a_margin_the_value_itself_is_shown() -> None:
    assert words("goodput >= 0% of clean during cut", PASS, 40, "MiB/s") == "goodput 40 MiB/s, during cut"


def test_outside_the_bound_the_bound_is_shown_too() -> None:
    assert words("nacks == 0", FAIL, 3) == "nacks 3 (expected == 0)"
    failed = words("goodput >= 70% of clean during cut", FAIL, 20, "MiB/s", margin=-0.5)
    assert failed == "goodput 35.0% of clean, during cut (expected >= 70% of clean during cut)"


def test_also_where_the_figures_are_not_to_be_believed() -> None:
    assert words("nacks == 0", UNKNOWN, 3, unbelieved=FAIL) == "nacks 3 (expected == 0)"
    assert words("nacks == 0", UNKNOWN, 0, unbelieved=PASS) == "nacks 0"


def test_what_was_not_seen_is_not_known() -> None:
    assert words("nacks == 0", UNKNOWN, None) == "nacks not known"
    assert words("nacks == 0", UNKNOWN, None, why="no snapshot") == "nacks not known (no snapshot)"
