"""Mistakes in expectations that other tests do not make: what is said of them, and at which column."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.expect import ExpectError, Length, Moment, Span, parse_expectation, parse_figure
from mrc_testbed.testbed.expect.metrics import METRICS, known_metrics, program_metric, with_metrics
from mrc_testbed.testbed.expect.reserved import can_name
from mrc_testbed.testbed.expect.scanner import ExpectError as Mistake
from mrc_testbed.testbed.expect.spelling import all_known, did_you_mean


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("p99 <= 2s", 0, "p99 is a statistic; it comes after the metric, as in `step_time.p99`"),
        ("nonsense <= 2s", 0, "unknown metric 'nonsense'"),
        ("nacks <= 5 during cut of h1", 22, "`of` comes right after the metric: nacks of ... <= 5"),
        ("nacks during cut <= 5", 6, "the window comes last, after"),
        ("nacks 5", 6, "expected one of <= >="),
        ("goodput >= clean", 11, "write how many times clean: `1 x clean`, `97% of clean`"),
        ("goodput >= 2 * clean", 13, "write x for times, as in `1.5 x clean`"),
        ("goodput >= 2 \u00d7 clean", 13, "write x for times, as in `1.5 x clean`"),
        ("nacks <= 5 during clean", 18, "`clean` is a window by itself: leave `during` out"),
        ("nacks <= 5 from 4s to 4s", 11, "a window must end after it begins"),
        ("nacks <= 5 from cut + 2s to cut + 1s", 11, "a window must end after it begins"),
        ("nacks <= 5 from cut heals + 3 rtt to cut heals", 11, "a window must end after it begins"),
    ],
)
def test_a_mistake_of_an_expectation_has_its_column(text: str, column: int, says: str) -> None:
    with pytest.raises(ExpectError) as caught:
        parse_expectation(text)
    assert says in str(caught.value)
    assert caught.value.column == column


def test_another_fault_or_another_moment_of_it_may_be_earlier_in_the_text() -> None:
    for text in ("from cut + 2s to boot", "from cut + 2s to cut heals", "from cut - 2s to cut"):
        assert parse_figure(f"nacks {text}").window.span is Span.TIMES


def test_a_mistake_says_itself() -> None:
    assert (str(Mistake(3, "not so")), Mistake(3, "not so").column) == ("not so", 3)


def test_offsets_are_before_or_after_in_time_and_in_round_trips() -> None:
    after = parse_figure("nacks from cut + 2 rtt to cut heals - 3 rtt").window
    assert (after.begin, after.end) == (
        Moment("cut", False, Length(rtts=2), 11),
        Moment("cut", True, Length(rtts=-3), 26),
    )
    assert Length(ns=5, rtts=2).in_ns(100) == 205


@pytest.mark.parametrize(
    ("ns", "says"),
    [(100_000_000, "0.1 s"), (99_000_000, "99 ms"), (10_000, "0.01 ms"), (9_000, "9 us"), (0, "0 s")],
)
def test_a_length_is_said_in_a_unit_of_its_size(ns: int, says: str) -> None:
    assert str(Length(ns)) == says


@pytest.mark.parametrize(
    ("name", "may"),
    [("cut", True), ("all", False), ("run", False), ("nacks", False), ("p99", False), ("h3", False), ("Cut", False)],
)
def test_a_name_is_none_of_the_language(name: str, may: bool) -> None:
    assert can_name(name) is may


def test_one_word_is_suggested_and_then_all_are_said() -> None:
    assert did_you_mean("cuts", ["cut", "cute"]) == "; did you mean 'cut'?"
    assert all_known("cuts", ["cut", "boot"]) == "; did you mean 'cut'? There are cut, boot"
    assert all_known("zzz", ["cut", "boot"]) == "; there are cut, boot"


def test_what_a_program_prints_may_be_any_number_and_has_a_clean_part() -> None:
    metric = program_metric("loss")
    assert (metric.ranges, metric.has_clean) == ({None: (-float("inf"), float("inf"))}, True)


def test_metrics_of_a_plugin_end_with_their_block() -> None:
    with with_metrics({"mine": METRICS["nacks"]}):
        assert "mine" in known_metrics()
    assert "mine" not in known_metrics()


def test_a_word_that_every_metric_lacks_is_no_statistic() -> None:
    with pytest.raises(ExpectError, match="unknown metric 'p98'"):
        parse_figure("p98")


@pytest.mark.parametrize("zero", ["\u0660", "\u0966", "\uff10"])
def test_bounds_have_ascii_digits(zero: str) -> None:
    with pytest.raises(ExpectError, match="expected a bound"):
        parse_expectation(f"qp_errors == {zero}")
