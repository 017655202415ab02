"""`mrc-testbed interop`: endpoints of others beside our own."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from mrc_testbed.testbed.interop.entries import Listed
    from mrc_testbed.testbed.interop.results import Row, StepResult
    from mrc_testbed.testbed.interop.steps import ContractStep

_PAGE = "matrix.html"


def interop(
    programs: Annotated[
        Path | None,
        typer.Argument(
            metavar="[LIST.json]",
            help='Programs, images, captures: [{"name": "mine", "program": ["./mine"]}]. Without it: our own endpoint.',
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER/matrix.html", help="Page to write.", show_default=False),
    ] = None,
    only: Annotated[str, typer.Option(metavar="STEPS", help="Only these steps, as in 1,3.", show_default=False)] = "",
    container_engine: Annotated[
        str,
        typer.Option(
            metavar="PROGRAM", help="Runs images; docker, or else podman, where not given.", show_default=False
        ),
    ] = "",
    json_: Annotated[bool, typer.Option("--json", help="Print the matrix as JSON.")] = False,
) -> None:
    """Judge endpoints of others in eight steps, beside the project's own endpoint.

    A program, or the entry point of an image, speaks JSON lines on standard input and output, in virtual time; one of
    form B has sockets, and takes the place of a host's daemon on the kernel. Of a capture only what its packets show is
    judged (docs/contract.md). Programs of the list are run as they are, with your rights. Exit status: 1 if a step
    failed, else 0.
    """
    from mrc_testbed.testbed.interop.document import document
    from mrc_testbed.testbed.interop.entries import ours, read_entries
    from mrc_testbed.testbed.interop.steps import STEPS
    from mrc_testbed.testbed.pages.interop.page import matrix_page
    from mrc_testbed.testbed.rundir.files import write_json
    from mrc_testbed.testbed.rundir.ownership import hand_over
    from mrc_testbed.testbed.whole_files import write_whole

    entries: list[Listed] = [ours()] if programs is None else read_entries(programs)
    steps = _wanted(only, STEPS)
    page = _page(output, entries)
    rows = [_judged(entry, page.parent, steps, container_engine, quiet=json_) for entry in entries]
    found = document(rows, steps)
    command = shlex.join(["mrc-testbed", *sys.argv[1:]])
    try:
        write_json(page.with_suffix(".json"), found)
        write_whole(page, matrix_page(found, command))
    except OSError as error:
        raise UsageError(f"{page}: cannot be written: {error.strerror}") from error
    hand_over(page.parent)
    if json_:
        from json import dumps

        say(dumps(found, indent=1))
    else:
        say(f"{page}")
    if any(row.failed for row in rows):
        raise typer.Exit(ExitCode.FAIL)


def _wanted(only: str, steps: tuple[ContractStep, ...]) -> tuple[ContractStep, ...]:
    """Raises UsageError."""
    if not only:
        return steps
    by_number = {str(step.number): step for step in steps}
    words = [word.strip() for word in only.split(",")]
    for word in words:
        if word not in by_number:
            raise UsageError(f"--only {only}: there is no step {word!r}; there are 1 to {len(steps)}")
    return tuple(step for number, step in by_number.items() if number in words)


def _page(output: Path | None, entries: list[Listed]) -> Path:
    """Where the page goes; runs of each program are in a folder of its name beside it. Raises UsageError."""
    from mrc_testbed.testbed.folders import make_own
    from mrc_testbed.testbed.rundir.results import new_folder

    if output is None:
        return new_folder(Path("interop"), "matrix") / _PAGE
    if output.suffix != ".html":
        raise UsageError(f"-o {output}: must end in .html, as in mine/{_PAGE}")
    for entry in entries:
        if (output.parent / entry.name).exists():
            raise UsageError(f"-o {output}: {output.parent / entry.name} is there already; name another folder")
    try:
        make_own(output.parent)
    except OSError as error:
        raise UsageError(f"-o {output}: cannot make its folder: {error.strerror}") from error
    return output


def _judged(entry: Listed, folder: Path, steps: tuple[ContractStep, ...], container_engine: str, quiet: bool) -> Row:
    from mrc_testbed.testbed.interop.rows import row_of

    def told(result: StepResult) -> None:
        if not quiet:
            say(f"{entry.name}  {result.step.number} {result.step.word:<11}  {result.mark.value}")
            for reason in result.reasons:
                say(f"    {reason}")

    return row_of(entry, folder / entry.name, told, steps, container_engine)
