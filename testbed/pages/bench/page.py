"""The page of a benchmark, from the document that says the same to programs. Pure.

It has the seven sections that the draft asks of a report, with transports side by side. No colour says that a figure is
good or bad: results are measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple
from urllib.parse import quote

from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.pages.assemble import assemble

ADVISED_CV = 0.05
"""What the draft advises repeats to stay below."""
_COLOURS = 6
"""Transports with a colour of their own."""
_PERCENTILES = (("P50", "p50"), ("P95", "p95"), ("P99", "p99"))
_STATUS_WORDS = {"run": "as the draft has it", "adapted": "with deviations", "not-run": "not run"}


class FigureCell(NamedTuple):
    """A figure of one transport. `share`: of the greatest of its table, for its bar; `why` it was not measured."""

    value: str
    spread: str
    share: float
    colour: int
    why: str


class FigureTable(NamedTuple):
    """One figure of a test: `rows` by its parameters, a cell a transport; None where it has none."""

    name: str
    unit: str
    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[FigureCell | None]]]


class RepeatRow(NamedTuple):
    """How far the repeats of one figure of a test differ: the greatest CV of all its settings."""

    ref: str
    figure: str
    settings: int
    runs: str
    most: str
    where: str
    above: bool


def bench_page(document: Mapping[str, Any], command: str) -> str:
    """`document`: as the JSON Schema of bench.json says. `command`: what made it."""
    tests = document["tests"]
    done = [test for test in tests if test["status"] != "not-run"]
    transports = list(dict.fromkeys(kpi["transport"] for test in done for kpi in test["kpis"]))
    values = {
        "document": document,
        "headline": _headline(tests),
        "transports": {name: _settings(document["transports"].get(name, {})) for name in transports},
        "hosts": {key: _shown(value) for key, value in document["environment"].items()},
        "tests": [_test(test, transports) for test in done],
        "not_run": [test for test in tests if test["status"] == "not-run"],
        "anomalies": [(test["ref"], line) for test in done for line in test["anomalies"]],
        "missing": _missing(done),
        "repeats": [row for test in done for row in _repeats(test)],
        "advised": f"{number(100 * ADVISED_CV)} %",
        "command": command,
    }
    return assemble("bench/bench.html", values, {}, ("bench/bench.css",))


def _headline(tests: Sequence[Mapping[str, Any]]) -> str:
    counts = {word: sum(test["status"] == status for test in tests) for status, word in _STATUS_WORDS.items()}
    return f"{len(tests)} {'test' if len(tests) == 1 else 'tests'}: " + ", ".join(
        f"{count} {word}" for word, count in counts.items()
    )


def _test(test: Mapping[str, Any], transports: Sequence[str]) -> dict[str, Any]:
    return {
        **test,
        "words": _STATUS_WORDS[test["status"]],
        "tables": list(_tables(test, transports)),
        "folders": [_folder(folder) for folder in test["runs"]],
        "swept": {_short(key): ", ".join(map(_shown, values)) for key, values in test["parameters"].items()},
    }


def _tables(test: Mapping[str, Any], transports: Sequence[str]) -> Iterator[FigureTable]:
    """One for each figure, with the transports that have it."""
    for name, unit in dict.fromkeys((kpi["name"], kpi["unit"]) for kpi in test["kpis"]):
        kpis = [kpi for kpi in test["kpis"] if (kpi["name"], kpi["unit"]) == (name, unit)]
        heads = [one for one in transports if any(kpi["transport"] == one for kpi in kpis)]
        most = max((abs(kpi["mean"]) for kpi in kpis if _known(kpi["mean"])), default=0.0)
        found: dict[str, dict[str, FigureCell]] = {}
        for kpi in kpis:
            cell = _cell(kpi, most, transports.index(kpi["transport"]) % _COLOURS)
            found.setdefault(_settings(kpi["parameters"]), {})[kpi["transport"]] = cell
        yield FigureTable(name, unit, heads, [(row, [cells.get(one) for one in heads]) for row, cells in found.items()])


def _cell(kpi: Mapping[str, Any], most: float, colour: int) -> FigureCell:
    if not _known(kpi["mean"]):
        return FigureCell("not measured", "", 0.0, colour, kpi["why"])
    spread = ""
    if any(_known(kpi[key]) and kpi[key] != kpi["mean"] for _, key in _PERCENTILES):
        spread = ", ".join(f"{word} {number(kpi[key])}" for word, key in _PERCENTILES if _known(kpi[key]))
    return FigureCell(number(kpi["mean"]), spread, abs(kpi["mean"]) / most if most else 0.0, colour, kpi["why"])


def _missing(tests: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, str]]:
    """What was not measured, or not in all runs: section, figure, transport with its settings, and why."""
    return [
        (test["ref"], kpi["name"], f"{kpi['transport']} {_settings(kpi['parameters'])}".strip(), kpi["why"])
        for test in tests
        for kpi in test["kpis"]
        if kpi["why"]
    ]


def _repeats(test: Mapping[str, Any]) -> Iterator[RepeatRow]:
    for name in dict.fromkeys(kpi["name"] for kpi in test["kpis"]):
        kpis = [kpi for kpi in test["kpis"] if kpi["name"] == name and _known(kpi["cv"])]
        if not kpis:
            continue
        worst = max(kpis, key=lambda kpi: abs(kpi["cv"]))
        where = f"{worst['transport']} {_settings(worst['parameters'])}".strip()
        runs = sorted({kpi["runs"] for kpi in kpis})
        told = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
        most = abs(worst["cv"])
        yield RepeatRow(test["ref"], name, len(kpis), told, f"{number(100 * most)} %", where, most > ADVISED_CV)


def _settings(settings: Mapping[str, Any]) -> str:
    """`message 4KiB, qps 16`: keys by their last words."""
    return ", ".join(f"{_short(key)} {_shown(value)}" for key, value in settings.items())


def _short(key: str) -> str:
    return key.rpartition(".")[2]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return number(value) if isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return _settings(value)
    return ", ".join(map(_shown, value)) if isinstance(value, list) else str(value)


def _known(value: float | None) -> bool:
    return value is not None and isfinite(value)


def _folder(folder: str) -> dict[str, str]:
    """A link only to what lies beside the page."""
    inside = not folder.startswith("/") and ".." not in folder.split("/")
    return {"word": folder, "href": f"{quote(folder)}/" if inside else ""}
