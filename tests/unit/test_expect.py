from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.checks.expect import (
    OPERATORS,
    Absolute,
    Expectation,
    ExpectError,
    OfClean,
    Span,
    did_you_mean,
    parse_expectation,
)
from testbed.checks.vocabulary import METRICS, UNITS, Windows


def parts(text: str) -> tuple[str, str | None, str, Absolute | OfClean, str]:
    parsed = parse_expectation(text)
    assert parsed.text == text
    return parsed.metric.name, parsed.stat, parsed.op, parsed.bound, str(parsed.window)


@pytest.mark.parametrize(
    ("text", "metric", "stat", "op", "bound", "window"),
    [
        ("qp_errors == 0", "qp_errors", None, "==", Absolute(0, ""), ""),
        ("step_time.p100 <= 1200ms", "step_time", "p100", "<=", Absolute(1200, "ms"), ""),
        ("step_time.p100<=1.2 s clean", "step_time", "p100", "<=", Absolute(1.2, "s"), "clean"),
        (
            "step_time.p100 <= 1.5 x clean.median during faults",
            *("step_time", "p100", "<=", OfClean(1.5, "median"), "during faults"),
        ),
        ("goodput >= 97% of clean during reboot", "goodput", None, ">=", OfClean(0.97, None), "during reboot"),
        ("goodput > 40 MiB/s", "goodput", None, ">", Absolute(40, "MiB/s"), ""),
        ("goodput > 300mbit during link-flap-1", "goodput", None, ">", Absolute(300, "mbit"), "during link-flap-1"),
        ("recovery.p99 < 3 rtt", "recovery", "p99", "<", Absolute(3, "rtt"), ""),
        ("goodput >= 0.7 line from 4s to 6500ms", "goodput", None, ">=", Absolute(0.7, "line"), "from 4 s to 6.5 s"),
        ("nacks == 0 from 0s to 1 min", "nacks", None, "==", Absolute(0, ""), "from 0 s to 60 s"),
        ("recovery.p50 < 60ms during cut", "recovery", "p50", "<", Absolute(60, "ms"), "during cut"),
        ("step_time.max < 150 % of clean", "step_time", "max", "<", OfClean(1.5, "max"), ""),
        ("step_time.max < 2xclean", "step_time", "max", "<", OfClean(2, "max"), ""),
        ("bytes_wrong != 4 KiB", "bytes_wrong", None, "!=", Absolute(4, "KiB"), ""),
        ("  packets_lost   <= 100   during   cut  ", "packets_lost", None, "<=", Absolute(100, ""), "during cut"),
    ],
)
def test_expectations_that_parse(
    text: str, metric: str, stat: str | None, op: str, bound: Absolute | OfClean, window: str
) -> None:
    name, got_stat, got_op, got_bound, got_window = parts(text)
    assert (name, got_stat, got_op, got_window) == (metric, stat, op, window)
    assert got_bound == pytest.approx(bound) if isinstance(bound, float) else got_bound == bound


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("", 0, "must begin with a metric"),
        ("   ", 3, "must begin with a metric"),
        ("<= 3", 0, "must begin with a metric"),
        ("steptime.p100 <= 3s", 0, "unknown metric 'steptime'; did you mean 'step_time'?"),
        ("xyz == 3", 0, "unknown metric 'xyz'; metrics: qp_errors"),
        ("step_time <= 3s", 10, "step_time needs a statistic, such as step_time.p100 (one of min mean"),
        ("step_time.p10 <= 3s", 10, "unknown statistic 'p10' of step_time; did you mean"),
        ("step_time. <= 3s", 11, "unknown statistic ''"),
        ("recovery.min <= 3 rtt", 9, "unknown statistic 'min' of recovery; one of p50 p99 p100"),
        ("qp_errors.p99 == 0", 10, "qp_errors is one number and has no statistic 'p99'"),
        ("qp_errors", 9, "expected one of <= >= == != < >"),
        ("qp_errors = 0", 10, "'=' is not one of <= >= == != < >; write =="),
        ("qp_errors =< 0", 10, "'=<' is not one of"),
        ("qp_errors ==", 12, "expected a bound, such as 0"),
        ("qp_errors == none", 13, "expected a bound"),
        ("qp_errors == -1", 13, "expected a bound"),
        ("qp_errors == 0 ms", 15, "qp_errors is a plain number, without a unit; got 'ms'"),
        ("step_time.p100 <= 3", 19, "step_time is a time: give the bound a unit, such as 1200ms or 6 rtt"),
        ("goodput >= 1 line from 4s", 25, "expected `to` and a time, as in `from 4s to 6s`"),
        ("goodput >= 1 line from 4s to", 28, "expected a time since the workload began"),
        ("goodput >= 1 line from 4 to 5s", 23, "expected a time since the workload began"),
        ("goodput >= 1 line from 4rtt to 9rtt", 23, "expected a time since the workload began"),
        ("goodput >= 1 line from 6s to 4s", 18, "a window must end after it begins"),
        ("goodput >= 1 line from 4s to 4s", 18, "a window must end after it begins"),
        ("recovery.p50 < 60ms from 1s to 2s", 20, "recovery is known for the whole run and the time of faults"),
        ("data_on_bad_ev == 0 from 1s to 2s", 20, "leave 'from 1 s to 2 s' out"),
        ("step_time.p100 <= 3 from 1s to 2s", 20, "give the bound a unit"),
        ("step_time.p100 <= 3 during cut", 20, "give the bound a unit"),
        ("step_time.p100 <= 3 parsec", 20, "step_time is a time: unknown unit 'parsec'; use one of ns us ms s min rtt"),
        ("goodput >= 3 rtt", 13, "goodput is a rate: unknown unit 'rtt'"),
        ("goodput >= 97%", 14, "expected `of clean` after %"),
        ("goodput >= 97% of dirty", 18, "a relative bound compares with `clean`"),
        ("packets_lost <= 3 x clean", 20, "packets_lost cannot be compared with clean"),
        ("goodput >= 2 x clean.p99", 21, "goodput is one number and has no statistic 'p99'"),
        ("goodput >= 97% of clean during cut now", 35, "'now' is left over"),
        ("goodput >= 97% of clean clean", 24, "compares clean with itself"),
        ("step_time.p50 <= 1 x clean.p50 clean", 31, "compares clean with itself"),
        ("steps_done == 8 while cut", 16, "steps_done is a plain number, without a unit; got 'while'"),
        ("step_time.p100 <= 3s while cut", 21, "'while cut' is left over; after the bound only"),
        ("steps_done == 8 during", 22, "expected the name of a fault, or `faults`, after `during`"),
        ("steps_done == 8 during !", 23, "expected the name of a fault"),
        ("queue_drops == 0 during cut", 17, "queue_drops is known for the whole run only; leave 'during cut' out"),
        (
            "recovery.p99 <= 3 rtt clean",
            22,
            "recovery is known for the whole run and the time of faults; leave 'clean'",
        ),
    ],
)
def test_a_mistake_has_its_column(text: str, column: int, says: str) -> None:
    with pytest.raises(ExpectError) as caught:
        parse_expectation(text)
    assert says in str(caught.value)
    assert caught.value.column == column


def test_the_column_of_a_fault_name_is_known() -> None:
    window = parse_expectation("steps_done == 8 during cut").window
    assert (window.span, window.fault, window.column) == (Span.FAULT, "cut", 23)


def test_no_word_is_near_enough() -> None:
    assert did_you_mean("xyzzy", ["reboot"]) == ""
    assert did_you_mean("rebot", ["reboot"]) == "; did you mean 'reboot'?"


@st.composite
def expectations(draw: st.DrawFn) -> tuple[str, str, str | None, str, float, str, str]:
    metric = draw(st.sampled_from(list(METRICS.values())))
    stat = draw(st.sampled_from(metric.stats)) if metric.stats else None
    op = draw(st.sampled_from(OPERATORS))
    units = [unit for unit in UNITS[metric.dimension] if unit or metric.dimension.name in ("COUNT", "BYTES")]
    unit = draw(st.sampled_from(units))
    number = draw(st.integers(0, 10**6)) / 8
    names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).filter(lambda name: name != "faults")
    during = st.builds("during {}".format, st.just("faults") | names)
    windows = {
        Windows.RUN: st.just(""),
        Windows.FAULTS: st.just("") | during,
        Windows.ANY: st.just("") | during | st.just("clean"),
    }
    window = draw(windows[metric.windows])
    return metric.name, op, stat, unit, number, window, draw(st.sampled_from(["", " ", "   "]))


@given(expectations())
def test_whatever_the_grammar_allows_parses(drawn: tuple[str, str, str | None, str, float, str, str]) -> None:
    metric, op, stat, unit, number, window, space = drawn
    dotted = f"{metric}.{stat}" if stat else metric
    parsed: Expectation = parse_expectation(f"{dotted}{space}{op}{space}{number}{space}{unit} {window}")
    assert (parsed.metric.name, parsed.stat, parsed.op) == (metric, stat, op)
    assert parsed.bound == Absolute(number, unit)
    assert str(parsed.window) == window


WORDS = st.sampled_from(
    ["step_time", ".p100", "qp_errors", "goodput", "<=", "==", "3", "1.5", "x", "%", "of", "clean", "during", "ms", " "]
)


@given(st.text() | st.lists(WORDS).map("".join) | st.lists(WORDS).map(" ".join))
def test_no_text_raises_anything_but_expect_errors(text: str) -> None:
    with suppress(ExpectError):
        assert parse_expectation(text).text == text
