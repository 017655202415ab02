"""`mrc-testbed scenarios`: list, print and copy shipped scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.kept import kept
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from mrc_testbed.testbed.report.catalogue import CatalogueEntry

ScenarioName = Annotated[str, typer.Argument(help="Name from the list, such as paper/fig14.", show_default=False)]


def list_shipped(context: typer.Context) -> None:
    """List the shipped scenarios; commands that take a scenario accept their names.

    Below them are sets of variants for `--against`, and the plugins of installed packages, which a scenario can name.
    """
    if context.invoked_subcommand is None:
        from mrc_testbed.testbed.report.catalogue import CatalogueEntry, show_catalogue

        show_catalogue([CatalogueEntry(*each) for each in kept("scenarios", _entries)])
        for line in kept("sets", lambda: list(_set_lines())):
            say(line)
        _list_plugins()


def _entries() -> list[CatalogueEntry]:
    from mrc_testbed.testbed.report.catalogue import catalogue_entry
    from mrc_testbed.testbed.scenario import load_scenario
    from mrc_testbed.testbed.scenario.load.shipped import shipped

    return [catalogue_entry(one.name, one.group, load_scenario(one.path)) for one in shipped()]


def _set_lines() -> Iterator[str]:
    from mrc_testbed.testbed.scenario.model.variants import shipped_sets, variant_set

    for name in shipped_sets():
        known = variant_set(name)
        cases = f"; cases: {', '.join(known.cases.changes)}" if known.cases else ""
        yield f"With each of them: --against {name} ({', '.join(known.changes)}{cases})"


def _list_plugins() -> None:
    """A package with unusable plugins is reported, and hides no other."""
    from mrc_testbed.testbed.scenario.plugins.packages import installed

    for package in sorted(installed()):
        _list_those_of(package)


def _list_those_of(package: str) -> None:
    from mrc_testbed.testbed.report.plugins import plugin_line
    from mrc_testbed.testbed.scenario.model.offered import PluginMistake
    from mrc_testbed.testbed.scenario.plugins.load import package_sources, plugins_of

    try:
        for source in package_sources(package):
            say(plugin_line(source, plugins_of(source)))
    except PluginMistake as mistake:
        say(f"warning: plugin {package}: {mistake}", err=True)


def show(name: ScenarioName) -> None:
    """Print a shipped scenario."""
    from mrc_testbed.testbed.scenario.load.shipped import shipped_named, with_own_hint

    say(with_own_hint(shipped_named(name).path.read_text(encoding="utf-8")), end="")


def copy(
    name: ScenarioName,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="Target file. Default: its own name, in this folder.", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing file.")] = False,
) -> None:
    """Copy a shipped scenario as a starting point."""
    from mrc_testbed.testbed.commands.output import require_free
    from mrc_testbed.testbed.inputs import STANDARD_STREAM
    from mrc_testbed.testbed.scenario.load.shipped import shipped_named, with_own_hint
    from mrc_testbed.testbed.whole_files import write_whole

    if file == STANDARD_STREAM:
        raise UsageError(f"-: name a file to copy to; `mrc-testbed scenarios show {name}` prints it")
    source = shipped_named(name).path
    target = Path(source.name) if file is None else file / source.name if file.is_dir() else file
    require_free(target, force)
    try:
        write_whole(target, with_own_hint(source.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from error
    say(f"{target}: copied from {name}; `mrc-testbed run {target}`")
