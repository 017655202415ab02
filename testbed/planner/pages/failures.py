"""What failures take from a job: curves of effective training time, one a recovery. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrc_testbed.testbed.planner.arithmetic.design import Design
from mrc_testbed.testbed.planner.arithmetic.failures import FailurePlan
from mrc_testbed.testbed.planner.arithmetic.growth import family
from mrc_testbed.testbed.planner.pages.chart import Chart, Line
from mrc_testbed.testbed.planner.pages.growth import family_name

_LEVELS = tuple(float(level) for level in range(0, 101, 20))
_CURVES = (("effective_over_gpus", "GPUs", "its size"), ("effective_over_flaps", "T0-T1 flaps a minute", "flaps"))


def failure_charts(
    made: Sequence[Design], plans: Sequence[FailurePlan | None], documents: Sequence[Mapping[str, Any] | None]
) -> list[tuple[str, Chart]]:
    """Of each family the curves of its largest job, each with the family's name. `documents`: those of
    `failures_document`, in which the curves are."""
    largest: dict[tuple[int, str, int], tuple[Design, FailurePlan, Mapping[str, Any]]] = {}
    for design, plan, document in zip(made, plans, documents, strict=True):
        if plan and document:
            found = largest.get(family(design))
            if not found or found[1].job.gpus < plan.job.gpus:
                largest[family(design)] = (design, plan, document)
    return [
        (family_name(design, made), _chart(document[key], across, over, plan))
        for design, plan, document in largest.values()
        for key, across, over in _CURVES
        if sum(x > 0 for x, _ in document[key][0]["points"]) > 1
    ]


def _chart(curves: Sequence[Mapping[str, Any]], across: str, over: str, plan: FailurePlan) -> Chart:
    """Over a logarithmic axis, so from the first value above 0."""
    xs = [x for x, _ in curves[0]["points"] if x > 0]
    flaps = plan.job.numbers()["flaps"]
    asked = float(plan.job.gpus) if across == "GPUs" else flaps.value if flaps else 0.0
    lines = [
        Line(
            curve["name"],
            [point for point in curve["points"] if point[0] > 0],
            band=[(low, high) for x, low, high in curve["band"] if x > 0],
        )
        for curve in curves
    ]
    marked = [asked] if xs[0] <= asked <= xs[-1] else []
    title = f"effective training time of a job over {over}"
    return Chart(title, "%", across, xs[0], xs[-1], lines, marked, _LEVELS, sampled=True)
