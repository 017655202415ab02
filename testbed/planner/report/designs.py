"""Planned fabrics side by side: a table for people, a document for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from mrc_testbed.testbed.planner.arithmetic.design import Design
from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, Provenance
from mrc_testbed.testbed.planner.arithmetic.quantities import rate_words
from mrc_testbed.testbed.report.side_by_side import SideBySideRow, show_side_by_side

ROWS = (
    ("switches", "switches"),
    ("switches_t0", "  T0"),
    ("switches_t1", "  T1"),
    ("switches_t2", "  T2"),
    ("switches_t3", "  T3"),
    ("even_switches", "  if wired evenly"),
    ("switches_a_nic", "  a NIC"),
    ("links", "links"),
    ("links_a_nic", "  a NIC"),
    ("transceivers", "transceivers (ports of a switch share)"),
    ("transceivers_a_nic", "  a NIC"),
    ("lasers", "lasers"),
    ("lasers_to_t0_a_nic", "  from a NIC to its T0s and back, a NIC"),
    ("watts", "power of switches and transceivers"),
    ("watts_a_nic", "  a NIC"),
    ("optics_share", "  of it transceivers"),
    ("cost", "price of switches, transceivers, copper"),
    ("cost_a_nic", "  a NIC"),
    ("longest_path", "switches on the longest path"),
    ("latency", "one-way latency over it"),
    ("nics_below_t0", "NICs below a T0"),
    ("paths", "paths between a pair, the farthest apart"),
    ("ev_share", "  of them in a QP's EVs"),
    ("uplink_loss_in_plane", "a lost T0-T1 link takes, in its plane"),
    ("uplink_loss", "  of all that a node has"),
    ("t1_loss_in_plane", "a lost T1 takes, in its plane"),
    ("port_loss", "a lost NIC-T0 link takes from its node"),
    ("t0_loss", "a lost T0 takes from each node below"),
    ("nic_loss", "a lost NIC or its transceiver takes"),
)
_DEADLY = {"port_loss", "t0_loss", "nic_loss"}
"""Losses that are all of a node's bandwidth end its QPs."""
_A_NIC = {"switches_a_nic", "links_a_nic", "transceivers_a_nic", "watts_a_nic", "cost_a_nic"}
TIER_WORDS = ("one tier", "two tiers", "three tiers", "four tiers")


def show_designs(made: Sequence[Design], console: Console) -> None:
    """Tables of all designs, then the numbers that they rest on."""
    parts = Footnotes(made)
    base = next((design for design in made if design.clos.fits), made[0])
    show_side_by_side(made, lambda some: list(_rows(some, base, parts)), console)
    for line in parts.lines():
        console.print(line, soft_wrap=True)


def _rows(made: Sequence[Design], base: Design, parts: Footnotes) -> Iterator[SideBySideRow]:
    yield SideBySideRow(
        f"a NIC of {rate_words(made[0].nic_gbps)} a GPU", [design_title(design) for design in made], "mark"
    )
    yield SideBySideRow("room for the GPUs", [room_words(design) for design in made], Provenance.DERIVED.value)
    numbers = [design.numbers() if design.clos.fits else {} for design in made]
    first = base.numbers()
    for key, label in ROWS:
        row = [each.get(key) for each in numbers]
        if any(row):
            cells = [cell_words(key, one, first.get(key)) for one in row]
            yield SideBySideRow(label, cells, parts.mark(row, made))


def design_title(design: Design) -> str:
    """Above its column."""
    clos = design.clos
    planes = f"{clos.planes} plane{'s' if clos.planes > 1 else ''} x {rate_words(design.port_gbps)}"
    return f"{clos.nics:,} GPUs\n{planes}\n{TIER_WORDS[clos.tiers - 1]}\n{clos.ports} ports"


def room_words(design: Design) -> str:
    """Whether its GPUs have room in it."""
    return "yes" if design.clos.fits else f"no: <= {design.clos.most_nics:,}"


def cell_words(key: str, number: MarkedNumber | None, base: MarkedNumber | None) -> str:
    """One number of a row, with its range in a second line if it has one. `base`: the same of the first design that has
    room."""
    if number is not None and key in _DEADLY and number.value >= 100:
        return "its QPs"
    said = _ratio_cell(number, base) if key in _A_NIC else number_words(number)
    return f"{said}\n{range_words(number)}" if number is not None and number.is_range else said


def _ratio_cell(number: MarkedNumber | None, base: MarkedNumber | None) -> str:
    """With its ratio to the first design that has room, if it is another."""
    if number is None or base is None or number.value == base.value or not base.value:
        return number_words(number)
    return f"{number_words(number)}, x {number.value / base.value:.2f}"


def number_words(number: MarkedNumber | None) -> str:
    """A number with its unit, as people read it."""
    if number is None:
        return "-"
    scale, unit, form = _form(number)
    return f"{form(number.value / scale)} {unit}".strip()


def range_words(number: MarkedNumber) -> str:
    """From its low to its high end."""
    scale, unit, form = _form(number)
    return f"{form(number.low / scale)}-{form(number.high / scale)} {unit}".strip()


def _form(number: MarkedNumber) -> tuple[float, str, Callable[[float], str]]:
    if number.unit == "W" and number.value >= 1e5:
        return 1e6, "MW", "{:.3g}".format
    if number.unit in {"%", "us", "W"}:
        return 1, number.unit, ("{:.2g}" if number.value < 1 else "{:.3g}" if number.value < 1000 else "{:,.0f}").format
    if all(each == int(each) for each in (number.value, number.low, number.high)):
        return 1, "", "{:,.0f}".format
    return (1, "", "{:.3g}".format) if number.value < 1000 else (1, "", "{:,.0f}".format)


class Footnotes:
    """The numbers of parts that designs rest on, numbered in the order in which they are met."""

    def __init__(self, made: Sequence[Design]) -> None:
        self._place: dict[tuple[str, MarkedNumber], int] = {}
        for design in made:
            for entry in design.part_numbers().items():
                self._place.setdefault(entry, len(self._place) + 1)

    def mark(self, row: Sequence[MarkedNumber | None], made: Sequence[Design]) -> str:
        """Of a row: the marks of its numbers, and the parts that they rest on."""
        marks = dict.fromkeys(number.mark.value for number in row if number)
        return ", ".join(marks) + "".join(f" [{note}]" for note in self.notes(row, made))

    def notes(self, row: Sequence[MarkedNumber | None], made: Sequence[Design]) -> list[int]:
        """The parts that the numbers of a row rest on."""
        return sorted(
            {
                self._place[name, design.part_numbers()[name]]
                for number, design in zip(row, made, strict=True)
                if number
                for name in number.rests_on
            }
        )

    def entries(self) -> Iterator[tuple[int, str]]:
        """The number of each part, and what it is."""
        for (name, number), place in self._place.items():
            between = f" ({range_words(number)})" if number.is_range else ""
            yield place, f"{name.replace('_', ' ')}: {number_words(number)}{between}, {number.mark}: {number.source}"

    def lines(self) -> Iterator[str]:
        """The same for a terminal."""
        return (f"[{place}] {said}" for place, said in self.entries())


def plan_document(made: Sequence[Design], notes: Sequence[str]) -> dict[str, Any]:
    """All designs as JSON types. A design without room has no `numbers`, but for how many NICs it reaches."""
    return {"designs": [_document(design) for design in made], "warnings": list(notes)}


def _document(design: Design) -> dict[str, Any]:
    numbers = design.numbers()
    shown = numbers if design.clos.fits else {key: numbers[key] for key in ("switch_ports", "most_nics")}
    return {
        "gpus": design.clos.nics,
        "planes": design.clos.planes,
        "tiers": design.clos.tiers,
        "port_gbps": design.port_gbps,
        "fits": design.clos.fits,
        "numbers": {key: number and asdict(number) for key, number in shown.items()},
        "rests_on": {name: asdict(number) for name, number in design.part_numbers().items()},
    }
