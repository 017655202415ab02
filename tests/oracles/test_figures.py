"""Metrics of the judges against those of the oracles, for every run, window and scope in which both have one."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import ceil, isclose

import pytest

from mrc_testbed.testbed.checks.compare import check_expectation
from mrc_testbed.testbed.checks.metrics import measure
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.windows import NoData, NotApplicable
from mrc_testbed.testbed.expect import METRICS, ExpectError, parse_expectation, parse_figure
from mrc_testbed.testbed.expect.vocabulary import Dimension
from tests.oracles.corpus import NAMES, run_of
from tests.oracles.figures import FIGURES, jobs
from tests.oracles.flow_figures import Found
from tests.oracles.raw import Raw

STATS = ("min", "median", "mean", "p90", "p99", "p100")


@cache
def raw_of(name: str) -> Raw:
    return Raw(run_of(name))


@cache
def record_of(name: str) -> RunRecord:
    return load_record(run_of(name))


def scopes(raw: Raw) -> Iterator[str]:
    yield from ("", *raw.hosts)
    yield from (name for name in jobs(raw) if name != "job")
    yield from (
        f"{host}->{one['peer']}" for host in raw.hosts[:2] for one in raw.counters["hosts"][host]["qps"].values()
    )


def said(record: RunRecord, text: str) -> float | str | None:
    """What the judge measures; its words where it knows nothing; None for what no such run has."""
    try:
        return measure(record, parse_figure(text))
    except (NotApplicable, ExpectError):
        return None
    except NoData as error:
        return str(error)


def statistic(values: Sequence[float], stat: str) -> float:
    ranked = sorted(values)
    if stat == "mean":
        return sum(ranked) / len(ranked)
    if stat == "median":
        return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2
    share = Fraction({"min": "0", "p100": "100"}.get(stat, stat[1:]))
    return ranked[max(0, ceil(share * len(ranked) / 100) - 1)]


def wanted(found: Found, metric: str) -> dict[str, float]:
    """By statistic, or by nothing."""
    if found is None:
        return {}
    if isinstance(found, Sequence):
        return {f".{stat}": statistic(found, stat) for stat in STATS if stat in METRICS[metric].stats}
    return {"": found}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("metric", FIGURES)
def test_each_metric_is_what_the_raw_files_say(name: str, metric: str) -> None:
    raw, record = raw_of(name), record_of(name)
    for window in raw.windows():
        for scope in scopes(raw):
            for stat, value in wanted(FIGURES[metric](raw, window, scope), metric).items():
                text = " ".join(f"{metric}{stat} {f'of {scope}' if scope else ''} {window.words}".split())
                told = said(record, text)
                if told is not None:
                    assert not isinstance(told, str), f"{text}: {told}; {value}"
                    assert isclose(told, value, rel_tol=1e-9, abs_tol=1e-9), text


OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


def judged(record: RunRecord, text: str) -> str | None:
    """The status of an expectation; None where nothing is known, or the language does not have it."""
    try:
        return check_expectation(record, parse_expectation(text)).status.value
    except (NoData, ExpectError):
        return None


def bounds(metric: str, values: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Whole ones at and beside the first value, with the unit of the metric."""
    unit = {Dimension.TIME: "ns", Dimension.BYTES: "B", Dimension.RATE: "B/s"}.get(METRICS[metric].dimension, "")
    for bound in range(max(0, int(values[0]) - 1), int(values[0]) + 3):
        yield f"{bound} {unit}".rstrip(), bound


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("metric", FIGURES)
def test_an_expectation_holds_if_the_raw_files_say_so(name: str, metric: str) -> None:
    raw, record = raw_of(name), record_of(name)
    stat = ".p100" if "p100" in METRICS[metric].stats else ".max" if METRICS[metric].stats else ""
    for window in raw.windows():
        for scope, members in {"": [""], "of h1": ["h1"], "of each host": raw.hosts}.items():
            found = [FIGURES[metric](raw, window, member) for member in members]
            values = [max(one) if isinstance(one, Sequence) else one for one in found if one is not None]
            for (text, bound), op in itertools.product(bounds(metric, values) if values else (), OPERATORS):
                whole = " ".join(f"{metric}{stat} {scope} {op} {text} {window.words}".split())
                told = judged(record, whole) if len(values) == len(members) else None
                if told is not None:
                    assert told == ("pass" if all(OPERATORS[op](value, bound) for value in values) else "fail"), whole


def test_each_metric_of_the_oracles_is_in_some_run() -> None:
    for metric in FIGURES:
        found = (FIGURES[metric](raw_of(name), window, "") for name in NAMES for window in raw_of(name).windows())
        assert any(value is not None for value in found), metric
