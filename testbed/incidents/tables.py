"""Scores as lines of text, at most 80 columns wide. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf

from mrc_testbed.testbed.incidents.scoring import CaseScore, IncidentFound
from mrc_testbed.testbed.incidents.totals import ScoreTotals, by_name

_CASE = "{:<12}  {:<10.10}  {:<16}  {:>9}  {:<4}  {:<5}  {:<4}  {:>5}"
CASE_HEAD = _CASE.format("case", "by", "incident", "located", "near", "what", "way", "false")
_MARKS = {True: "yes", False: "no", None: "-"}
_GROUP = "{:<26}  {:>5}  {:>9}  {:>8}  {:>9}  {:>5}  {:>6}"


def group_lines(heading: str, groups: Mapping[str, ScoreTotals]) -> Iterator[str]:
    """A line a group of cases: what was located of what was asked for, and of what was not; false accusations."""
    yield _GROUP.format(heading, "cases", "located", "median", "beside", "false", "alarms")
    for word, totals in groups.items():
        facts = totals.document()
        asked = f"{facts['located']} of {facts['asked']}" if facts["asked"] else ""
        beside = f"{facts['beside_located']} of {facts['beside']}" if facts["beside"] else ""
        alarms = sum(score.figures.alarms for score in totals.scores)
        median = seconds(totals.median_ns) if facts["asked"] else ""
        yield _GROUP.format(word, facts["cases"], asked, median, beside, facts["falsely_accused"], alarms)


def score_lines(scores: Sequence[CaseScore]) -> Iterator[str]:
    """A line an incident, and what it comes to by name."""
    yield CASE_HEAD
    for score in scores:
        yield from case_lines(score)
    for name, totals in by_name(scores).items():
        yield ""
        yield from total_lines(name, totals)


def case_lines(score: CaseScore) -> Iterator[str]:
    """Of one case and name."""
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
    yield f"{name}: {facts['cases']} case{'s' * (facts['cases'] != 1)}"
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
