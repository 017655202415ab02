"""The oracle of summaries is judged: what agrees passes, and each part that is changed alone is found."""

from __future__ import annotations

import pytest

from tests.generated.oracle import summary_off

ONE = """
step time  median 1.11 ms, P100 1.2 ms (8 steps)
waiting    most waited for: h7
PASS  small  8 steps, P100 1.2 ms  results/small
"""
FAULTS = """
step time  clean median 912 ms, P100 1 s (5 steps); during faults median 1.1 s,
           P100 1.12 s (2 steps)
waiting    no host waited
PASS  quickstart  8 steps, P100 1.12 s, clean median 912 ms  results/quickstart
"""
ENDED = FAULTS.replace("8 steps", "8 of 9 steps")


@pytest.mark.parametrize("told", [ONE, FAULTS, ENDED, "no table"])
def test_a_summary_that_agrees_with_itself_passes(told: str) -> None:
    assert list(summary_off(told)) == []


@pytest.mark.parametrize(
    ("told", "part", "changed"),
    [
        (ONE, "(8 steps)", "(7 steps)"),
        (ONE, "median 1.11 ms, P100 1.2 ms (8 steps)", "no finished step"),
        (ONE, "P100 1.2 ms  results", "P100 1.3 ms  results"),
        (FAULTS, "(5 steps)", "(7 steps)"),
        (FAULTS, "P100 1 s", "P100 1.2 s"),
        (FAULTS, "clean median 912 ms  results", "clean median 911 ms  results"),
        (ENDED, "8 of 9 steps", "6 of 9 steps"),
    ],
)
def test_a_part_that_was_changed_alone_is_found(told: str, part: str, changed: str) -> None:
    assert part in told
    assert list(summary_off(told.replace(part, changed)))
