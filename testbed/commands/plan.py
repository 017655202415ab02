"""`mrc-testbed plan`: networks of any size on paper."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from testbed.errors import ExitCode, RunError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from testbed.planner.design import Design
    from testbed.planner.question import Question

_Gpus = Annotated[str, typer.Option(metavar="N,...", help="GPUs, each with one NIC; 131072 or 10k.")]
_Nic = Annotated[str, typer.Option(metavar="RATE", help="Rate of a NIC over all its planes.")]
_Planes = Annotated[str, typer.Option(metavar="N,...", help="Planes that a NIC is split over, as in 1,4,8.")]
_Switch = Annotated[str, typer.Option(metavar="RATE,...", help="Bandwidth of a switch, by which --parts knows it.")]
_Ports = Annotated[
    str,
    typer.Option(metavar="N,...", help="Logical ports of a switch, if its bandwidth allows more.", show_default=False),
]
_Tiers = Annotated[
    str,
    typer.Option(metavar="N,...", help="1 to 4. Without: the fewest, and one plane beside them.", show_default=False),
]
_Transceiver = Annotated[str, typer.Option(metavar="NAME", help="Kind of optics: dsp, lpo, or one of --parts.")]
_Cable = Annotated[str, typer.Option("--nic-cable", metavar="optics|dac", help="NIC to T0: fibre or copper.")]
_PartsFile = Annotated[
    Path | None, typer.Option("--parts", metavar="FILE", help="Switches, optics and their sources (TOML).")
]
_PricesFile = Annotated[
    Path | None, typer.Option("--prices", metavar="FILE", help="What they cost (TOML); there are no default prices.")
]
_Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write everything as JSON; - for standard output.")
]
_Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with drawings and curves.")]
_Balls = Annotated[bool, typer.Option("--balls", help="Instead: how evenly --flows load --links, hashed or sprayed.")]
_Flows = Annotated[str, typer.Option(metavar="N,...", help="With --balls: flows.")]
_Links = Annotated[str, typer.Option(metavar="N,...", help="With --balls: links that they may take.")]
_Seed = Annotated[int, typer.Option(min=0, help="With --balls: of the simulation.")]


def plan(
    gpus: _Gpus = "131072",
    nic: _Nic = "800G",
    planes: _Planes = "8",
    switch: _Switch = "51.2T",
    ports: _Ports = "",
    tiers: _Tiers = "",
    transceiver: _Transceiver = "dsp",
    nic_cable: _Cable = "optics",
    parts: _PartsFile = None,
    prices: _PricesFile = None,
    json: _Json = None,
    html: _Html = None,
    balls: _Balls = False,
    flows: _Flows = "256",
    links: _Links = "4,32,256,2048",
    seed: _Seed = 1,
) -> None:
    """Show what networks take and what a lost part takes from them, designs side by side; nothing is built.

    Every number says where it comes from: published, derived, assumed, or given by you. Ranges are those of its parts.
    The status is 1 if no design has room for the GPUs.
    """
    if balls:
        _balls(flows, links, seed, json)
        return
    from testbed.planner.parts import load_parts
    from testbed.planner.prices import load_prices
    from testbed.planner.question import designs, why_none_fits
    from testbed.planner.question import warnings as warnings_of

    question = _question(gpus, nic, planes, switch, ports, tiers, transceiver, nic_cable)
    known = load_parts(_text(parts, "--parts"), str(parts)) if parts else load_parts()
    made = designs(question, known, load_prices(_text(prices, "--prices"), str(prices)) if prices else None)
    notes = [*_taken(gpus), *warnings_of(made)]
    for note in notes:
        typer.echo(f"warning: {note}", err=True)
    if reason := why_none_fits(made):
        typer.echo(reason, err=True)
        raise typer.Exit(ExitCode.FAIL)
    _show(made, notes, json)
    if html:
        from testbed.pages.plan.page import plan_page

        _write(html, plan_page(made, notes, _command()), said=str(json) != "-")


def _show(made: Sequence[Design], notes: Sequence[str], json: Path | None) -> None:
    from testbed.report.plan import plan_document, show_designs

    _output(plan_document(made, notes), partial(show_designs, made), json)


def _balls(flows: str, links: str, seed: int, json: Path | None) -> None:
    from testbed.planner.balls import MOST, crowding
    from testbed.planner.quantities import listed, whole
    from testbed.report.balls import crowding_document, show_crowding

    counts = [
        [whole(each, option, 1, MOST) for each in listed(text)]
        for option, text in (("--flows", flows), ("--links", links))
    ]
    rows = [crowding(some, over, seed) for some, over in product(*counts)]
    _output(crowding_document(rows), partial(show_crowding, rows), json)


def _output(document: dict[str, Any], show: Callable[[Console], None], json: Path | None) -> None:
    """As JSON on standard output, or as a table with JSON in a file if one is asked for."""
    from json import dumps

    from testbed.report.console import open_console

    if str(json) == "-":
        typer.echo(dumps(document, indent=2))
        return
    show(open_console())
    if json:
        _write(json, dumps(document, indent=2) + "\n")


def _command() -> str:
    """What was called."""
    return shlex.join(["mrc-testbed", *sys.argv[1:]])


def _write(path: Path, text: str, said: bool = True) -> None:
    """Raises RunError. `said`: standard output is free for the name of the file."""
    from testbed.rundir.ownership import write_given

    try:
        write_given(path, text)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error
    typer.echo(f"{path}", err=not said)


def _question(
    gpus: str, nic: str, planes: str, switch: str, ports: str, tiers: str, transceiver: str, nic_cable: str
) -> Question:
    """Of the options as written. Raises UsageError."""
    from testbed.planner.design import NicCable
    from testbed.planner.quantities import listed, rate_gbps, whole
    from testbed.planner.question import Question

    if nic_cable not in set(NicCable):
        raise UsageError(f"--nic-cable {nic_cable}: write {' or '.join(NicCable)}")
    return Question(
        gpus=[whole(each, "--gpus", 2) for each in listed(gpus)],
        nic_gbps=rate_gbps(nic, "--nic"),
        planes=[whole(each, "--planes", 1) for each in listed(planes)],
        switches=listed(switch),
        ports=[whole(each, "--ports", 2) for each in listed(ports)] if ports else [],
        tiers=[_tier(each) for each in listed(tiers)] if tiers else [],
        transceiver=transceiver,
        nic_cable=NicCable(nic_cable),
    )


def _tier(text: str) -> int:
    from testbed.planner.clos import MOST_TIERS
    from testbed.planner.quantities import whole

    count = whole(text, "--tiers", 1)
    if count > MOST_TIERS:
        raise UsageError(f"--tiers {text}: 1 to {MOST_TIERS}")
    return count


def _taken(gpus: str) -> list[str]:
    """What a count that is not written out was taken for."""
    from testbed.planner.quantities import listed, whole

    return [f"--gpus {each} is taken as {whole(each, '--gpus', 2):,}" for each in listed(gpus) if not each.isdecimal()]


def _text(path: Path, option: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{option} {path}: not UTF-8 text") from None
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}") from None
