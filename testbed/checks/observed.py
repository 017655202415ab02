"""The observation of a check in a few words: `flow_goodput.min of first 0.992 line, from 2 s to 4 s`. Pure."""

from __future__ import annotations

from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.shown import shown
from mrc_testbed.testbed.expect import Expectation, OfClean


def observed_words(wanted: Expectation, check: CheckResult) -> str:
    """The figure, its value with unit, the window; and the bound if the value is outside it."""
    window = str(wanted.window)
    words = f"{wanted.figure.subject} {_value(wanted, check)}" + (f", {window}" if window else "")
    outside = (check.unbelieved or check.status) is Status.FAIL
    return words + (f" (expected {wanted.demand})" if outside else "")


def _value(wanted: Expectation, check: CheckResult) -> str:
    if check.observed is None:
        return f"not known ({check.why})" if check.why else "not known"
    if isinstance(wanted.bound, OfClean) and check.margin is not None:
        # `1.03 x clean.median` says more than the 921 ms on this machine. A margin counts inwards from the bound.
        share = 1 - check.margin if wanted.op in ("<", "<=") else 1 + check.margin
        factor, stat = share * wanted.bound.factor, wanted.bound.stat
        return f"{number(factor)} x clean.{stat}" if stat else f"{factor:.1%} of clean"
    return shown(check).observed
