"""`mrc-testbed paper`: repeats the figures of a paper one after the other, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.commands import errors
from mrc_testbed.testbed.commands.options import Out, ScaleOption, Seed, Virtual, in_world, note_core, note_left_out
from mrc_testbed.testbed.commands.web import (
    Metrics,
    MetricsLinger,
    MetricsTruth,
    WatchOptions,
    Web,
    WebPort,
    shown,
    wait_for_the_room,
)
from mrc_testbed.testbed.consent import run_what_scenarios_name
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from mrc_testbed.testbed.report.outcome import Case, RunOutcome
    from mrc_testbed.testbed.web.server_process import ServerProcess

_Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[SCENARIO]...", help="Scenarios with the key `paper`, instead of the shipped ones.", show_default=False
    ),
]
_Pack = Annotated[
    str,
    typer.Option(metavar="PACK", help="Shipped figures: paper, those of MRC's, or multiplane, of arXiv 2605.21187."),
]
_Only = Annotated[str, typer.Option(metavar="FIGURES", help="Only these figures, as in 9a,14.", show_default=False)]
_Retry = Annotated[int, typer.Option(metavar="N", min=0, help="Retry a run that the machine spoiled up to N times.")]


def paper(
    scenarios: _Files = None,
    pack: _Pack = "paper",
    only: _Only = "",
    seed: Seed = None,
    virtual: Virtual = False,
    scale: ScaleOption = "",
    out: Out = Path("results"),
    retry_inconclusive: _Retry = 2,
    web: Web = False,
    web_port: WebPort = None,
    metrics: Metrics = "",
    metrics_truth: MetricsTruth = False,
    metrics_linger: MetricsLinger = None,
) -> None:
    """Run the scenarios that repeat figures of the MRC paper, or of another, and show the results in one table.

    After every run the table is updated as paper.md and paper.json in a folder of its own; Ctrl-C ends with the table
    so far. Exit status: as of `run` with several scenarios, the most serious decides.
    """
    run_what_scenarios_name()
    from mrc_testbed.testbed.app import run as runner
    from mrc_testbed.testbed.app.batch import run_cases
    from mrc_testbed.testbed.app.pack import LONGEST_S, PackFolder, expected_s, load_pack, pack_named, rough
    from mrc_testbed.testbed.fabric import capabilities
    from mrc_testbed.testbed.report.batch import totals
    from mrc_testbed.testbed.report.console import open_console
    from mrc_testbed.testbed.report.outcome import exit_code_of
    from mrc_testbed.testbed.report.pack import pack_table, world_words
    from mrc_testbed.testbed.scenario.model.transports import WorldKind

    watch = WatchOptions(web, web_port, metrics=metrics, truth=metrics_truth, linger_s=metrics_linger)
    watch.require()
    cases = load_pack(scenarios or [], only, seed, in_world(None, virtual, scale), _note_unfit, pack_named(pack))
    note_left_out(cases)
    note_core()
    if any(case.scenario.world is WorldKind.KERNEL for case in cases):
        capabilities.require(capabilities.probe())  # or every run would say the same
    folder = PackFolder(out, errors.show)
    console = open_console()
    takes_s = expected_s(cases)
    where = world_words(cases)
    console.print(f"{len(cases)} scenarios, {where}, about {rough(takes_s)}; the table grows in {folder.path}/paper.md")
    if takes_s > LONGEST_S:
        say(f"warning: that is over {rough(LONGEST_S)}; choose some with --only", err=True)

    places = {case.name: place for place, case in enumerate(cases)}

    def one(case: Case, server: ServerProcess | None) -> RunOutcome:
        place = places[case.name]
        again = f", try {len(case.tries) + 1}" if case.tries else ""
        to_go = rough(expected_s(cases[place:]))
        console.print(f"{place + 1} of {len(cases)}: {case.name}{again}; about {to_go} to go")
        if server:
            server.title = case.name
        return runner.run_scenario(case.scenario, out, True, console, live=True, audience=server)

    with shown(watch) as server:
        done = run_cases(cases, retry_inconclusive, lambda case: one(case, server), errors.show, folder.write)
        console.print("", pack_table(done), f"\n{totals(done)}\n{folder.path}/paper.md", sep="\n")
        wait_for_the_room(server, exit_code_of(done), console.is_terminal)
    raise typer.Exit(exit_code_of(done))


def _note_unfit(file: Path, why: Exception) -> None:
    say(f"note: {file.stem} is left out: {why}", err=True)
