"""A live indicator of whether the machine keeps time; only the verdict counts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mrc_testbed.testbed.checks.cause import of_figure
from mrc_testbed.testbed.checks.fidelity import machine_figures
from mrc_testbed.testbed.checks.result import FidelityFigure
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.scenario import Scenario

NEAR = 0.8
"""From this share of a limit on the machine is strained."""


class Light(NamedTuple):
    """`light`: good, strained, lost, unknown, or virtual. `text`: the decisive figure."""

    light: str
    text: str


UNKNOWN = Light("unknown", "no measurement yet")
VIRTUAL = Light("virtual", "no machine has to keep time")


def fidelity_light(raw: Mapping[str, Any], scenario: Scenario) -> Light:
    """The same figures and limits as for the verdict, over the time so far. `raw`: the known part of fidelity.json;
    missing figures are ignored."""
    known = [
        figure for figure in machine_figures(raw, scenario) if figure.observed is not None and figure.limit is not None
    ]
    if not known:
        return UNKNOWN
    worst = max(known, key=_share)
    if _share(worst) > 1:
        return Light("lost", of_figure(worst).said)
    return Light("strained" if _share(worst) >= NEAR else "good", _text(worst))


def _share(figure: FidelityFigure) -> float:
    """A figure as a share of its limit; with limit 0 it is at the limit or far above."""
    observed, limit = figure.observed or 0.0, figure.limit or 0.0
    return observed / limit if limit else (float("inf") if observed > 0 else 0.0)


def _text(figure: FidelityFigure) -> str:
    return f"{figure.name} {number(figure.observed or 0.0)} {figure.unit} (limit {number(figure.limit or 0.0)})"
