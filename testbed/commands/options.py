"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.hosts import compiled
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from mrc_testbed.testbed.report.outcome import Case
    from mrc_testbed.testbed.scenario import Scenario
    from mrc_testbed.testbed.scenario.cells.axes import Sweep

WHAT, HOW, OUTPUT, WATCH = "What is run", "How it is run", "What is printed and written", "While it runs"
"""Groups of options in the help."""
ScenarioFile = Annotated[
    Path,
    typer.Argument(
        metavar="SCENARIO",
        help="Scenario file (YAML), the name of a shipped scenario, or - for standard input.",
        show_default=False,
    ),
]
ScenarioFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="SCENARIO...",
        help="Scenario files (YAML), names of shipped scenarios, or - for standard input.",
        show_default=False,
    ),
]
_RUN_HELP = "Run folder, or the name of one in results/, or latest."
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help=_RUN_HELP, show_default=False)]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help=_RUN_HELP, show_default=False)]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a scenario key, as in fabric.planes=2. Repeatable.",
        rich_help_panel=WHAT,
    ),
]
Matrix = Annotated[
    list[str] | None,
    typer.Option(
        "--matrix",
        metavar="KEY=V1,V2,...",
        help="Run with each of these values, as in fabric.planes=1,2. Repeatable.",
        rich_help_panel=WHAT,
    ),
]
Variants = Annotated[
    str,
    typer.Option(
        metavar="NAME,...", help="Run only these variants, in this order.", show_default=False, rich_help_panel=WHAT
    ),
]
CasesOption = Annotated[
    str,
    typer.Option(
        "--cases",
        metavar="NAME,...",
        help="Run only these cases, in this order; with --against `mine` is the file's own.",
        show_default=False,
        rich_help_panel=WHAT,
    ),
]
Against = Annotated[
    str,
    typer.Option(
        metavar="SET",
        help="Run each variant of a set: baselines (MRC beside RoCE and TCP), today, or a YAML file of your own.",
        show_default=False,
        rich_help_panel=WHAT,
    ),
]
Virtual = Annotated[
    bool,
    typer.Option(
        "--virtual", help="In virtual time: no root, no Linux, the same result everywhere.", rich_help_panel=HOW
    ),
]
ScaleOption = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="K",
        help="K times faster than written, in virtual time; real: ports of 100 Gb/s.",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Seed = Annotated[
    int | None, typer.Option(help="Use this seed instead of the file's.", show_default=False, rich_help_panel=WHAT)
]
Out = Annotated[
    Path,
    typer.Option(metavar="DIR", help="Results folder; each run gets its own folder in it.", rich_help_panel=OUTPUT),
]

On = Annotated[
    str,
    typer.Option("--on", metavar="ENGINE", help="local, or a Dask scheduler: tcp://HOST:PORT, tls://HOST:PORT."),
]
Certs = Annotated[
    Path,
    typer.Option(metavar="DIR", help="With tls://: the folder that `sweep keys` wrote."),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Allow tcp:// to other machines: anyone who reaches it is root on every worker."),
]


def sweep_of(matrix: Sequence[str] | None, variants: str, against: str, cases: str = "") -> Sweep:
    """What the options of a command ask for besides the file."""
    from mrc_testbed.testbed.scenario.cells.axes import Sweep

    return Sweep(tuple(matrix or ()), variants, against, cases)


def in_world(set_: Sequence[str] | None, virtual: bool, scale: str = "") -> list[str]:
    """The changes by `--set`, `--virtual` and `--scale`."""
    return [*(set_ or ()), *(["world=virtual"] if virtual else ()), *([f"scale={scale}"] if scale else ())]


def note_left_out(cases: Iterable[Case]) -> None:
    """Print which variants, and what of the file, no run has on standard error, once each."""
    for file, line in dict.fromkeys((case.file.stem, line) for case in cases for line in case.scenario.left_out):
        say(f"note: {file}: {line}", err=True)


def note_core() -> None:
    """Print on standard error that runs of this process are slower than they could be, and what ends that."""
    if advice := compiled.advice():
        say(f"note: {advice}", err=True)


def example(command: str) -> str:
    """The last line of a command's help."""
    return f"Example: mrc-testbed {command}"


def runs_of(names: Sequence[Path], out: Path) -> list[Path]:
    """The runs among several names; skipped names, as in `results/*`, are reported on standard error.

    Raises UsageError if no run remains.
    """
    from mrc_testbed.testbed.rundir.results import runs_among

    runs, left_out = runs_among(names, out)
    for line in left_out:
        say(f"note: {line}", err=True)
    return runs


def warn_of_budget(scenarios: Iterable[tuple[str, Scenario]]) -> None:
    """Print warnings about fabrics that are more than this machine carries, or whose planes hold too few packets, on
    standard error, once each. `scenarios`: with the names of their cells; a warning that is not about all of them names
    those that it is about."""
    from mrc_testbed.testbed.calibration import budget_warnings
    from mrc_testbed.testbed.scenario.model.offered_load import offered_load
    from mrc_testbed.testbed.scenario.model.transports import WorldKind
    from mrc_testbed.topos.in_flight import too_few_in_flight

    told: dict[str, dict[str, None]] = {}
    names = set()
    for name, one in scenarios:
        names.add(name)
        shape = one.shape()
        warnings: tuple[str, ...]
        if one.world is WorldKind.VIRTUAL:
            warnings = (too_few_in_flight(shape),)
        else:
            warnings = budget_warnings(shape, one.transport.cost, one.fabric.planes, offered_load(one))
        for warning in filter(None, warnings):
            told.setdefault(warning, {})[name] = None
    for warning, concerned in told.items():
        where = f"{', '.join(concerned)}: " if len(concerned) < len(names) else ""
        say(f"warning: {where}{warning}", err=True)


def warn_of_captures(scenarios: Iterable[Scenario]) -> None:
    """Print warnings about expensive captures on standard error, once each."""
    from mrc_testbed.testbed.cpus import usable_cpus
    from mrc_testbed.testbed.pcap.budget import capture_warnings
    from mrc_testbed.testbed.scenario.model.transports import WorldKind

    cpus = usable_cpus()
    on_kernel = (each for each in scenarios if each.world is WorldKind.KERNEL)
    found = (text for each in on_kernel for text in capture_warnings(each.captures, each.shape(), cpus))
    for warning in dict.fromkeys(found):
        say(f"warning: {warning}", err=True)


def warn_of_plugins(run: Path) -> None:
    """Print the plugin files that have changed since a run on standard error."""
    from mrc_testbed.testbed.runner.plugins import changed_plugins

    for line in changed_plugins(run):
        say(f"warning: {line}", err=True)
