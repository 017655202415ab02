"""`mrc-testbed show`: what a switch of a finished run had counted, under the names of switch operators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.commands.options import Out, RunArgument
from mrc_testbed.testbed.terminal import say


def show_switch(
    run: RunArgument,
    switch: Annotated[str, typer.Argument(metavar="SWITCH", help="Name of a switch, as p0-t1-2.", show_default=False)],
    view: Annotated[
        list[str], typer.Argument(metavar="VIEW...", help="As in `queue counters trim`.", show_default=False)
    ],
    json_: Annotated[bool, typer.Option("-j", "--json", help="Print a JSON list.")] = False,
    out: Out = Path("results"),
) -> None:
    """Show what a switch had counted at the end of a run. In `shell` and `attach`: `show SWITCH VIEW...`.

    Views: srv6 stats, srv6 static-sids, interfaces counters [trim], queue counters [trim], queue watermark,
    switch counters, switch-trimming global.
    """
    from mrc_testbed.testbed.app.switch_show import recorded_reading
    from mrc_testbed.testbed.rundir.results import run_folder
    from mrc_testbed.testbed.switchview.show import as_json, shown, view_named

    name = view_named(view)
    reading = recorded_reading(run_folder(run, out), switch)
    say(as_json(reading, name) if json_ else shown(reading, name))
