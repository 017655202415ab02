"""`mrc-testbed import`: a workload of another tool as a scenario."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.commands.output import require_free
from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.inputs import STANDARD_STREAM
from mrc_testbed.testbed.interchange.kinds import Format, StartUnit, format_of
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from mrc_testbed.testbed.interchange.found import Found
    from mrc_testbed.testbed.interchange.scenario_text import ScenarioFiles
    from mrc_testbed.testbed.scenario import Scenario


def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Of a trace: any of its ranks.", show_default=False)],
    kind: Annotated[
        Format | None, typer.Option("--from", help="Format of the file; else by its name.", show_default=False)
    ] = None,
    hosts: Annotated[
        str,
        typer.Option(
            metavar="MAP",
            help="Host of each node: same (3 is h3), used (those that take part, in order), or 103=h0,34=h4.",
            show_default=False,
        ),
    ] = "",
    to: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE", help="The scenario; its data lie beside it.", show_default=False),
    ] = None,
    start_unit: Annotated[
        StartUnit | None, typer.Option(help="What the starts of htsim count; else ps.", show_default=False)
    ] = None,
    peak_ops: Annotated[
        float, typer.Option(metavar="N", help="Operations a second, where Chakra has no durations.", show_default=False)
    ] = 0.0,
    groups: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON with the process groups of a Chakra trace.", show_default=False),
    ] = None,
    each_gathers: Annotated[
        bool, typer.Option("--each-gathers", help="The size of an all-gather in Chakra is that of each rank's part.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Tell what was read and lost as JSON.")] = False,
) -> None:
    """Make a scenario of a workload of another tool: flows, a distribution of sizes, or what ranks compute, send and
    wait for. What has no counterpart here is told, and is in the comments of the scenario."""
    from mrc_testbed.testbed.interchange.chakra_graph import ChakraOptions
    from mrc_testbed.testbed.interchange.formats import ReadingOptions, read_file
    from mrc_testbed.testbed.interchange.layout import layout_of
    from mrc_testbed.testbed.interchange.scenario_text import scenario_files

    if file == STANDARD_STREAM:
        raise UsageError("-: give the name of a file")
    if peak_ops < 0:
        raise UsageError(f"--peak-ops {peak_ops:g}: must be more than 0, such as 1e15")
    options = ReadingOptions(start_unit, ChakraOptions(peak_ops, groups, each_gathers))
    found = read_file(file, kind or format_of(file), options)
    layout = layout_of(found, hosts)
    target = to or Path(f"{file.name.split('.')[0]}.yaml")
    files = scenario_files(found, layout, file.name, target)
    scenario = _write(file, target, files, force)
    _tell(target, files, found, (*found.lost, *layout.lost), as_json)
    say(f"it takes about {scenario.estimate_ns / 1e6:.3g} ms of virtual time", err=True)


def _write(source: Path, target: Path, files: ScenarioFiles, force: bool) -> Scenario:
    """Both files, or none where they make no scenario; never over what was read, nor through a link."""
    from mrc_testbed.testbed.whole_files import room_beside, write_parts, write_whole

    beside = target.parent / files.data_name
    for path in (target, beside):
        require_free(path, force, read=source)
    try:
        with room_beside(target) as room:
            built, data = room / target.name, room / beside.name
            write_parts(data, (f"{line}\n" for line in files.data()))
            write_whole(built, files.scenario)
            scenario = _scenario(source, built)
            data.replace(beside)
            built.replace(target)
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from error
    return scenario


def _scenario(source: Path, built: Path) -> Scenario:
    """The built scenario, read again. Raises UsageError with the mistakes of the file that it was built from."""
    from mrc_testbed.testbed.scenario import load_scenario

    try:
        return load_scenario(built)
    except ScenarioError as error:
        wrong = (f"{source}: makes no scenario: {one.path}: {one.message}" for one in error.problems)
        raise UsageError("\n".join(wrong).replace(f"{built.parent}{os.sep}", "")) from None


def _tell(target: Path, files: ScenarioFiles, found: Found, lost: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        figures = {
            "from": found.kind,
            "scenario": str(target),
            "data": str(target.parent / files.data_name),
            "nodes": found.nodes,
            "used": len(found.used),
            "flows": len(found.flows),
            "operations": len(found.graph.nodes) if found.graph else 0,
            "bytes": found.total_bytes,
            "lost": list(lost),
        }
        say(json.dumps(figures, indent=2))
    else:
        say(f"{target}: {files.scenario.splitlines()[0].removeprefix('# ')}")
        for line in lost:
            say(f"  lost: {line}")
