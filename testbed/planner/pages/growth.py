"""Charts of what each kind of design takes of a NIC, over the number of GPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mrc_testbed.testbed.planner.arithmetic.clos import MOST_TIERS
from mrc_testbed.testbed.planner.arithmetic.design import Design
from mrc_testbed.testbed.planner.arithmetic.growth import Stretch, families, family, stretches
from mrc_testbed.testbed.planner.arithmetic.quantities import rate_words
from mrc_testbed.testbed.planner.pages.chart import Chart, Line, Point

_CHARTS = (
    ("longest_path", "switches on the longest path", ""),
    ("switches_a_nic", "switches a NIC", ""),
    ("transceivers_a_nic", "transceivers a NIC", ""),
    ("watts_a_nic", "power of switches and transceivers a NIC", "W"),
    ("links_a_nic", "links a NIC", ""),
    ("latency", "one-way latency over the longest path", "us"),
    ("cost_a_nic", "price of switches, transceivers, copper a NIC", ""),
)
_PATHS = [0.0, *(float(2 * tiers - 1) for tiers in range(1, MOST_TIERS + 1))]
_FEWEST = 1000
_BEYOND = 32
"""The axis goes on to this multiple of what is asked: four tiers of 64 ports end in sight of 131,072 GPUs."""


def family_name(design: Design, made: Sequence[Design]) -> str:
    """Of its split and its ports, and of its switch where there are several."""
    clos = design.clos
    planes = f"{clos.planes} plane{'s' if clos.planes > 1 else ''} x {rate_words(design.port_gbps)}"
    switch = f" of {design.switch.name}" if len({one.switch.name for one in made}) > 1 else ""
    return f"{planes}, {clos.ports} ports{switch}"


def growth_charts(made: Sequence[Design]) -> list[Chart]:
    """One a figure that designs have, with a line a family, in the order of `families`."""
    sizes = sorted({design.clos.nics for design in made})
    low, high = min(_FEWEST, sizes[0]), _BEYOND * sizes[-1]
    grown = [(one, stretches(one)) for one in families(made)]
    found = []
    for key, title, unit in _CHARTS:
        lines = [_line(one, parts, made, key, (low, high)) for one, parts in grown]
        if any(line.points for line in lines):
            levels = _PATHS if key == "longest_path" else ()
            priced = made[0].prices if key == "cost_a_nic" else None
            found.append(Chart(title, priced.currency if priced else unit, "GPUs", low, high, lines, sizes, levels))
    return found


def _line(first: Design, parts: Sequence[Stretch], made: Sequence[Design], key: str, axis: tuple[float, float]) -> Line:
    low, high = axis
    ours = [design for design in made if design.clos.fits and family(design) == family(first)]
    return Line(
        family_name(first, made),
        [point for part in parts for point in _level(part, key, low, high)],
        [point for design in ours for point in _dot(design, key)],
        ends=parts[-1].full.clos.nics < high,
    )


def _level(part: Stretch, key: str, low: float, high: float) -> Iterator[Point]:
    most, number = part.full.clos.nics, part.full.numbers().get(key)
    if number is not None and most >= low and part.fewest <= high:
        yield max(part.fewest, low), number.value
        yield min(most, high), number.value


def _dot(design: Design, key: str) -> Iterator[Point]:
    number = design.numbers().get(key)
    if number is not None:
        yield design.clos.nics, number.value
