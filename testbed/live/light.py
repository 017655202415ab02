"""Does the machine keep time? A light while the run lasts; the verdict is what counts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from testbed.checks.fidelity import machine_figures
from testbed.checks.result import FidelityFigure
from testbed.checks.scale import number
from testbed.scenario import Scenario

NEAR = 0.8
"""From this part of a limit on the machine is strained."""


class Light(NamedTuple):
    """`light`: good, strained, lost or unknown. `text`: the figure that says so."""

    light: str
    text: str


UNKNOWN = Light("unknown", "no measurement yet")


def fidelity_light(raw: Mapping[str, Any], scenario: Scenario) -> Light:
    """The same figures against the same limits as for the verdict, over the time that has passed. `raw`: what of
    fidelity.json is known; a figure that is not there says nothing."""
    known = [figure for figure in machine_figures(raw, scenario) if figure.observed is not None]
    if not known:
        return UNKNOWN
    worst = max(known, key=_share)
    if _share(worst) > 1:
        return Light("lost", worst.why)
    return Light("strained" if _share(worst) >= NEAR else "good", _text(worst))


def _share(figure: FidelityFigure) -> float:
    """The part of its limit that a figure has reached; one with the limit 0 is at it or far above."""
    observed, limit = figure.observed or 0.0, figure.limit or 0.0
    return observed / limit if limit else (float("inf") if observed > 0 else 0.0)


def _text(figure: FidelityFigure) -> str:
    return f"{figure.name} {number(figure.observed or 0.0)} {figure.unit} (limit {number(figure.limit or 0.0)})"
