"""The tables of the page: expectations, faults and how they were met, fidelity. Pure."""

from __future__ import annotations

from typing import Any

from mrc_testbed.testbed.checks.healing import Healing, healings
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.result import HARMLESS, CheckResult, Fidelity, FidelityFigure, Status
from mrc_testbed.testbed.checks.scale import amount, number
from mrc_testbed.testbed.checks.shown import NOTHING, UNKNOWN, shown
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.expect.vocabulary import Dimension, Severity
from mrc_testbed.testbed.pages.report.clock import Clock
from mrc_testbed.testbed.pages.report.story import CSS_CLASSES, SIGNS
from mrc_testbed.testbed.report.facts import fault_rows
from mrc_testbed.testbed.report.healing_facts import goodput_back_words, healing_rows
from mrc_testbed.testbed.report.summary import MISSED

MOST_OCCURRENCES = 200
_DIGITS = 3
"""Of the times of an occurrence, behind the point."""
_FULL_BAR = 1.25
"""A bar is drawn up to this share of its limit."""


def check_rows(verdict: Verdict) -> list[dict[str, str]]:
    """Those that did not hold first, else in the order of the scenario."""
    order = {Status.FAIL: 0, Status.INCONCLUSIVE: 1, Status.PASS: 2, Status.NOT_APPLICABLE: 3}
    ordered = sorted(verdict.checks, key=lambda check: order[check.status])
    return [_check(check, verdict.judged or verdict.decides(check)) for check in ordered]


def _check(check: CheckResult, judged: bool) -> dict[str, str]:
    figures = shown(check)
    warning = check.level is Severity.WARNING or not judged
    held = check.status in HARMLESS
    word = ("warning" if judged else MISSED) if warning and not held else check.status.value
    return {
        "class": "warn" if warning and not held else CSS_CLASSES[check.status],
        "sign": "!" if warning and not held else SIGNS[check.status],
        "word": word + (f", would be {check.unbelieved}" if check.unbelieved else ""),
        "name": check.name,
        "place": check.place or "always checked",
        "expected": figures.expected,
        "observed": figures.observed,
        "margin": figures.margin,
        "why": "" if check.unbelieved else check.why,
    }


def healing_table(record: RunRecord) -> list[dict[str, str]]:
    """One row a fault: what it was, and the worst of its occurrences in each column."""
    met = {row.name: row for row in healing_rows(record)}
    rows = []
    for fault in fault_rows(record):
        row = met.get(fault.name)
        cells = {
            "name": fault.name,
            "what": fault.what,
            "when": fault.when,
            "retired": fault.evs_retired,
            "stall": fault.stall,
        }
        later = dict.fromkeys(("first_loss", "last_sent", "goodput_back", "per_qp", "told", "back"), NOTHING)
        if row:
            figures = (row.first_loss, row.last_sent, row.goodput_back, row.lost_per_qp, row.told, row.back)
            later = dict(zip(later, figures, strict=True))
        rows.append({**cells, "dropped": fault.packets_dropped, "recovery": fault.recovery, **later})
    return rows


def occurrence_table(record: RunRecord, clock: Clock | None) -> list[dict[str, str]]:
    """One row an occurrence, the first of them where there are very many."""
    return [_occurrence(one, clock) for one in healings(record)[:MOST_OCCURRENCES]] if clock else []


def _occurrence(one: Healing, clock: Clock) -> dict[str, str]:
    outage, lost = one.outage, one.losses.packets
    healed = "never" if outage.healed_ns is None else clock.read(outage.healed_ns, _DIGITS)
    return {
        "name": outage.fault,
        "number": str(outage.number + 1),
        "begin": clock.read(outage.injected_ns, _DIGITS),
        "end": healed,
        "retired": str(one.retired.number),
        "median": _time(one.retired.figure("p50").ns),
        "worst": _time(one.retired.figure("p100").ns),
        "lowest": UNKNOWN if one.lowest is None else f"{one.lowest:.0%}",
        "goodput_back": goodput_back_words(one.goodput),
        "why": one.goodput.why,
        "lost": UNKNOWN if lost is None else str(lost),
        "restored": str(one.after.restored.number),
        "back": _time(one.after.restored.figure("max").ns),
    }


def _time(ns: float | None) -> str:
    return NOTHING if ns is None else amount(Dimension.TIME, ns)


def fidelity_bars(fidelity: Fidelity) -> list[dict[str, Any]]:
    """Each figure beside its limit; `share` is the length of its bar in percent of the place for it, None for no bar;
    `limit_at` where on it the limit is."""
    return [_bar(figure) for figure in fidelity.figures]


def _bar(figure: FidelityFigure) -> dict[str, Any]:
    unit = f" {figure.unit}" if figure.unit and figure.unit != "packets" else ""
    limit = "for information" if figure.limit is None else f"at most {number(figure.limit)}{unit}"
    return {
        "name": figure.name,
        "ok": figure.ok,
        "observed": f"{number(figure.observed)}{unit}" if figure.observed is not None else "not known",
        "limit": limit if figure.limit != 0 else "must be 0",
        "share": _share(figure),
        "limit_at": round(100 / _FULL_BAR, 1) if figure.limit else None,
        "why": figure.why,
    }


def _share(figure: FidelityFigure) -> float | None:
    if figure.observed is None or figure.limit is None:
        return None
    if figure.limit == 0:
        return 100.0 if figure.observed else 0.0
    return round(min(figure.observed / figure.limit, _FULL_BAR) / _FULL_BAR * 100, 1)
