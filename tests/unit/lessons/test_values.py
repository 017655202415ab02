"""Arithmetic over figures, tolerances, names and points: all that a lesson reckons with."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mrc_testbed.testbed.lessons.cells import is_meant, split_cell
from mrc_testbed.testbed.lessons.evidence import Evidence
from mrc_testbed.testbed.lessons.expression import (
    ExpressionError,
    ExpressionTerm,
    NotANumber,
    TermKind,
    parse_expression,
)
from mrc_testbed.testbed.lessons.grade import Grade, LessonMark, LessonPart, merged
from mrc_testbed.testbed.lessons.kinds.choices import OneOf, SomeOf
from mrc_testbed.testbed.lessons.kinds.kind import Unusable
from mrc_testbed.testbed.lessons.kinds.names import parts_of, same_name
from mrc_testbed.testbed.lessons.kinds.numbers import AnswerTolerance, InRange, read_number
from mrc_testbed.testbed.lessons.kinds.paths import PathAddress
from mrc_testbed.testbed.lessons.kinds.texts import written_numbers, written_words
from mrc_testbed.testbed.lessons.work import seed_of
from mrc_testbed.topos.graph import SwitchPlace
from mrc_testbed.topos.usid import Segments, outer_address

NOTHING = Evidence((), lambda options, folders: {})
NUMBERS = st.floats(-1e9, 1e9)
MARKS = st.sampled_from(LessonMark)
PARTS = st.lists(st.builds(LessonPart, st.just("a"), MARKS, st.integers(1, 9)), max_size=8)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_arithmetic_is_that_of_python(a: float, b: float, c: float) -> None:
    terms = {"one": a, "two": b, "three": c}
    found = parse_expression("{one} - ({two} + {three}) * 2").value(lambda term: terms[term.text])
    assert found == a - (b + c) * 2


@given(NUMBERS)
def test_a_division_by_zero_is_no_number(a: float) -> None:
    with pytest.raises(NotANumber):
        parse_expression("1 / {x} + {y}").value(lambda term: 0.0 if term.text == "x" else a)


def test_terms_are_figures_keys_and_numbers_of_the_planner() -> None:
    text = "{goodput during port [a, planes=2]} + {key fabric.planes} + {plan designs.0.gpus}"
    assert parse_expression(text).terms == (
        ExpressionTerm(TermKind.FIGURE, "goodput during port", ("a", "planes=2")),
        ExpressionTerm(TermKind.KEY, "fabric.planes"),
        ExpressionTerm(TermKind.PLAN, "designs.0.gpus"),
    )


@pytest.mark.parametrize(
    "text", ["", "1 +", "2 ** 9", "abs(1)", "recovery.p50", "{}", "{key}", "True", "'a'", "1 if 2 else 3", "1" * 2000]
)
def test_what_is_no_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse_expression(text)


@given(st.text(max_size=60))
def test_no_text_makes_the_parser_fail_in_another_way(text: str) -> None:
    with contextlib.suppress(ExpressionError, NotANumber):
        parse_expression(text).value(lambda term: 1.0)


@given(st.floats(-1e6, 1e6), st.floats(0.001, 1))
def test_a_share_of_the_truth_is_accepted_up_to_its_limit(truth: float, share: float) -> None:
    assume(abs(truth) > 1e-6)
    tolerance = AnswerTolerance(share, True)
    assert tolerance.accepts(truth * (1 + share), truth)
    assert not tolerance.accepts(truth * (1 + 1.01 * share), truth)


@given(st.floats(-1e3, 1e3), st.floats(0.01, 100))
def test_an_amount_is_accepted_on_both_sides(truth: float, amount: float) -> None:
    tolerance = AnswerTolerance(amount, False)
    assert tolerance.accepts(truth + amount, truth)
    assert tolerance.accepts(truth - amount, truth)
    assert not tolerance.accepts(truth + 1.01 * amount + 1e-5, truth)


@pytest.mark.parametrize(
    ("written", "unit", "number"),
    [("3.2", "", 3.2), ("3.2 rtt", "rtt", 3.2), ("87.5%", "", 0.875), ("131,072", "", 131072), (" -1e3 ", "", -1000)],
)
def test_numbers_are_read_as_students_write_them(written: str, unit: str, number: float) -> None:
    assert read_number(written, unit) == pytest.approx(number)


@pytest.mark.parametrize(("written", "unit"), [("many", ""), ("3 ms", "rtt"), ("", ""), (True, ""), ("1e999", "")])
def test_what_is_no_number_of_the_unit_is_told(written: object, unit: str) -> None:
    with pytest.raises(Unusable):
        read_number(written, unit)


def test_a_range_holds_its_ends() -> None:
    kind = InRange(2, 5, "rtt")
    assert [kind.judge(given, NOTHING).right for given in (1.9, 2, "5 rtt", 5.1)] == [False, True, True, False]


def test_a_choice_counts_whatever_its_case_and_another_word_is_told() -> None:
    kind = OneOf(("NACKs", "timeouts"), ("NACKs",))
    assert kind.judge("nacks", NOTHING).right
    assert not kind.judge("timeouts", NOTHING).right
    with pytest.raises(Unusable, match="did you mean 'timeouts'"):
        kind.judge("timeout", NOTHING)


@given(st.permutations(["a", "c"]), st.sampled_from([",", ", ", " , "]))
def test_several_choices_count_in_any_order(chosen: list[str], comma: str) -> None:
    kind = SomeOf(("a", "b", "c"), ("a", "c"))
    assert kind.judge(chosen, NOTHING).right
    assert kind.judge(comma.join(chosen), NOTHING).right
    assert not kind.judge(["a"], NOTHING).right
    assert not kind.judge("a, b, c", NOTHING).right


def test_a_link_is_the_same_from_either_end() -> None:
    assert same_name("p0-t1-0:p0-t0-0") == same_name("P0-T0-0_p0-t1-0") != same_name("p0-t0-0:p0-t1-1")


def test_parts_of_names() -> None:
    assert list(parts_of("p1", "plane")) == ["1"]
    assert list(parts_of("p1", "t1")) == []
    link = "p2-t0-0:p2-t1-3"
    assert [list(parts_of(link, part)) for part in ("t1", "t0", "plane", "host")] == [
        ["p2-t1-3"],
        ["p2-t0-0"],
        ["2", "2"],
        [],
    ]


@given(st.integers(0, 15), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_only_the_address_of_the_path_is_right(plane: int, source: int, t1: int, other: int) -> None:
    path = Segments(plane, (SwitchPlace(0, source), SwitchPlace(1, t1), SwitchPlace(0, source + 1)), 0)
    kind = PathAddress(path, "")
    assert kind.judge(outer_address(path).upper(), NOTHING).right
    wrong = Segments(plane, (SwitchPlace(0, source), SwitchPlace(1, other), SwitchPlace(0, source + 1)), 0)
    assert kind.judge(outer_address(wrong), NOTHING).right is (other == t1)


def test_comments_of_a_text_do_not_count_as_words() -> None:
    assert written_words("<!-- write here -->\n# What differs\n\nThe rate - is lower.") == 6


@given(PARTS)
def test_inconclusive_parts_are_in_neither_sum(parts: list[LessonPart]) -> None:
    grade = Grade("a", tuple(parts))
    assert grade.points <= grade.of
    assert grade.of + grade.open == sum(part.points for part in parts)
    assert (grade.mark is LessonMark.PASS) == (bool(parts) and grade.points == sum(part.points for part in parts))


@given(st.lists(MARKS))
def test_one_wrong_part_decides_and_nothing_is_no_pass(marks: list[LessonMark]) -> None:
    assert (merged(marks) is LessonMark.FAIL) == (LessonMark.FAIL in marks)
    assert merged(marks) is not LessonMark.PASS or set(marks) == {LessonMark.PASS}


def test_brackets_name_runs_and_cells() -> None:
    assert split_cell("nacks [grey, planes=2]") == ("nacks", ("grey", "planes=2"))
    assert is_meant(("grey", "planes=2"), "grey", ("planes=2", "seed=1"))
    assert not is_meant(("planes=4",), "grey", ("planes=2",))
    assert is_meant((), "grey", ())


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_seed_is_one_of_the_name_alone(one: str, other: str) -> None:
    assert 1 <= seed_of(one) <= 1 << 31
    assert (seed_of(one) == seed_of(other)) == (one == other)


@pytest.mark.parametrize("text", ["97 %", "97%", ".97", "0.97", "97.0 % of it"])
def test_a_share_in_a_report_counts_however_it_is_written(text: str) -> None:
    assert 0.97 in list(written_numbers(f"the slowest had {text}, the other 3"))


def test_numbers_of_a_report() -> None:
    assert list(written_numbers("1,024 hosts (v1.2, p0-t1-3): -2.5e3 and 3_000")) == [1024, 3, -2500, 3000]
