"""`mrc-testbed plan`: networks of any size on paper."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrc_testbed.testbed.commands.output import write_asked
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.planner.commands import options as option
from mrc_testbed.testbed.planner.commands.bridge import measured_recoveries, small_scenario
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from mrc_testbed.testbed.planner.arithmetic.chance import Outlook
    from mrc_testbed.testbed.planner.arithmetic.design import Design
    from mrc_testbed.testbed.planner.arithmetic.failures import FailurePlan, PlannedJob
    from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber
    from mrc_testbed.testbed.planner.arithmetic.parts import PartsList
    from mrc_testbed.testbed.planner.arithmetic.question import Question
    from mrc_testbed.testbed.planner.arithmetic.recovery import PathRecovery


def plan(
    gpus: option.Gpus = "131072",
    nic: option.Nic = "800G",
    planes: option.Planes = "8",
    switch: option.Switch = "51.2T",
    ports: option.Ports = "",
    tiers: option.Tiers = "",
    transceiver: option.Transceiver = "dsp",
    nic_cable: option.Cable = "optics",
    parts: option.PartsFile = None,
    prices: option.PricesFile = None,
    json: option.Json = None,
    html: option.Html = None,
    measured: option.Measured = None,
    scenario: option.ScenarioOut = None,
    balls: option.Balls = False,
    flows: option.Flows = "256",
    links: option.Links = "4,32,256,2048",
    seed: option.Seed = 1,
    job: option.JobSize = "",
    flaps: option.Flaps = "",
    rtt: option.Rtt = "",
    exposed: option.Exposed = "",
    checkpoint: option.Checkpoint = "",
    restart: option.Restart = "",
    repair: option.Repair = "",
    monte_carlo: option.MonteCarlo = "",
    days: option.Days = "54",
    step: option.Step = "",
) -> None:
    """Show what networks take and what failures take from them, designs side by side; nothing is built.

    Every number says where it comes from: published, derived, assumed, or given by you. Ranges are those of its parts.
    The status is 1 if no design has room for the GPUs.
    """
    if balls:
        _balls(flows, links, seed, json, html)
        return
    from mrc_testbed.testbed.planner.arithmetic.design import NicCable
    from mrc_testbed.testbed.planner.arithmetic.parts import load_parts
    from mrc_testbed.testbed.planner.arithmetic.prices import load_prices
    from mrc_testbed.testbed.planner.arithmetic.question import designs, why_none_fits
    from mrc_testbed.testbed.planner.arithmetic.question import warnings as warnings_of

    question = _question(gpus, nic, planes, switch, ports, tiers, transceiver, nic_cable)
    known = load_parts(_text(parts, "--parts"), str(parts)) if parts else load_parts()
    copper = question.nic_cable is NicCable.DAC
    priced = load_prices(_text(prices, "--prices"), str(prices), copper) if prices else None
    made = designs(question, known, priced)
    asked = option.FailureOptions(job, flaps, rtt, exposed, checkpoint, restart, repair, monte_carlo, days, seed, step)
    jobs = _jobs(made, known, asked, measured or [])
    notes = [*_taken(gpus), *warnings_of(made), *_doubts(jobs)]
    for note in notes:
        say(f"warning: {note}", err=True)
    if reason := why_none_fits(made):
        say(reason, err=True)
        raise typer.Exit(ExitCode.FAIL)
    step_s = asked.numbers(known.failures)["step"].value
    small = small_scenario(made, jobs, question.planes, step_s, scenario, _command()) if scenario else ""
    _show(made, jobs, notes, json, html)
    if scenario:
        _write("--scenario", scenario, small, to_stderr=str(json) == "-")


def _jobs(
    made: Sequence[Design], known: PartsList, asked: option.FailureOptions, measured: Sequence[Path]
) -> list[FailurePlan | None]:
    """What befalls the job on each design; None where the GPUs have no room. Raises UsageError."""
    from mrc_testbed.testbed.planner.arithmetic.failures import FailurePlan, PlannedJob, listed_failures

    numbers = asked.numbers(known.failures)
    recoveries = _recoveries(known, numbers["rtt"], measured)
    stated = {"rtt": numbers["rtt"], "mrc": known.recovery["mrc"]}
    failures, flaps = listed_failures(numbers), asked.flaps_given()
    jobs: list[FailurePlan | None] = []
    for clos in (design.clos for design in made):
        gpus = asked.job_gpus(clos.nics)
        job = PlannedJob(clos, gpus, failures.with_flaps(flaps, gpus) if flaps else failures)
        jobs.append(FailurePlan(job, recoveries, stated, _outlook(job, recoveries, asked)) if clos.fits else None)
    return jobs


def _recoveries(known: PartsList, rtt: MarkedNumber, measured: Sequence[Path]) -> tuple[PathRecovery, ...]:
    """All that the job may have, from the parts list and from runs."""
    from mrc_testbed.testbed.planner.arithmetic.recoveries import listed_recoveries

    return (*listed_recoveries(known.recovery, rtt), *measured_recoveries(measured, rtt))


def _outlook(job: PlannedJob, recoveries: Sequence[PathRecovery], asked: option.FailureOptions) -> Outlook | None:
    if not (wanted := asked.campaigns()):
        return None
    from mrc_testbed.testbed.planner.arithmetic.chance import simulate

    campaigns, days = wanted
    return simulate(job.case, recoveries, campaigns, days, asked.seed)


def _doubts(jobs: Sequence[FailurePlan | None]) -> list[str]:
    """Where jobs leave what the model is for, each once."""
    return list(dict.fromkeys(doubt for plan in jobs if plan for doubt in plan.job.case.doubts()))


def _show(
    made: Sequence[Design],
    jobs: Sequence[FailurePlan | None],
    notes: Sequence[str],
    json: Path | None,
    html: Path | None,
) -> None:
    from mrc_testbed.testbed.planner.report.designs import plan_document, show_designs
    from mrc_testbed.testbed.planner.report.failures import failures_document, show_failures

    def show(console: Console) -> None:
        show_designs(made, console)
        show_failures(made, jobs, console)

    def page() -> str:
        from mrc_testbed.testbed.planner.pages.page import plan_page

        return plan_page(made, jobs, document, _command())

    document = {**plan_document(made, notes), "failures": failures_document(jobs)}
    _output(document, show, page, json, html)


def _balls(flows: str, links: str, seed: int, json: Path | None, html: Path | None) -> None:
    from mrc_testbed.testbed.planner.arithmetic.balls import MOST, crowding
    from mrc_testbed.testbed.planner.arithmetic.quantities import listed, whole
    from mrc_testbed.testbed.planner.report.balls import crowding_document, show_crowding

    counts = [
        [whole(each, option, 1, MOST) for each in listed(text)]
        for option, text in (("--flows", flows), ("--links", links))
    ]
    rows = [crowding(some, over, seed) for some, over in product(*counts)]

    def page() -> str:
        from mrc_testbed.testbed.planner.pages.balls import balls_page

        return balls_page(rows, _command())

    _output(crowding_document(rows), partial(show_crowding, rows), page, json, html)


def _output(
    document: dict[str, Any],
    show: Callable[[Console], None],
    page: Callable[[], str],
    json: Path | None,
    html: Path | None,
) -> None:
    """As JSON on standard output, or as a table with JSON in a file if one is asked for; and as a page if one is."""
    from json import dumps

    from mrc_testbed.testbed.report.console import open_console

    only_json = str(json) == "-"
    if only_json:
        say(dumps(document, indent=2))
    else:
        show(open_console())
    if json and not only_json:
        _write("--json", json, dumps(document, indent=2) + "\n")
    if html:
        _write("--html", html, page(), to_stderr=only_json)


def _command() -> str:
    """What was called."""
    return shlex.join(["mrc-testbed", *sys.argv[1:]])


def _write(option: str, path: Path, text: str, to_stderr: bool = False) -> None:
    """And say so. Raises UsageError."""
    write_asked(option, path, text)
    say(f"{path}", err=to_stderr)


def _question(
    gpus: str, nic: str, planes: str, switch: str, ports: str, tiers: str, transceiver: str, nic_cable: str
) -> Question:
    """Of the options as written. Raises UsageError."""
    from mrc_testbed.testbed.planner.arithmetic.design import NicCable
    from mrc_testbed.testbed.planner.arithmetic.quantities import listed, rate_gbps, whole
    from mrc_testbed.testbed.planner.arithmetic.question import Question

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
    from mrc_testbed.testbed.planner.arithmetic.clos import MOST_TIERS
    from mrc_testbed.testbed.planner.arithmetic.quantities import whole

    count = whole(text, "--tiers", 1)
    if count > MOST_TIERS:
        raise UsageError(f"--tiers {text}: 1 to {MOST_TIERS}")
    return count


def _taken(gpus: str) -> list[str]:
    """What a count that is not written out was taken for."""
    from mrc_testbed.testbed.planner.arithmetic.quantities import listed, whole

    return [f"--gpus {each} is taken as {whole(each, '--gpus', 2):,}" for each in listed(gpus) if not each.isdecimal()]


def _text(path: Path, option: str) -> str:
    from mrc_testbed.testbed.inputs import input_text

    try:
        return input_text(path)
    except UnicodeDecodeError:
        raise UsageError(f"{option} {path}: not UTF-8 text") from None
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}") from None
