"""`mrc-testbed scenarios`: what comes with the testbed, one of them printed, one of them copied to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testbed.errors import UsageError

Name = Annotated[str, typer.Argument(help="Name from the list, such as paper/fig14.", show_default=False)]


def list_shipped(context: typer.Context) -> None:
    """List the scenarios that come with mrc-testbed; `run`, `validate`, `topo show` and `shell` take their names."""
    if context.invoked_subcommand is None:
        from testbed.report.catalogue import Entry, show_catalogue
        from testbed.scenario import load_scenario
        from testbed.scenario.shipped import shipped

        show_catalogue([Entry(one.name, one.group, load_scenario(one.path)) for one in shipped()])


def show(name: Name) -> None:
    """Print a shipped scenario."""
    from testbed.scenario.shipped import shipped_named

    typer.echo(shipped_named(name).path.read_text(encoding="utf-8"), nl=False)


def copy(
    name: Name,
    file: Annotated[
        Path | None,
        typer.Argument(help="Target file. Default: its own name, in this folder.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing file.")] = False,
) -> None:
    """Copy a shipped scenario, to start from it."""
    from testbed.scenario.shipped import shipped_named

    source = shipped_named(name).path
    target = Path(source.name) if file is None else file / source.name if file.is_dir() else file
    try:
        with target.open("w" if force else "x", encoding="utf-8") as copied:
            copied.write(source.read_text(encoding="utf-8"))
    except FileExistsError:
        raise UsageError(f"{target}: already exists; give another name, or --force to overwrite it") from None
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from error
    typer.echo(f"{target}: copied from {name}; `mrc-testbed run {target}`")
