"""`mrc-testbed map`: what is broken, by what endpoints have seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.commands.options import Out
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.terminal import say

_Mapped = Annotated[
    Path, typer.Argument(metavar="RUN", help="Run folder, its name, latest, or a case.", show_default=False)
]


def map_run(
    run: _Mapped,
    json_: Annotated[bool, typer.Option("--json", "-j", help="Print one JSON document.")] = False,
    answers: Annotated[
        bool, typer.Option("--answers", help="Print what is taken for broken as answers, a line of JSON each.")
    ] = False,
    evidence: Annotated[
        str, typer.Option(metavar="WHO", help="Hear these alone: endpoints or probes.", show_default=False)
    ] = "",
    out: Out = Path("results"),
) -> None:
    """Say what was broken in a run: where, since when, how sure, and what it cannot be told apart from.

    By what its endpoints and probes told alone. Of a run whose truth is known it also says how right that is; the
    folder of a case of `incident` has none. docs/mapper.md explains it.
    """
    from mrc_testbed.testbed.app.fabric_map import map_folder
    from mrc_testbed.testbed.mapper.evidence import Witness
    from mrc_testbed.testbed.report.map_document import map_document
    from mrc_testbed.testbed.report.map_words import map_lines, score_lines

    if json_ and answers:
        raise UsageError("--json and --answers: choose one of them")
    if evidence not in ("", *Witness):
        raise UsageError(f"--evidence: {evidence!r} is nobody who is heard; write {' or '.join(Witness)}")
    found = map_folder(run, out, Witness(evidence) if evidence else None)
    if answers:
        for answer in found.answers:
            say(answer.model_dump_json(exclude_none=True))
    elif json_:
        say(json.dumps(map_document(found.record, found.name, found.score, found.believed), indent=1))
    else:
        lines = [*map_lines(found.record, found.name)]
        if found.score is not None:
            lines += score_lines(found.record, found.score, found.believed)
        say("\n".join(lines))
