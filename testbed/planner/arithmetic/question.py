"""What is asked of the planner, and the designs that answer it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from math import ceil

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.planner.arithmetic.clos import MOST_TIERS, Clos, least_tiers, reach
from mrc_testbed.testbed.planner.arithmetic.design import Design, NicCable
from mrc_testbed.testbed.planner.arithmetic.parts import PartsList, SwitchPart, Transceiver
from mrc_testbed.testbed.planner.arithmetic.prices import Prices
from mrc_testbed.testbed.planner.arithmetic.quantities import rate_words

_GPUS_A_NODE = 8
"""NICs that one node may spread over separate fabrics."""


@dataclass(frozen=True, slots=True)
class Question:
    """`ports`: logical ports of a switch, empty where its bandwidth decides. `tiers`: empty where the planner chooses,
    and then sets one plane beside. One NIC a GPU."""

    gpus: Sequence[int]
    nic_gbps: int
    planes: Sequence[int]
    switches: Sequence[str]
    ports: Sequence[int]
    tiers: Sequence[int]
    transceiver: str
    nic_cable: NicCable


def designs(question: Question, parts: PartsList, prices: Prices | None = None) -> list[Design]:
    """Every combination of what is asked, in that order, those that do not fit among them. Raises UsageError."""
    for planes in question.planes:
        _refuse_planes(question.nic_gbps, planes, parts.lane_gbps)
    transceiver = _transceiver(question.transceiver, parts)
    made: dict[tuple[Clos, str], Design] = {}
    for gpus, name, limit in product(question.gpus, question.switches, question.ports or (None,)):
        switch = _switch(name, parts)
        for planes, tiers in _layouts(question, switch, gpus, limit):
            ports = _ports(switch, question.nic_gbps, planes, limit)
            clos = Clos(planes, tiers, ports, gpus)
            design = Design(clos, question.nic_gbps, switch, transceiver, question.nic_cable, parts, prices)
            made.setdefault((clos, name), design)
    return list(made.values())


def _layouts(question: Question, switch: SwitchPart, gpus: int, limit: int | None) -> Iterator[tuple[int, int]]:
    """(planes, tiers) as asked; where tiers are not, the fewest that reach, beside one plane with three and four."""
    if question.tiers:
        yield from product(question.planes, question.tiers)
        return
    for planes in dict.fromkeys((*question.planes, 1)):
        least = least_tiers(gpus, _ports(switch, question.nic_gbps, planes, limit)) or MOST_TIERS
        yield from ((planes, tiers) for tiers in ((3, 4) if planes == 1 and least > 2 else (least,)))


def _ports(switch: SwitchPart, nic_gbps: int, planes: int, limit: int | None) -> int:
    wanted = switch.capacity_gbps * planes // nic_gbps
    ports = min(wanted, limit or wanted)
    if ports < 2:
        port = rate_words(nic_gbps // planes)
        raise UsageError(f"--switch {rate_words(switch.capacity_gbps)}: has fewer than two ports of {port}")
    return ports


def _refuse_planes(nic_gbps: int, planes: int, lane_gbps: int) -> None:
    lanes, rest = divmod(nic_gbps, lane_gbps)
    lane = rate_words(lane_gbps)
    if rest or not lanes:
        raise UsageError(f"--nic {rate_words(nic_gbps)}: not a whole number of lanes of {lane}")
    if lanes % planes:
        fit = [str(each) for each in range(1, lanes + 1) if lanes % each == 0]
        choice = f"{', '.join(fit[:-1])} or {fit[-1]} planes" if len(fit) > 1 else "1 plane"
        raise UsageError(f"--planes {planes}: a NIC of {rate_words(nic_gbps)} has {lanes} lanes of {lane}: {choice}")


def _switch(name: str, parts: PartsList) -> SwitchPart:
    found = next((one for key, one in parts.switches.items() if key.lower() == name.lower()), None)
    if found is None:
        raise UsageError(f"--switch {name}: not known; there are {', '.join(parts.switches)}; add it by --parts FILE")
    return found


def _transceiver(name: str, parts: PartsList) -> Transceiver:
    if name not in parts.transceivers:
        near = get_close_matches(name, parts.transceivers, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        known = ", ".join(parts.transceivers)
        raise UsageError(f"--transceiver {name}: not known{hint}; there are {known}; add it by --parts FILE")
    return parts.transceivers[name]


def warnings(made: Sequence[Design]) -> list[str]:
    """What a buyer should know of these designs, a line each."""
    found: dict[str, None] = {}
    for design in made:
        if uneven := _uneven(design.clos):
            found[uneven] = None
        rate = design.transceiver.rate_gbps
        if design.nic_gbps % rate and design.nic_cable is NicCable.OPTICS:
            found[
                f"--nic {rate_words(design.nic_gbps)}: counted with {design.modules_of_nic} whole transceiver"
                f"{'s' * (design.modules_of_nic > 1)} of {rate_words(rate)} in each NIC; add one of its rate by --parts"
            ] = None
        listed, wanted = int(design.switch.logical_ports.value), design.clos.ports
        if wanted > listed:
            tiers = design.clos.tiers
            found[
                f"{wanted} ports of {rate_words(design.port_gbps)} wanted; {design.switch.name} systems list {listed} "
                f"logical ports at most; with `--ports {listed}` {tiers_words(tiers)} reach"
                f" {reach(tiers, listed):,} NICs"
            ] = None
    return list(found)


def _uneven(clos: Clos) -> str:
    """Why the counts of a design can only be wired unevenly, and what even wiring takes; empty if they are even."""
    if not clos.fits or clos.even_switches == clos.tier_switches:
        return ""
    fewest, most = clos.uplinks_to_one
    below, top = f"T{clos.tiers - 2}", f"T{clos.tiers - 1}"
    why = f"a {below} has {fewest} or {most} links to a {top}" if fewest < most else "pods are not full"
    planes = f"{clos.planes} plane{'s' * (clos.planes > 1)}"
    return (
        f"{clos.nics:,} GPUs, {planes}, {tiers_words(clos.tiers)}: {clos.switches:,} switches wired unevenly: {why};"
        f" evenly {sum(clos.even_switches):,}"
    )


def why_none_fits(made: Sequence[Design]) -> str:
    """Why no design has room for the GPUs asked for, and what would; empty if one has."""
    if any(design.clos.fits for design in made):
        return ""
    return "\n".join(dict.fromkeys(_too_small(design) for design in made))


def _too_small(design: Design) -> str:
    clos = design.clos
    said = [f"{tiers_words(clos.tiers)} with {clos.ports} ports reach {clos.most_nics:,}"]
    limit = clos.ports if clos.ports < _ports(design.switch, design.nic_gbps, clos.planes, None) else None
    lanes = design.nic_gbps // design.parts.lane_gbps
    for planes in (each for each in range(clos.planes + 1, lanes + 1) if lanes % each == 0):
        more = reach(clos.tiers, _ports(design.switch, design.nic_gbps, planes, limit))
        if more >= clos.nics:
            said.append(f"{planes} planes reach {more:,}")
            break
    if clos.tiers < MOST_TIERS:
        said.append(f"{tiers_words(clos.tiers + 1)} reach {reach(clos.tiers + 1, clos.ports):,}")
    separate = ceil(clos.nics / clos.most_nics)
    if separate <= _GPUS_A_NODE:
        said.append(f"or {separate} separate fabrics (one a NIC of a node)")
    return f"{clos.nics:,} GPUs do not fit: {'; '.join(said)}"


def tiers_words(count: int) -> str:
    """`two tiers`."""
    return ("one tier", "two tiers", "three tiers", "four tiers")[count - 1]
