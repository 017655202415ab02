"""Words of a comparison, made from figures of the oracle of comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, log10

from tests.oracles.comparison import Compared, Group, Told

PLURALS = {"kernel": "kernels", "cpus": "numbers of CPUs"}


def title(of: Compared) -> str:
    """Scenarios, and what was varied."""
    cells = of.drawn.cells
    order = [at for group in of.groups for at in group.cells]
    names = list(dict.fromkeys(cells[at]["scenario"] for at in order))
    if of.alike:
        return f"{names[0]}, {len(cells)} times"
    axes = " by " + " and ".join(key.split(".")[-1] for key in of.axes) if of.axes else ""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) + axes


def headline(of: Compared) -> str:
    """How many runs, in how many groups."""
    return f"{len(of.drawn.cells)} runs" + ("" if of.alike else f" in {len(of.groups)} groups")


def notes(of: Compared) -> Iterator[str]:
    """Caveats, in order."""
    yield from _other_work(of)
    yield from _machines(of)
    yield from _left_out(of)
    mine = _ran(of, of.groups[of.base])
    strange = [group.label for group in of.groups if mine and (own := _ran(of, group)) and not own & mine]
    if strange:
        base = of.groups[of.base].label
        yield f"no machine ran both {base} and {', '.join(strange)}: what differs may be the machines"
    yield from _partly(of)


def _other_work(of: Compared) -> Iterator[str]:
    if of.moved and not of.axes:
        scenarios = dict.fromkeys(of.drawn.cells[group.cells[0]]["scenario"] for group in of.groups)
        what = f"{', '.join(scenarios)} are different scenarios" if len(scenarios) > 1 else "the scenarios differ"
        yield f"{what}, in {len(of.moved)} keys: side by side, but no ratio here compares like with like"
    elif "workload.0.train.compute" in of.moved:
        yield "the workload differs (workload.0.train.compute): times and counts are of different work"


def _machines(of: Compared) -> Iterator[str]:
    for key, plural in PLURALS.items():
        found = {str(cell["environment"][key]) for cell in of.drawn.cells if cell["world"] == "kernel"}
        if len(found) > 1:
            yield f"the runs had different {plural}: {'; '.join(sorted(found))}"


def _left_out(of: Compared) -> Iterator[str]:
    spoiled = sum(not cell["fidelity"]["ok"] for cell in of.drawn.cells)
    runs = f"{spoiled} inconclusive run{'s' * (spoiled > 1)}"
    if spoiled and of.drawn.everything:
        yield f"{runs} counted (--count-inconclusive): the machine may have caused their figures"
    elif spoiled:
        yield f"{runs} shown, not counted; --count-inconclusive counts them"


def _ran(of: Compared, group: Group) -> set[str]:
    return {of.drawn.machines[at] for at in group.counted if of.drawn.cells[at]["world"] == "kernel"} - {""}


def _partly(of: Compared) -> Iterator[str]:
    alike: dict[str, list[str]] = {}
    for key, figure in of.figures().items():
        parts = [group for group in of.groups if 0 < len(of.values(group, key)) < len(group.counted)]
        if parts:
            cells = (of.drawn.cells[at] for at in parts[0].counted)
            why = next((cell["lacking"][key] for cell in cells if key in cell["lacking"]), "not measured")
            told = [f"{len(of.values(one, key))} of {len(one.counted)} runs of {one.label}" for one in parts]
            alike.setdefault(f"{', '.join(told)} ({why})", []).append(figure.title)
    for where, titles in alike.items():
        yield f"{'; '.join(titles)}: not judged, because only known for {where}"


def intervals(of: Compared) -> int:
    """How many there are, of figures that are not 0 everywhere."""
    keys = [key for key in of.figures() if not of.zero(key)]
    told = [of.cell(key, number)["estimate"] for key in keys for number in range(len(of.groups))]
    return sum(one is not None and one["low"] is not None for one in told)


def caveat(of: Compared) -> str:
    """How to read the intervals together."""
    if of.alike:
        return "All runs have the same settings: differences are chance or the machine."
    count = intervals(of)
    if not count:
        return "No intervals: each group needs two runs that count, better three (run --repeat 3)."
    machines = set[str]().union(*(_ran(of, group) for group in of.groups))
    how = f"within each of {len(machines)} machines, then over all of them" if len(machines) > 1 else ""
    if of.paired():
        how = f"of pairs with the same seed, {how or 'on logarithms'}"
    many = "hardly any" if count < 20 else f"about {count / 20:.0f}"
    intervals_ = "interval" if count == 1 else "intervals"
    return (
        f"Ratios are of geometric means, with 95 % intervals ({how or 'Welch, on logarithms'}). "
        f"Of {count} {intervals_}, {many} would be beyond chance by chance alone."
    )


def findings(of: Compared) -> Iterator[str]:
    """A sentence a group but the base: at most three differences, those first that a terminal shows."""
    if of.alike or len(of.groups) > 5 or not intervals(of):
        return
    figures = {key: one for key, one in of.figures().items() if not of.zero(key)}
    for number, group in enumerate(of.groups):
        if number != of.base:
            cells = {key: of.cell(key, number) for key in figures}
            differing = [key for main in (True, False) for key in figures if figures[key].main is main]
            said = [_finding(of, key, cells[key]) for key in differing if cells[key]["reads"]]
            more = f"; and {len(said) - 3} more" if len(said) > 3 else ""
            text = "; ".join(said[:3]) + more if said else _nothing(list(cells.values()))
            yield f"{group.label} against {of.groups[of.base].label}: {text}"


def _nothing(cells: list[Told]) -> str:
    if not any(cell["values"] for cell in cells):
        return "nothing to compare"
    if any(cell["estimate"] and cell["estimate"]["low"] is not None for cell in cells):
        return "no difference beyond chance"
    return "chance is unknown: each group needs two runs"


def _finding(of: Compared, key: str, cell: Told) -> str:
    value, low, high = (cell["estimate"][end] for end in ("value", "low", "high"))
    figure = of.figures()[key]
    if of.kind(key) == "ratio":
        digits = 3 if 0.95 < value < 1.05 else 2
        told = [_digits(one) if not 0.1 <= one < 10 else f"{one:.{digits}f}" for one in (value, low, high)]
        return f"{figure.title} \u00d7{told[0]} ({told[1]} to {told[2]}), {cell['reads']}"
    size = max(abs(one) for one in (value, low, high))
    told = ["+" * (one > 0) + "\u2212" * (one < 0) + _amount(figure.unit, abs(one), size) for one in (value, low, high)]
    return f"{figure.title} {told[0]} ({told[1]} to {told[2]}), {cell['reads']}"


def _amount(unit: str, value: float, size: float) -> str:
    """Three digits, with the unit that suits `size`."""
    if unit == "ns":
        unit, value = (
            ("s", value / 1e9) if size >= 999.5e6 else ("ms", value / 1e6) if size >= 999.5e3 else ("us", value / 1e3)
        )
    elif unit == "B/s":
        unit, value = ("Gb/s", value * 8 / 1e9) if size >= 10e9 / 8 else ("Mb/s", value * 8 / 1e6)
    return f"{_digits(value)} {'RTT' if unit == 'rtt' else unit}".rstrip().replace("RTT", "rtt")


def _digits(value: float) -> str:
    if value == 0:
        return "0"
    places = 2 - floor(log10(abs(value)))
    return str(round(value)) if places <= 0 or value == int(value) else f"{value:.3g}"
