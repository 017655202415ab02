"""`mrc-testbed worlds`: the same scenario on the kernel and in virtual time, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.commands.options import Out, Seed, Set, Variants, note_core, runs_of, sweep_of, warn_of_budget
from mrc_testbed.testbed.commands.output import write_asked
from mrc_testbed.testbed.consent import run_what_scenarios_name
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrc_testbed.testbed.app.worlds import Pair
    from mrc_testbed.testbed.compare.worlds import Agreement

_Names = Annotated[
    list[Path],
    typer.Argument(
        metavar="SCENARIO|RUN...",
        help="Scenario files or names of shipped scenarios, to be run in both worlds; or run folders, to be replayed in"
        " the other one. Of several runs of one scenario and seed the mean counts.",
        show_default=False,
    ),
]
_Retry = Annotated[int, typer.Option(metavar="N", min=0, help="Retry a run that the machine spoiled up to N times.")]
_Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write everything as JSON to this file; - for standard output."),
]


def worlds(
    names: _Names,
    set_: Set = None,
    seed: Seed = None,
    variants: Variants = "",
    out: Out = Path("results"),
    retry_inconclusive: _Retry = 2,
    json_: _Json = None,
) -> None:
    """Do virtual time and the kernel agree? Step times, goodput, recovery, losses and queues, each with its tolerance.

    Cells of a matrix and variants are compared one by one; those over kernel TCP are left out. Exit status: 0 all
    agree, 1 some figure differs, 2 bad input, 3 a kernel run stayed inconclusive, 4 the machine lacks something.
    docs/worlds.md has the tolerances and what they are for.
    """
    run_what_scenarios_name()
    from mrc_testbed.testbed.app import run as runner
    from mrc_testbed.testbed.app.worlds import completed
    from mrc_testbed.testbed.compare.worlds import Reads, overall
    from mrc_testbed.testbed.compare.worlds_table import show_agreement, totals
    from mrc_testbed.testbed.errors import ExitCode
    from mrc_testbed.testbed.report.console import open_console

    to_stdout = json_ == Path("-")
    console = open_console(stderr=to_stdout)
    found: list[Agreement] = []
    pairs = _pairs(names, set_ or (), seed, variants, out)
    not_run = [pair.name for pair in pairs]
    if any(pair.scenario for pair in pairs):
        note_core()

    def write() -> None:
        if json_ and not to_stdout:
            write_asked("--json", json_, _text(found, not_run[len(found) :]))

    write()  # a file of an earlier call would tell of that one if this call is killed
    for pair in pairs:
        one = completed(
            pair, lambda scenario, source: runner.run_scenario(scenario, out, True, console, source), retry_inconclusive
        )
        show_agreement(one, console)
        found.append(one)
        write()
    if to_stdout:
        say(_text(found), end="")
    console.print(totals(found))
    codes = {Reads.AGREES: ExitCode.PASS, Reads.DIFFERS: ExitCode.FAIL, Reads.UNKNOWN: ExitCode.INCONCLUSIVE}
    raise typer.Exit(codes[overall(found)])


def _pairs(
    names: Sequence[Path], overrides: Sequence[str], seed: int | None, variants: str, out: Path
) -> Sequence[Pair]:
    """Runs as they are, scenarios to be run in both worlds."""
    from mrc_testbed.testbed.app.worlds import pairs_of_runs, pairs_of_scenarios
    from mrc_testbed.testbed.errors import UsageError
    from mrc_testbed.testbed.rundir.results import run_folder

    folders = [name for name in names if _is_run(name, out)]
    files = [name for name in names if name not in folders]
    if not files and (overrides or seed is not None or variants):
        raise UsageError("--set, --seed and --variants change scenarios; a run is compared as it was")
    found = pairs_of_runs([run_folder(name, out) for name in runs_of(folders, out)]) if folders else []
    if files:
        pairs, left_out = pairs_of_scenarios(files, overrides, seed, sweep_of((), variants, ""))
        for name in left_out:
            say(f"note: {name} is left out: it speaks the kernel's TCP", err=True)
        warn_of_budget((pair.name, pair.scenario) for pair in pairs if pair.scenario)
        found += pairs
    return found


def _is_run(name: Path, out: Path) -> bool:
    """A folder, or the name of one among the results. Scenarios are files, or names that no result has."""
    return name.is_dir() or (name.name == str(name) and (out / name).is_dir())


def _text(found: Sequence[Agreement], not_run: Sequence[str] = ()) -> str:
    from mrc_testbed.testbed.compare.worlds import worlds_document

    return json.dumps(worlds_document(found, not_run), indent=1) + "\n"
