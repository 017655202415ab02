"""`mrc-testbed incident`: something may be broken, and an observer is to say what."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.terminal import say

CASES = Path("cases")
CaseArgument = Annotated[Path, typer.Argument(metavar="CASE", help="Folder of a case.", show_default=False)]
CasesArgument = Annotated[list[Path], typer.Argument(metavar="CASE...", help="Folders of cases.", show_default=False)]
_Seed = Annotated[int, typer.Argument(metavar="SEED", min=0, help="Decides all of the case.", show_default=False)]
_Kind = Annotated[
    str | None,
    typer.Option(metavar="KIND", help="One incident of this kind; busy or calm: none.", show_default=False),
]
_OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for cases.")]
_Kernel = Annotated[bool, typer.Option("--kernel", help="On this kernel; else in virtual time. Needs root.")]
_Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Whose answers they are.")]
_Answers = Annotated[
    Path, typer.Argument(metavar="FILE", help="Lines of JSON; - for standard input.", show_default=False)
]
_Json = Annotated[bool, typer.Option("--json", "-j", help="Print JSON.")]


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


def answer(case: CaseArgument, file: _Answers, name: _Name = "me") -> None:
    """Check answers to a case, and keep them beside it.

    Every mistake is said with its line and key. Exit status: 0, or 2 where nothing was kept.
    """
    from mrc_testbed.testbed.incidents.answering import (
        MOST_ANSWER_BYTES,
        answer_lines,
        keep_answers,
        read_answer_lines,
    )
    from mrc_testbed.testbed.incidents.case import case_at

    place = case_at(case)
    if file == Path("-"):
        source, lines = "standard input", answer_lines("standard input", sys.stdin.buffer.read(MOST_ANSWER_BYTES + 1))
    else:
        source, lines = str(file), read_answer_lines(file)
    kept = keep_answers(place, name, source, lines)
    say(f"{case}: kept {len(kept)} answer{'s' * (len(kept) != 1)} by {name}")


def serve(
    case: CaseArgument,
    command: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The program, and its arguments.")],
    name: _Name = "me",
    user: Annotated[
        str | None, typer.Option("--as", metavar="USER", help="Who runs it; else who called sudo.", show_default=False)
    ] = None,
    looks: Annotated[int, typer.Option(metavar="N", min=0, help="How often it may look.")] = 10_000,
    most_bytes: Annotated[int, typer.Option("--bytes", metavar="N", min=0, help="What it may be told.")] = 64 << 20,
    timeout: Annotated[float, typer.Option(metavar="S", min=0.1, help="Seconds that it may take.")] = 600,
) -> None:
    """Let a program observe a case: it asks and answers in lines of JSON on its standard output and input.

    Keeps its answers. Exit status: 0; 1 where the program ended with an error, 2 where it cannot be started or the name
    has answered before, 3 where its time was over.
    """
    from mrc_testbed.testbed.app.incident_serve import ProgramCalled, user_called
    from mrc_testbed.testbed.app.incident_serve import serve as serve_case
    from mrc_testbed.testbed.incidents.case import case_at
    from mrc_testbed.testbed.incidents.protocol import LookBudget

    program = ProgramCalled(command, timeout, user_called(user))
    found = serve_case(case_at(case), name, program, LookBudget(looks, most_bytes))
    told = f"{found.looks} looks, {found.told_bytes} bytes"
    say(f"{case}: {name} gave {found.answers} answer{'s' * (found.answers != 1)} after {told}")
    if found.status:
        ended = f"signal {-found.status}" if found.status < 0 else f"exit status {found.status}"
        say(f"{command[0]}: ended with {ended}", err=True)
        raise typer.Exit(ExitCode.FAIL)


def score_set(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder for the cases.", show_default=False)],
    count: Annotated[int, typer.Option("--count", metavar="N", min=1, help="Seeds 1 to N.")] = 200,
    kind: _Kind = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Cases at once; default: the CPUs.")] = None,
) -> None:
    """Draw many cases, run them in virtual time, let the mapper answer, and score it by kind.

    The same count gives the same scores.json, byte for byte. Again after a break, or with a higher count, it goes on
    with what is missing. A case takes a few seconds and 6 MB.
    """
    from mrc_testbed.testbed.app.incident_set import score_set as run_set
    from mrc_testbed.testbed.cpus import usable_cpus
    from mrc_testbed.testbed.incidents.tables import CASE_HEAD, case_lines, group_lines, total_lines
    from mrc_testbed.testbed.incidents.totals import ScoreTotals, by_harm, by_kind

    say(CASE_HEAD)
    seeds = range(1, count + 1)
    found = run_set(folder, seeds, jobs or usable_cpus(), lambda one: say("\n".join(case_lines(one.score))), kind)
    scores = [one.score for one in found]
    tables = (group_lines("kind", by_kind(scores)), group_lines("the least of a case", by_harm(scores)))
    say("\n".join(["", *tables[0], "", *tables[1], "", *total_lines("mapper", ScoreTotals(scores))]))


def score(cases: CasesArgument, json_: _Json = False) -> None:
    """Compare all answers to cases with the truth beside them.

    Exit status: 0, or 2 where a case has no answer, no truth, or does not count.
    """
    from mrc_testbed.testbed.app.incident_scores import scores_of
    from mrc_testbed.testbed.incidents.case import case_at
    from mrc_testbed.testbed.incidents.tables import score_lines
    from mrc_testbed.testbed.incidents.totals import by_name

    found = scores_of([case_at(case) for case in cases])
    if json_:
        totals = {name: each.document() for name, each in by_name(found).items()}
        say(json.dumps({"scores": [one.document() for one in found], "totals": totals}, indent=2))
    else:
        say("\n".join(score_lines(found)))
