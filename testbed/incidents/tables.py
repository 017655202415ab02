"""Scores as lines of text, at most 80 columns wide. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from mrc_testbed.testbed.incidents.scoring import CaseScore, IncidentFound
from mrc_testbed.testbed.incidents.totals import ScoreTotals, by_name

_CASE = "{:<12}  {:<10.10}  {:<16}  {:>9}  {:<4}  {:<5}  {:<4}  {:>5}"
_MARKS = {True: "yes", False: "no", None: "-"}


def score_lines(scores: Sequence[CaseScore]) -> Iterator[str]:
    """A line an incident, and what it comes to by name."""
    yield _CASE.format("case", "by", "incident", "located", "near", "what", "way", "false")
    for score in scores:
        yield from _of_case(score)
    for name, totals in by_name(scores).items():
        yield ""
        yield from total_lines(name, totals)


def _of_case(score: CaseScore) -> Iterator[str]:
    false = str(score.figures.falsely_accused)
    if not score.incidents:
        yield _CASE.format(score.case, score.by, score.kinds[0], "", "", "", "", false).rstrip()
    for number, one in enumerate(score.incidents):
        first = (score.case, score.by) if not number else ("", "")
        cells = (_after(one), _MARKS[one.near], _MARKS[one.what_right], _MARKS[one.direction])
        yield _CASE.format(*first, one.kind, *cells, "" if number else false).rstrip()


def _after(one: IncidentFound) -> str:
    if one.after_ns is not None:
        return seconds(one.after_ns)
    return "no" if one.asked else "-"


def total_lines(name: str, totals: ScoreTotals) -> Iterator[str]:
    """In words: cases, where, whether, what."""
    facts = totals.document()
    yield f"{name}: {facts['cases']} cases"
    yield (
        f"  where    {facts['located']} of {facts['asked']} located, median {seconds(totals.median_ns)}; "
        f"near {facts['near']}; beside these {facts['beside_located']} of {facts['beside']}"
    )
    yield (
        f"           {facts['falsely_accused']} false accusations; precision {share(facts['precision'])}, "
        f"recall {share(facts['recall'])}, F1 {share(facts['f1'])}"
    )
    yield f"  whether  {share(facts['whether'])} balanced; {rate(facts['alarms_an_hour'])} false alarms an hour"
    yield f"  what     {share(facts['what'])} right; direction {share(facts['direction'])}"


def seconds(ns: float | None) -> str:
    """A time, `never` for an infinite one."""
    if ns is None:
        return "-"
    return "never" if ns == inf else f"{ns / 1e9:.2f} s"


def share(value: float | None) -> str:
    """With two digits, or a dash."""
    return "-" if value is None else f"{value:.2f}"


def rate(value: float | None) -> str:
    """With one digit, or a dash."""
    return "-" if value is None else f"{value:.1f}"
