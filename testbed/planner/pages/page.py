"""Planned networks as one self-contained page. Pure but for the files of the page itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from mrc_testbed.testbed.pages.assemble import assemble
from mrc_testbed.testbed.planner.arithmetic.clos import MOST_TIERS, least_tiers, reach
from mrc_testbed.testbed.planner.arithmetic.design import Design
from mrc_testbed.testbed.planner.arithmetic.failures import FailurePlan
from mrc_testbed.testbed.planner.arithmetic.growth import families
from mrc_testbed.testbed.planner.arithmetic.quantities import rate_words
from mrc_testbed.testbed.planner.pages.chart import SCRIPTS, STYLES, drawing, key, reading_data
from mrc_testbed.testbed.planner.pages.failures import failure_charts
from mrc_testbed.testbed.planner.pages.growth import family_name, growth_charts
from mrc_testbed.testbed.planner.pages.table import base_of, design_rows, job_rows
from mrc_testbed.testbed.planner.pages.tiers import tiers_drawing
from mrc_testbed.testbed.planner.report.campaigns import campaign_table
from mrc_testbed.testbed.planner.report.designs import TIER_WORDS, Footnotes, cell_words, design_title
from mrc_testbed.testbed.planner.report.failures import FailureNotes

_HEADLINES = (
    ("switches", "switches"),
    ("switches_a_nic", "switches a NIC"),
    ("transceivers_a_nic", "transceivers a NIC"),
    ("watts_a_nic", "power a NIC"),
    ("cost_a_nic", "price a NIC"),
    ("longest_path", "switches on the longest path"),
    ("latency", "one-way latency over it"),
    ("port_loss", "a lost NIC-T0 link takes"),
)
"""Of a design, below its picture."""
_COMPARED = (("switches_a_nic", "switches"), ("transceivers_a_nic", "transceivers"), ("watts_a_nic", "power"))


class Card(NamedTuple):
    """A design with its picture. `sum`: how far it reaches and why. `numbers`: label, value, range, mark."""

    title: str
    design: Design
    sum: str
    picture: Markup
    numbers: Sequence[tuple[str, str, str, str]]


class Reached(NamedTuple):
    """NICs that a number of tiers of a family has room for, and the sizes asked for that need no fewer tiers."""

    most: int
    enough: Sequence[int]


def plan_page(
    made: Sequence[Design], plans: Sequence[FailurePlan | None], document: Mapping[str, Any], command: str
) -> str:
    """The text of the page of these designs and the jobs on them. `document`: all of it, as `--json` has it; `command`:
    what was called."""
    footnotes, jobs = Footnotes(made), [plan for plan in plans if plan]
    growth, failures = growth_charts(made), failure_charts(made, plans, document["failures"])
    failure_notes = FailureNotes(jobs)
    values: dict[str, Any] = {
        "title": _title(made),
        "asked": asked(made[0], made),
        "notes": [_noted(note) for note in document["warnings"]],
        "findings": list(findings(made)),
        "groups": [(size, [_card(design, made) for design in ours]) for size, ours in by_size(made)],
        "tiers": TIER_WORDS,
        "reaches": [(family_name(one, made), _reaches(one, made)) for one in families(made)],
        "legend": [(key(number), family_name(one, made)) for number, one in enumerate(families(made))],
        "growth": [("", chart, drawing(chart)) for chart in growth],
        "recoveries": [(key(number), recovery.name) for number, recovery in enumerate(jobs[0].recoveries)],
        "failures": [(name, chart, drawing(chart)) for name, chart in failures],
        "campaigns": campaign_table([(one, plan) for one, plan in zip(made, plans, strict=True) if plan]),
        "job_heads": [design_title(design).split("\n") for design, plan in zip(made, plans, strict=True) if plan],
        "job_rows": list(job_rows(jobs, failure_notes)),
        "job_notes": list(failure_notes.entries()),
        "nic": rate_words(made[0].nic_gbps),
        "heads": [design_title(design).split("\n") for design in made],
        "rows": list(design_rows(made, footnotes)),
        "footnotes": list(footnotes.entries()),
        "command": command,
    }
    charts = [*growth, *(chart for _, chart in failures)]
    data = {"plan": document, **reading_data(charts)}
    return assemble("planner/pages/plan.html", values, data, STYLES, SCRIPTS)


def _title(made: Sequence[Design]) -> str:
    sizes = [f"{size:,}" for size in dict.fromkeys(design.clos.nics for design in made)]
    return f"Networks for {_listed(sizes)} GPUs"


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def asked(design: Design, made: Sequence[Design]) -> str:
    """The question in words."""
    switches = {
        f"{one.switch.name} ({rate_words(one.switch.capacity_gbps)}, {one.switch.watts.value:g} W)": None
        for one in made
    }
    module = f"{design.transceiver.rate_gbps}G, {design.transceiver.watts.value:g} W"
    cable = "fibre" if design.nic_cable == "optics" else "copper"
    return (
        f"What does a network take in which each GPU has a NIC of {rate_words(design.nic_gbps)}? Switches: "
        f"{_listed(list(switches))}; transceivers: {module}; from a NIC to its T0s {cable}; no oversubscription."
    )


def findings(made: Sequence[Design]) -> Iterator[tuple[str, list[str]]]:
    """For each size the first design that has room, and what each further one takes over it."""
    for size, ours in by_size(made):
        base = base_of(ours)
        heading = f"{size:,} GPUs, over {_short(base)}:" if base.clos.fits else f"{size:,} GPUs:"
        if lines := [_finding(design, base) for design in ours if design is not base or not design.clos.fits]:
            yield heading, lines


def _finding(design: Design, base: Design) -> str:
    if not design.clos.fits:
        return f"{_short(design)}: no room; it ends at {design.clos.most_nics:,} GPUs."
    numbers, first = design.numbers(), base.numbers()
    ratios = [
        f"{one.value / other.value:.2f} times the {word}"
        for figure, word in _COMPARED
        if (one := numbers[figure]) and (other := first[figure]) and other.value
    ]
    path, other_path = design.clos.longest_path, base.clos.longest_path
    longest = f"{path} switches on the longest path{'' if path == other_path else f', not {other_path}'}"
    return f"{_short(design)}: {_listed(ratios)} a NIC; {longest}."


def by_size(made: Sequence[Design]) -> list[tuple[int, list[Design]]]:
    """Designs for as many GPUs together."""
    sizes = dict.fromkeys(design.clos.nics for design in made)
    return [(size, [design for design in made if design.clos.nics == size]) for size in sizes]


def _short(design: Design) -> str:
    return ", ".join(design_title(design).split("\n")[1:])


def _noted(note: str) -> Markup:
    """Text in backticks is for a command line."""
    return Markup(re.sub("`(.*?)`", r"<code>\1</code>", str(escape(note))))


def _card(design: Design, made: Sequence[Design]) -> Card:
    numbers = design.numbers() if design.clos.fits else {}
    first = base_of(made).numbers()
    shown = []
    for figure, label in _HEADLINES:
        if number := numbers.get(figure):
            said, *between = cell_words(figure, number, first.get(figure)).split("\n")
            shown.append((label, said, "".join(between), number.mark.value))
    title = f"{family_name(design, made)}, {TIER_WORDS[design.clos.tiers - 1]}"
    return Card(title, design, _reach_sum(design), tiers_drawing(design), shown)


def _reach_sum(design: Design) -> str:
    """What the tiers below the top one multiply its ports by."""
    clos = design.clos
    factors = " x ".join([str(clos.ports), *[str(clos.half)] * (clos.tiers - 1)])
    return f"{factors} = {clos.most_nics:,} NICs" if clos.tiers > 1 else f"{clos.most_nics:,} NICs"


def _reaches(one: Design, made: Sequence[Design]) -> list[Reached]:
    sizes = dict.fromkeys(design.clos.nics for design in made)
    ports = one.clos.ports
    return [
        Reached(reach(tiers, ports), [size for size in sizes if least_tiers(size, ports) == tiers])
        for tiers in range(1, MOST_TIERS + 1)
    ]
