"""`mrc-testbed topo show`, `shell`, `attach` and `exec`: display a fabric, or try commands on one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.commands.options import Out, ScenarioFile, Set, warn_of_budget
from mrc_testbed.testbed.commands.output import write_asked
from mrc_testbed.testbed.consent import run_what_scenarios_name
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.terminal import say


def topo_show(
    scenario: ScenarioFile,
    set_: Set = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the drawing to this SVG file.", show_default=False)
    ] = None,
) -> None:
    """Show the fabric of a scenario: a table of names and addresses, and a drawing."""
    import shutil

    from mrc_testbed.testbed.scenario import load_scenario
    from mrc_testbed.topos import render

    loaded = load_scenario(scenario, set_ or [], judged=False)
    plan = loaded.plan()
    say(render.table(plan))
    say(render.drawing(plan, shutil.get_terminal_size().columns))
    warn_of_budget([(loaded.name, loaded)])
    if svg is not None:
        write_asked("--svg", svg, render.svg(plan))


_Commands = Annotated[
    list[str] | None,
    typer.Option("-c", metavar="CMD", help="Run this instead of prompting, as in 'h0 ping -c1 h5'. Repeatable."),
]


def shell(scenario: ScenarioFile, set_: Set = None, command: _Commands = None) -> None:
    """Build the fabric of a scenario and open Mininet's prompt on it; leaving the prompt removes it.

    Commands may also be piped in. With -c all of them run, and the exit status is that of the first that fails.
    """
    run_what_scenarios_name()
    from mrc_testbed.testbed.inputs import STANDARD_STREAM
    from mrc_testbed.testbed.scenario import load_scenario
    from mrc_testbed.testbed.scenario.model.transports import WorldKind

    if scenario == STANDARD_STREAM and not command:
        raise UsageError("shell -: standard input is for what you type; name a file, or give commands with -c")
    loaded = load_scenario(scenario, set_ or [], judged=False)
    if loaded.world is WorldKind.VIRTUAL:
        from mrc_testbed.testbed.app.virtual_shell import open_virtual_shell

        raise typer.Exit(open_virtual_shell(loaded, command or []))
    from mrc_testbed.testbed.fabric.capabilities import LINUX, require

    require([LINUX])
    from mrc_testbed.testbed.app.shell import open_shell

    raise typer.Exit(open_shell(loaded, command or []))


_GoingOn = Annotated[
    Path | None,
    typer.Argument(metavar="[RUN]", help="Run folder or its name; default: the run going on.", show_default=False),
]


def attach(run: _GoingOn = None, out: Out = Path("results"), command: _Commands = None) -> None:
    """Give Mininet's prompt on the nodes of a run that is going on. Leaving it, or the end of the run, ends it."""
    from mrc_testbed.testbed.fabric.capabilities import LINUX, require

    require([LINUX])
    from mrc_testbed.testbed.app import attach as app

    raise typer.Exit(app.attach(run, out, command or []))


def execute(
    host: Annotated[str, typer.Argument(metavar="HOST", help="A host of the run, such as h3.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[--] CMD...", help="Behind `--` as written; else a line for a shell, as with ssh."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Run folder or its name; default: the run going on.", show_default=False),
    ] = None,
    out: Out = Path("results"),
) -> None:
    """Run a command on a host of a run that is going on, as a program of the run would run there.

    It has the host's network with mrc0, names and limits of programs. Its status is that of the command.
    """
    from mrc_testbed.testbed.fabric.capabilities import LINUX, require

    require([LINUX])
    from mrc_testbed.testbed.app import execute as app

    raise typer.Exit(app.execute(host, command or [], run, out))
