"""`mrc-testbed incident`: something may be broken, and an observer is to say what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.terminal import say

CASES = Path("cases")
CaseArgument = Annotated[Path, typer.Argument(metavar="CASE", help="Folder of a case.", show_default=False)]
_Seed = Annotated[int, typer.Argument(metavar="SEED", min=0, help="Decides all of the case.", show_default=False)]
_Kind = Annotated[
    str | None,
    typer.Option(metavar="KIND", help="One incident of this kind; busy or calm: none.", show_default=False),
]
_OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for cases.")]
_Kernel = Annotated[bool, typer.Option("--kernel", help="On this kernel; else in virtual time. Needs root.")]


def kinds() -> None:
    """List the kinds of incidents, and what answers call each."""
    from mrc_testbed.testbed.incidents.kinds import INCIDENT_KINDS

    width = max(map(len, INCIDENT_KINDS))
    for kind in INCIDENT_KINDS.values():
        say(f"{kind.word:<{width}}  {kind.fault:<{width}}  {kind.about}")


def draw(seed: _Seed, kind: _Kind = None, out: _OutOption = CASES) -> None:
    """Draw a case: a fabric, a workload, and what breaks, if anything does.

    Prints its folder. The truth is in a folder beside it, which only you may read.
    """
    from mrc_testbed.testbed.incidents.case import make_case
    from mrc_testbed.testbed.incidents.draw import draw_case

    case = make_case(draw_case(seed, kind), out)
    say(str(out / case.id))


def observe(case: CaseArgument, kernel: _Kernel = False) -> None:
    """Run a case, and put into its folder what an observer may see.

    Exit status: 0, or 3 for a case that does not count: nothing came of what broke, or the machine did not keep time.
    """
    from mrc_testbed.testbed.app.incidents import observe as run_case
    from mrc_testbed.testbed.incidents.case import case_at

    found = run_case(case_at(case), kernel)
    if not found.believed:
        say(f"{case}: the machine did not keep time, so this is no case; draw it into another folder, and try again")
    elif found.without:
        say(f"{case}: nothing came of what was drawn, so this is no case; draw another seed")
    else:
        say(f"{case}: observed")
    if not found.counts:
        raise typer.Exit(ExitCode.INCONCLUSIVE)
