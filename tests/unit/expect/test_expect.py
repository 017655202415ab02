from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.expect import (
    OPERATORS,
    Absolute,
    Expectation,
    ExpectError,
    Length,
    Moment,
    OfClean,
    Scope,
    ScopeKind,
    Span,
    Window,
    did_you_mean,
    is_reserved,
    parse_expectation,
    parse_figure,
)
from mrc_testbed.testbed.expect.metrics import METRICS
from mrc_testbed.testbed.expect.vocabulary import UNITS, By, Dimension, Windows


def parts(text: str) -> tuple[str, str | None, str, Absolute | OfClean, str]:
    parsed = parse_expectation(text)
    assert parsed.text == text.rstrip()
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
        ("nacks == 0 from cut + 1s to cut + 3s", "nacks", None, "==", Absolute(0, ""), "from cut + 1 s to cut + 3 s"),
        ("nacks == 0 from cut heals for 50 rtt", "nacks", None, "==", Absolute(0, ""), "from cut heals for 50 rtt"),
        ("nacks == 0 from cut-1 - 2s to cut", "nacks", None, "==", Absolute(0, ""), "from cut-1 - 2 s to cut"),
        ("nacks == 0 from 2nd to 4s", "nacks", None, "==", Absolute(0, ""), "from 2nd to 4 s"),
        ("nacks == 0 after cut heals", "nacks", None, "==", Absolute(0, ""), "after cut heals"),
        ("nacks == 0 after cut heals+10rtt", "nacks", None, "==", Absolute(0, ""), "after cut heals + 10 rtt"),
        (
            "nacks == 0 after cut heals + 500ms for 2s",
            *("nacks", None, "==", Absolute(0, ""), "after cut heals + 0.5 s for 2 s"),
        ),
        ("nacks == 0 before cut", "nacks", None, "==", Absolute(0, ""), "before cut"),
        ("nacks == 0 during fault cut", "nacks", None, "==", Absolute(0, ""), "during cut"),
        ("nacks == 0 during fault-1", "nacks", None, "==", Absolute(0, ""), "during fault-1"),
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


def test_a_block_of_yaml_is_one_line() -> None:
    assert parse_expectation("qp_errors\n  == 0\n").text == "qp_errors   == 0"


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
        ("recovery.min <= 3 rtt", 9, "unknown statistic 'min' of recovery; one of p50 p90 p95 p99 p99.9 p100"),
        ("qp_errors.p99 == 0", 10, "qp_errors is one number and has no statistic 'p99'"),
        ("qp_errors", 9, "expected one of <= >= == != < >"),
        ("qp_errors = 0", 10, "'=' is not one of <= >= == != < >; write =="),
        ("qp_errors =< 0", 10, "'=<' is not one of"),
        ("qp_errors ==", 12, "expected a bound, such as 0"),
        ("qp_errors == none", 13, "expected a bound"),
        ("qp_errors == -1", 13, "expected a bound"),
        ("qp_errors == 0 ms", 15, "qp_errors is a plain number, without a unit; got 'ms'"),
        ("step_time.p100 <= 3", 19, "step_time is a time: give the bound a unit, such as 1200ms or 6 rtt"),
        ("goodput >= 1 line from 4s", 25, "expected `to` and a moment, as in `from 4s to 6s`"),
        ("goodput >= 1 line from 4s to", 28, "expected a time since the workload began"),
        ("goodput >= 1 line from 4 to 5s", 23, "expected a time since the workload began"),
        ("goodput >= 1 line from 4rtt to 9rtt", 23, "expected a time since the workload began"),
        ("nacks == 0 from cut + 3s to cut + 1s", 11, "a window must end after it begins"),
        ("nacks == 0 from cut heals to cut heals", 11, "a window must end after it begins"),
        ("nacks == 0 from cut to", 22, "expected a time since the workload began, such as 4s, or a fault"),
        ("nacks == 0 from cut + to cut", 22, "expected a length of time, such as 500ms or 10 rtt"),
        ("nacks == 0 from cut for 3", 24, "expected a length of time"),
        ("nacks == 0 after", 16, "expected the name of a fault after `after`"),
        (
            *("nacks == 0 after cut", 20),
            "`after cut` is incomplete; write `after cut heals`, `during cut` or `from cut to`",
        ),
        ("nacks == 0 after cut + 1s", 21, "`after cut` is incomplete"),
        ("nacks == 0 after cut heals + 3", 29, "expected a length of time"),
        ("nacks == 0 after cut heals for ever", 31, "expected a length of time"),
        ("nacks == 0 before", 17, "expected the name of a fault after `before`"),
        ("nacks == 0 before cut heals", 22, "'heals' is unexpected"),
        ("recovery.p50 < 60ms after cut heals", 20, "recovery is known for the whole run and the time of faults"),
        ("step_time.p100 <= 3 after cut heals", 20, "give the bound a unit"),
        ("step_time.p100 <= 3s after-all", 21, "'after-all' is unexpected"),
        ("queue_drops of h3 == 0", 12, "queue_drops is only defined for the whole run; leave `of` out"),
        ("nacks of == 0", 9, "expected h3 or each host after `of`"),
        ("nacks of h0->h4 == 0", 9, "nacks is not known by pair of hosts; write of h3 or each host"),
        ("nacks of each == 0", 14, "expected `host`, `flow` or `job` after `each`"),
        ("nacks of each hots == 0", 14, "expected `host`, `flow` or `job` after `each`; did you mean 'host'?"),
        ("nacks of each flow == 0", 14, "nacks is not known by flow; write of h3 or each host"),
        ("nacks of each job == 0", 14, "nacks is not known by job; write of h3 or each host"),
        ("programs_failed of each flow == 0", 24, "programs_failed is not known by flow; write of h3 or each host"),
        ("fair_share.min of h3 >= 1", 18, "fair_share is not known by host; write of h0->h4, the name of some flows"),
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
        ("fair_after.p100 <= 3 x clean", 23, "fair_after cannot be compared with clean"),
        ("packets_lost <= 3 x clean", 20, "packets_lost cannot be compared with clean"),
        ("goodput >= 2 x clean.p99", 21, "goodput is one number and has no statistic 'p99'"),
        ("goodput >= 97% of clean during cut now", 35, "'now' is unexpected"),
        ("goodput >= 97% of clean clean", 24, "compares clean with itself"),
        ("step_time.p50 <= 1 x clean.p50 clean", 31, "compares clean with itself"),
        ("step_time.p50 <= 1 x clean.median clean", 34, "compares clean with itself"),
        ("step_time.p100 <= 1 x clean.max clean", 32, "compares clean with itself"),
        ("goodput >= 1 line from 1s for 0s", 30, "a window must end after it begins"),
        ("goodput >= 1 line from 1s for 0 rtt", 30, "a window must end after it begins"),
        ("nacks == 0 after cut heals + 0s for 0ms", 36, "a window must end after it begins"),
        ("steps_done == 8 while cut", 16, "steps_done is a plain number, without a unit; got 'while'"),
        ("step_time.p100 <= 3s while cut", 21, "'while cut' is unexpected; only a window"),
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


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("nacks == 0", ScopeKind.ALL, ""),
        ("nacks of h3 == 0", ScopeKind.HOST, "h3"),
        ("nacks of each host == 0", ScopeKind.EACH_HOST, ""),
        ("evs_retired of h0->h4 == 0", ScopeKind.PAIR, "h0->h4"),
        ("evs_retired of h0 -> h4 == 0", ScopeKind.PAIR, "h0->h4"),
        ("evs_retired of each flow == 0", ScopeKind.EACH_FLOW, ""),
        ("unfinished of each job == 0", ScopeKind.EACH_JOB, ""),
        ("steps_done of job-a >= 1", ScopeKind.GROUP, "job-a"),
        ("evs_retired of background == 0", ScopeKind.GROUP, "background"),
        ("evs_retired of each-one == 0", ScopeKind.GROUP, "each-one"),
        ("goodput of h-3 >= 1 line", ScopeKind.GROUP, "h-3"),
    ],
)
def test_whose_figures_count(text: str, kind: ScopeKind, name: str) -> None:
    scope = parse_expectation(text).window.scope
    assert (scope.kind, scope.name) == (kind, name)


def test_the_column_of_a_fault_name_is_known() -> None:
    window = parse_expectation("steps_done == 8 during cut").window
    assert (window.span, window.fault, window.column) == (Span.FAULT, "cut", 23)


def test_what_is_not_written_is_nothing_and_at_no_place() -> None:
    assert (Length().ns, Length().rtts, Moment().heals) == (0, 0, False)
    assert (Window().column, Moment().column, Scope().column) == (0, 0, 0)
    assert (str(Window()), str(Moment()), str(Scope())) == ("", "0 s", "")


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        *((0, "0 s"), (9_999, "9.999 us"), (10_000, "0.01 ms"), (99_999_999, "99.999999 ms"), (100_000_000, "0.1 s")),
        *((-9_999, "-9.999 us"), (-10_000, "-0.01 ms"), (-100_000_000, "-0.1 s")),
    ],
)
def test_a_length_is_said_in_a_unit_of_its_size(ns: int, said: str) -> None:
    assert str(Length(ns)) == said
    assert Length(ns).in_ns(5.0) == ns


BY = {
    "stall.p100": {"h3", "h0->h4", "each host", "each flow", "some"},
    "goodput": {"h3", "h0->h4", "each host", "each flow", "some", "each job"},
    "step_time.p100": {"h3", "each host", "each job", "some"},
    "wait_time.p100": {"h3", "h0->h4", "each host", "each flow", "each job", "some"},
    "fair_share.min": {"h0->h4", "each flow", "some"},
    "nacks": {"h3", "each host"},
    "queue_drops": set[str](),
}
"""Whom a figure may be of. A pair is known by its own name and by that of its flow, and a name may be of either."""


@pytest.mark.parametrize("figure", BY)
@pytest.mark.parametrize("whom", ["h3", "h0->h4", "each host", "each flow", "some", "each job"])
def test_a_figure_is_known_of_some(figure: str, whom: str) -> None:
    if whom in BY[figure]:
        assert str(parse_figure(f"{figure} of {whom}").scope) == f"of {whom}"
    else:
        with pytest.raises(ExpectError, match=r"is not known by|is only defined for"):
            parse_figure(f"{figure} of {whom}")


def test_no_word_is_near_enough() -> None:
    assert did_you_mean("xyzzy", ["reboot"]) == ""
    assert did_you_mean("rebot", ["reboot"]) == "; did you mean 'reboot'?"


NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,8}", fullmatch=True).filter(lambda name: not is_reserved(name))
NUMBERS = st.integers(0, 10**6).map(lambda number: f"{number / 8:g}" if number % 8 else str(number // 8))
LENGTHS = st.builds("{} {}".format, NUMBERS, st.sampled_from([unit for unit in UNITS[Dimension.TIME] if unit]))
LASTING = LENGTHS.filter(lambda length: float(length.split()[0]) >= 1)
EVENTS = st.builds("{}{}{}".format, NAMES, st.sampled_from(["", " heals"]), st.just("") | LENGTHS.map(" + {}".format))
WINDOWS = {
    Span.RUN: st.just(""),
    Span.CLEAN: st.just("clean"),
    Span.FAULTS: st.just("during faults"),
    Span.FAULT: NAMES.map("during {}".format),
    Span.TIMES: st.builds("from {} for {}".format, EVENTS | NUMBERS.map("{} ms".format), LASTING),
    Span.AFTER: st.builds("after {} heals + {}{}".format, NAMES, LENGTHS, st.just("") | LASTING.map(" for {}".format)),
    Span.BEFORE: NAMES.map("before {}".format),
}
KNOWN = {
    Windows.RUN: (Span.RUN,),
    Windows.FAULTS: (Span.RUN, Span.FAULT, Span.FAULTS),
    Windows.EVENTS: (Span.RUN, Span.FAULT, Span.FAULTS, Span.AFTER),
    Windows.ANY: tuple(Span),
}
SCOPES = {
    By.HOST: st.just("of each host") | st.integers(0, 99).map("of h{}".format),
    By.PAIR: st.integers(0, 99).map("of h{0}->h1{0}".format),
    By.FLOW: st.just("of each flow") | st.just("of victims"),
    By.JOB: st.just("of each job") | st.just("of job-a"),
}


@st.composite
def expectations(draw: st.DrawFn) -> str:
    metric = draw(st.sampled_from(list(METRICS.values())))
    stat = f".{draw(st.sampled_from(metric.stats))}" if metric.stats else ""
    units = [unit for unit in UNITS[metric.dimension] if unit or metric.dimension.name in ("COUNT", "BYTES")]
    bound = f"{draw(NUMBERS)} {draw(st.sampled_from(units))}"
    if metric.has_clean:
        bound = draw(st.just(bound) | NUMBERS.map("{}% of clean".format) | NUMBERS.map("{}x clean".format))
    scope = draw(st.one_of([st.just(""), *(SCOPES[by] for by in metric.by)]))
    spans = set(KNOWN[metric.windows]) - ({Span.CLEAN} if "clean" in bound else set())
    window = draw(WINDOWS[draw(st.sampled_from(sorted(spans, key=str)))])
    space = draw(st.sampled_from([" ", "   "]))
    return space.join([metric.name + stat, scope, draw(st.sampled_from(OPERATORS)), bound, window])


def without_places(parsed: Expectation) -> Expectation:
    """What two texts that say the same have in common."""
    window = parsed.window
    moments: dict[str, Any] = {
        key: moment and replace(moment, column=0) for key, moment in (("begin", window.begin), ("end", window.end))
    }
    bare = replace(window, column=0, scope=replace(window.scope, column=0), **moments)
    return replace(parsed, text="", figure=replace(parsed.figure, window=bare))


@given(expectations())
def test_whatever_the_grammar_allows_parses_and_says_the_same_again(text: str) -> None:
    parsed = parse_expectation(text)
    again = parse_expectation(str(parsed))
    assert without_places(again) == without_places(parsed)
    assert str(again) == str(parsed)
    assert parsed.metric.name == text.split()[0].partition(".")[0]


PIECES = st.sampled_from(
    [
        *("step_time", ".p100", "qp_errors", "goodput", "<=", "==", "3", "1.5", "x", "%", "of", "each", "host", "flow"),
        *("h3", "h0->h4", "clean", "during", "ms", "rtt", "from", "to", "for", "after", "before", "heals", "cut", "+"),
        *("-", " "),
    ]
)


@given(st.text() | st.lists(PIECES).map("".join) | st.lists(PIECES).map(" ".join))
def test_no_text_raises_anything_but_expect_errors(text: str) -> None:
    with suppress(ExpectError):
        assert parse_expectation(text).text == text


WORDS = {"of", "to", "for", "x", "during", "clean", "from", "after", "before", "faults", "fault", "heals", "each"}
WORDS |= {"host", "flow", "job", "warning", "h3", "4s", "10rtt", "7", "2x"}
WORDS |= {unit for units in UNITS.values() for unit in units if unit}
WORDS |= {*METRICS} | {stat for metric in METRICS.values() for stat in metric.stats}


def test_a_word_of_the_language_is_no_name() -> None:
    assert [word for word in sorted(WORDS) if not is_reserved(word)] == []


@given(NAMES)
def test_what_is_not_reserved_is_taken_for_a_name_wherever_one_can_stand(name: str) -> None:
    said = "steps_done == 8 {}"
    windows = {
        f"during {name}": (name,),
        f"during fault {name}": (name,),
        f"before {name}": (name,),
        f"after {name} heals for 2 s": (name,),
        f"from {name} for 2 s": (name,),
        f"from {name} - 1 s to {name} heals": (name, name),
    }
    for window, names in windows.items():
        assert tuple(fault for fault, _ in parse_expectation(said.format(window)).window.faults) == names
    assert parse_expectation(f"steps_done of {name} == 8 during {name}").figure.scope.name == name


@pytest.mark.parametrize(
    ("dimension", "sizes"),
    [
        (Dimension.COUNT, {"": 1}),
        (Dimension.BYTES, {"": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}),
        (Dimension.TIME, {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "rtt": 0}),
        (
            Dimension.RATE,
            {
                **{"B/s": 1, "KiB/s": 1024, "MiB/s": 1024**2, "GiB/s": 1024**3, "line": 0},
                **{"bit": 0.125, "kbit": 125, "mbit": 125_000, "gbit": 125_000_000},
            },
        ),
    ],
)
def test_units_are_as_large_as_their_names_say(dimension: Dimension, sizes: dict[str, float]) -> None:
    assert dict(UNITS[dimension]) == sizes
    metric = next(one for one in METRICS.values() if one.dimension is dimension)
    assert not any(metric.unit_error(unit) for unit in sizes if unit or dimension in (Dimension.COUNT, Dimension.BYTES))


def test_metrics_are_keys_of_tables() -> None:
    assert len({*METRICS.values()}) == len({metric.example for metric in METRICS.values()})
