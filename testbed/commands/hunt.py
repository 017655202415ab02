"""`mrc-testbed hunt`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.commands.options import Certs, Insecure, On, Out, ScenarioFile, Set, note_core
from mrc_testbed.testbed.consent import run_what_scenarios_name
from mrc_testbed.testbed.cpus import usable_cpus
from mrc_testbed.testbed.errors import UsageError

if TYPE_CHECKING:
    from mrc_testbed.testbed.app.hunt.subject import HuntRequest
    from mrc_testbed.testbed.app.hunt.workers import HuntWorkers

_Seeds = Annotated[int, typer.Option(metavar="N", min=1, help="Try N seeds.")]
_First = Annotated[int | None, typer.Option("--seed", min=0, help="The first; else the file's.", show_default=False)]
_Jobs = Annotated[int | None, typer.Option(metavar="N", min=1, help="Processes; else one a core.", show_default=False)]
_Move = Annotated[
    bool | None,
    typer.Option(
        "--move/--no-move",
        help="Move faults to other times and targets too; else only where the file leaves nothing to the seed.",
        show_default=False,
    ),
]
_KeepGoing = Annotated[bool, typer.Option("--keep-going", help="Try all seeds, and shrink one failure of each kind.")]
_ShrinkRuns = Annotated[int, typer.Option(metavar="N", min=0, help="Runs at most to shrink a failure.")]
_Confirm = Annotated[bool, typer.Option("--confirm", help="Run what was found on the kernel too. Needs Linux.")]
_ConfirmRuns = Annotated[int, typer.Option(metavar="N", min=1, help="How often, with --confirm.")]


def hunt(
    scenario: ScenarioFile,
    seeds: _Seeds = 1000,
    set_: Set = None,
    seed: _First = None,
    jobs: _Jobs = None,
    move: _Move = None,
    keep_going: _KeepGoing = False,
    shrink_runs: _ShrinkRuns = 300,
    confirm: _Confirm = False,
    confirm_runs: _ConfirmRuns = 3,
    out: Out = Path("results"),
    on: On = "local",
    certs: Certs = Path("certs"),
    insecure: Insecure = False,
) -> None:
    """Look for a schedule of faults under which an expectation fails, in virtual time.

    Each seed draws other targets, times and chaos. The first schedule that fails is shrunk to the fewest and shortest
    faults that still fail, and written as a scenario into the results folder. Exit status: 0 nothing found, 1 found, 2
    bad input, 3 no try could be judged, 130 interrupted. docs/worlds.md has more.
    """
    run_what_scenarios_name()

    from mrc_testbed.testbed.app.hunt.hunt import HuntLimits
    from mrc_testbed.testbed.app.hunt.hunt import hunt as hunt_in
    from mrc_testbed.testbed.app.hunt.subject import HuntRequest
    from mrc_testbed.testbed.inputs import STANDARD_STREAM
    from mrc_testbed.testbed.report.console import open_console
    from mrc_testbed.testbed.scenario.text.yaml_text import read_source

    if on == "local":
        note_core()
    text = read_source(scenario).text if scenario == STANDARD_STREAM else ""
    request = HuntRequest(scenario, tuple(set_ or ()), move, text)
    times = confirm_runs if confirm else 0
    limits = HuntLimits(seeds, jobs or usable_cpus(), seed, keep_going, shrink_runs, times)
    raise typer.Exit(hunt_in(request, limits, out, open_console(), _elsewhere(request, on, certs, insecure, jobs)))


def _elsewhere(request: HuntRequest, on: str, certs: Path, insecure: bool, jobs: int | None) -> HuntWorkers | None:
    if on == "local":
        return None
    if jobs:
        raise UsageError("--jobs: is for --on local; a worker tries as many at once as it has threads (--nthreads)")
    from mrc_testbed.testbed.sweep.address import scheduler_address
    from mrc_testbed.testbed.sweep.hunting import WorkersElsewhere

    return WorkersElsewhere(request, scheduler_address(on, certs, insecure))
