"""compare.json: the whole comparison as JSON types, in base units (docs/compare.md). Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mrc_testbed.testbed.checks.cause import causes_of_machine
from mrc_testbed.testbed.compare.comparison import Comparison, ComparisonCell, ComparisonColumn, ComparisonRow
from mrc_testbed.testbed.compare.crossing import crossed
from mrc_testbed.testbed.compare.figures import ComparedFigure
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.sequence import SequenceDiff
from mrc_testbed.testbed.compare.spread import FigureSpread, spreads
from mrc_testbed.testbed.compare.statistics import CONFIDENCE
from mrc_testbed.testbed.compare.transports import StoodStill, fault_outages, heads, side_by_side, trust, variant_rows
from mrc_testbed.testbed.compare.words import caveat, findings, headline, title


def comparison_document(comparison: Comparison, sequences: SequenceDiff | None) -> dict[str, Any]:
    """Everything that a table or a page shows."""
    return {
        "title": title(comparison),
        "headline": headline(comparison),
        "confidence": CONFIDENCE,
        "base": comparison.base,
        "alike": comparison.alike,
        "inconclusive_counted": comparison.with_inconclusive,
        "axes": [asdict(axis) for axis in comparison.axes],
        "notes": list(comparison.notes),
        "unlike": list(comparison.unlike),
        "caveat": caveat(comparison),
        "findings": list(findings(comparison)),
        "columns": [_column(column, comparison) for column in comparison.columns],
        "runs": [_run(run) for run in comparison.runs],
        "figures": [_row(row) for row in comparison.rows],
        "variants": _variants(comparison) if side_by_side(comparison) else None,
        "crossing": [asdict(table) for table in crossed(comparison)],
        "spreads": [_spread(one) for one in spreads(comparison)],
        "zero": [figure.key for figure in comparison.zero],
        "sequences": asdict(sequences) if sequences else None,
    }


def _variants(comparison: Comparison) -> dict[str, Any]:
    """The table of variants and the stalls in each fault as they are shown, with the numbers behind them."""
    rows = [{**asdict(row), "stall": _stall(row.stall)} for row in variant_rows(comparison)]
    faults = [
        {
            **{key: getattr(fault, key) for key in ("name", "what", "lasted_ns", "shortest_ns")},
            "stalls": [{"label": label, **_stall(stall)} for label, stall in fault.groups],
        }
        for fault in fault_outages(comparison)
    ]
    trusted = [bias.text for bias in trust(comparison)]
    return {"heads": list(heads(comparison)), "rows": rows, "faults": faults, "trust": trusted}


def _stall(stall: StoodStill) -> dict[str, Any]:
    return {**asdict(stall), "seconds": stall.seconds, "in_rtts": stall.in_rtts}


def _column(column: ComparisonColumn, comparison: Comparison) -> dict[str, Any]:
    numbers = {id(run): number for number, run in enumerate(comparison.runs)}
    return {
        "label": column.label,
        "place": {axis.key: value for axis, value in zip(comparison.axes, column.place, strict=True)},
        "verdicts": column.verdicts,
        "runs": [numbers[id(run)] for run in column.runs],
        "counted": [numbers[id(run)] for run in column.counted],
    }


def _run(run: ComparedRun) -> dict[str, Any]:
    return {
        "folder": str(run.folder),
        "scenario": run.scenario,
        "seed": run.seed,
        "verdict": run.verdict.status.value,
        "reason": run.verdict.reason,
        "headline": run.headline,
        "machine": machine(run),
        "figures": dict(run.figures.values),
        "lacking": dict(run.figures.lacking),
    }


def machine(run: ComparedRun) -> dict[str, Any]:
    """Whether the machine kept time and what is wrong if not, and the figure nearest to its limit, as a share of the
    limit. A figure whose limit is 0 has no such share."""
    shares = {
        figure.name: figure.observed / figure.limit
        for figure in run.verdict.fidelity.figures
        if figure.observed is not None and figure.limit
    }
    nearest = max(shares, key=lambda name: shares[name], default="")
    share = round(shares[nearest], 3) if nearest else None
    fidelity = run.verdict.fidelity
    why = next((cause.said for cause in causes_of_machine(fidelity)), "")
    return {"kept_time": fidelity.ok, "why": why, "virtual": fidelity.virtual, "nearest": nearest, "share": share}


def _spread(found: FigureSpread) -> dict[str, Any]:
    return {**_figure(found.figure), "groups": [{**asdict(group), "median": group.median} for group in found.groups]}


def _row(row: ComparisonRow) -> dict[str, Any]:
    return {**_figure(row.figure), "compared_by": row.kind, "cells": [_cell(cell) for cell in row.cells]}


def _figure(figure: ComparedFigure) -> dict[str, Any]:
    unit = "rtt" if figure.in_rtt else _UNITS[figure.dimension.name]
    return {"key": figure.key, "title": figure.title, "unit": unit, "better": figure.better, "main": figure.main}


_UNITS = {"TIME": "ns", "RATE": "B/s", "BYTES": "B", "COUNT": ""}


def _cell(cell: ComparisonCell) -> dict[str, Any]:
    estimate = asdict(cell.estimate) if cell.estimate else None
    return {"values": list(cell.values), "mean": cell.mean, "estimate": estimate, "reads": cell.reads}
