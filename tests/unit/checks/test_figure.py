"""Figures: read from their text, and worked out for a run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.checks.figure import Observed, evaluate_figure
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.expect import ExpectError, ScopeKind, Span, parse_expectation, parse_figure
from tests.unit.checks.test_folder import RunFolder


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("qp_errors", "qp_errors"),
        (" step_time . p100   during  fault cut ", "step_time.p100 during cut"),
        ("evs_retired of h0 -> h4 after cut heals+10rtt", "evs_retired of h0->h4 after cut heals + 10 rtt"),
        ("goodput of each host clean", "goodput of each host clean"),
    ],
)
def test_a_figure_says_the_same_in_one_fixed_way(text: str, says: str) -> None:
    assert str(parse_figure(text)) == says
    assert str(parse_figure(says)) == says


def test_a_figure_has_its_parts() -> None:
    figure = parse_figure("step_time.p100 of h3 during cut")
    assert (figure.metric.name, figure.stat, figure.subject) == ("step_time", "p100", "step_time.p100 of h3")
    assert (figure.scope.kind, figure.scope.name, figure.window.span) == (ScopeKind.HOST, "h3", Span.FAULT)


def test_an_expectation_is_a_figure_an_operator_and_a_bound() -> None:
    wanted = parse_expectation("goodput of h3  >=70% of clean during cut ")
    assert str(wanted.figure) == "goodput of h3 during cut"
    assert (wanted.op, str(wanted.bound)) == (">=", "0.7 x clean")
    assert wanted.demand == ">= 70% of clean during cut"


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("", 0, "must begin with a metric"),
        ("step_tim.p100", 0, "unknown metric 'step_tim'; did you mean 'step_time'?"),
        ("step_time", 9, "step_time needs a statistic"),
        ("step_time.p100 during", 21, "expected the name of a fault"),
        ("qp_errors == 0", 10, "'== 0' is unexpected; only a window can follow a figure"),
        ("queue_drops clean", 12, "queue_drops is known for the whole run only; leave 'clean' out"),
    ],
)
def test_a_mistake_has_its_column(text: str, column: int, says: str) -> None:
    with pytest.raises(ExpectError) as caught:
        parse_figure(text)
    assert says in str(caught.value)
    assert caught.value.column == column


@given(st.text())
def test_no_text_raises_anything_but_expect_errors(text: str) -> None:
    with suppress(ExpectError):
        parse_figure(text)


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    return load_record(RunFolder().write(tmp_path))


@pytest.mark.parametrize(
    ("text", "unit", "value", "shown"),
    [
        ("step_time.p100", None, 1.2, "s"),
        ("step_time.p100 during cut", "ms", 1200, "ms"),
        ("step_time.p100", "rtt", 48, "rtt"),
        ("steps_done", None, 8, ""),
        ("bytes_wrong", None, 0, "B"),
    ],
)
def test_a_figure_comes_in_the_unit_that_was_asked_for(
    record: RunRecord, text: str, unit: str | None, value: float, shown: str
) -> None:
    found = evaluate_figure(record, parse_figure(text), unit)
    assert (found.value, found.unit, found.why) == (pytest.approx(value), shown, "")


def test_of_each_host_the_greatest_is_given(record: RunRecord) -> None:
    each = [evaluate_figure(record, parse_figure(f"step_time.max of h{host}")).value for host in range(4)]
    assert evaluate_figure(record, parse_figure("step_time.max of each host")).value == max(filter(None, each))


def test_what_is_not_known_has_a_reason(record: RunRecord) -> None:
    found = evaluate_figure(record, parse_figure("steps_done during reboot"))
    assert found == Observed(None, "", "fault reboot was not injected")


def test_a_unit_of_something_else_is_a_mistake(record: RunRecord) -> None:
    with pytest.raises(ValueError, match="step_time is a time: unknown unit 'MiB'"):
        evaluate_figure(record, parse_figure("step_time.p100"), "MiB")
