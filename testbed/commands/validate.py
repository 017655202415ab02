"""`mrc-testbed validate` and `mrc-testbed schema`: check scenario files without building anything."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.commands import errors
from mrc_testbed.testbed.commands.options import (
    Against,
    CasesOption,
    Matrix,
    ScenarioFiles,
    Seed,
    Set,
    Variants,
    sweep_of,
    warn_of_budget,
    warn_of_captures,
)
from mrc_testbed.testbed.consent import run_what_scenarios_name
from mrc_testbed.testbed.errors import ExitCode, TestbedError
from mrc_testbed.testbed.terminal import say
from mrc_testbed.topos.units import some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mrc_testbed.testbed.scenario import Cell, Scenario


def validate(
    scenarios: ScenarioFiles,
    set_: Set = None,
    seed: Seed = None,
    matrix: Matrix = None,
    variants: Variants = "",
    against: Against = "",
    cases: CasesOption = "",
    predict: Annotated[
        bool, typer.Option("--predict", help="What a run without faults takes, with the formula of each number.")
    ] = False,
) -> None:
    """Check scenario files and report every mistake with its place; nothing is built."""
    run_what_scenarios_name()
    from mrc_testbed.testbed.scenario import load_cells

    failed = False
    for path in scenarios:
        try:
            cells = load_cells(path, set_ or [], seed, sweep_of(matrix, variants, against, cases))
        except TestbedError as error:
            errors.show(error)
            failed = True
        else:
            _tell(path, cells)
            _note_plugins(cells)
            if predict:
                _tell_predictions(cells)
    raise typer.Exit(ExitCode.USAGE if failed else ExitCode.PASS)


def _tell(path: Path, cells: Sequence[Cell]) -> None:
    from mrc_testbed.testbed.report.plugins import plugin_lines
    from mrc_testbed.testbed.scenario import in_brackets
    from mrc_testbed.testbed.scenario.model.scale import speed_words
    from mrc_testbed.testbed.scenario.model.transports import WorldKind
    from mrc_testbed.testbed.scenario.model.wall_time import wall_time

    first = cells[0].scenario
    takes = sum(cell.scenario.as_written.estimate_ns for cell in cells) / 1e9
    about = "at most" if any(cell.scenario.job.programs for cell in cells) else "about"
    speed = speed_words(cell.scenario.speed for cell in cells)
    written = " as written" if speed else ""
    several = f"{len(cells)} cells, " if len(cells) > 1 else ""
    on_kernel = [cell.scenario for cell in cells if cell.scenario.world is WorldKind.KERNEL]
    needs = any(scenario.needs_port_program for scenario in on_kernel)
    program = "; needs the port program, see `mrc-testbed doctor`" if needs else ""
    virtual = [cell.scenario for cell in cells if cell.scenario.world is WorldKind.VIRTUAL]
    which = f", {len(virtual)} of them" if on_kernel else ""
    where = f"{which} in virtual time, {wall_time(*virtual)} here" if virtual else ""
    say(f"{path}: ok: {first.name}, {several}takes {about} {takes:.0f} s{written}{where}{speed}{program}")
    for line in dict.fromkeys(line for cell in cells for line in plugin_lines(cell.scenario.offered)):
        say(f"  {line}")
    for line in _of_cells(cells, _arriving):
        say(f"  {line}")
    _tell_draws(cells)
    warn_of_budget((in_brackets(cell.settings), cell.scenario) for cell in cells)
    warn_of_captures([cell.scenario for cell in cells])


def _arriving(scenario: Scenario) -> Iterator[str]:
    """What flows that begin over time will ask for."""
    from mrc_testbed.testbed.scenario.model.arrival_load import arrival_words

    if words := arrival_words(scenario):
        yield words


def _note_plugins(cells: Sequence[Cell]) -> None:
    """They were run here: now commands that read may run them, too."""
    from mrc_testbed.testbed.errors import RunError
    from mrc_testbed.testbed.runner.plugins import note_plugins

    try:
        note_plugins(*(cell.scenario for cell in cells))
    except RunError as error:
        say(f"warning: {error}", err=True)


def _tell_predictions(cells: Sequence[Cell]) -> None:
    """Once for cells whose numbers are all the same."""
    from mrc_testbed.testbed.report.prediction import prediction_lines
    from mrc_testbed.testbed.scenario import in_brackets

    cells_by_lines: dict[tuple[float, tuple[str, ...]], list[str]] = {}
    for cell in cells:
        key = (cell.scenario.speed, tuple(prediction_lines(cell.scenario)))
        cells_by_lines.setdefault(key, []).append(in_brackets(cell.settings))
    for (speed, lines), names in cells_by_lines.items():
        scaled = "" if speed == 1 else f", {speed:g} times as fast as written"
        say(f"  without faults{''.join(f' {name}' for name in names if name)}{scaled}:")
        for line in lines:
            say(f"    {line}")


def _tell_draws(cells: Sequence[Cell]) -> None:
    from mrc_testbed.testbed.report.capture_facts import capture_lines
    from mrc_testbed.testbed.report.random_targets import random_target_lines
    from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings

    def drawn(scenario: Scenario) -> Iterator[str]:
        return chain(random_target_lines(scenario), capture_lines(scenario))

    for line in _of_cells(cells, drawn):
        say(f"  {line}")
    for warning in _of_cells(cells, scenario_warnings):
        say(f"warning: {warning}", err=True)


def _of_cells(cells: Sequence[Cell], lines: Callable[[Scenario], Iterable[str]]) -> Iterator[str]:
    """Each line once, behind the first cell that has it where others have not."""
    from mrc_testbed.testbed.scenario import in_brackets

    found: dict[str, list[str]] = {}
    for cell in cells:
        for line in lines(cell.scenario):
            found.setdefault(line, []).append(in_brackets(cell.settings))
    for line, names in found.items():
        yield line if len(names) == len(cells) else f"{some(names, 1)} {line}"


def schema(
    scenario: Annotated[
        Path | None,
        typer.Argument(metavar="[SCENARIO]", help="Include the plugin names of this scenario.", show_default=False),
    ] = None,
) -> None:
    """Print the JSON Schema of scenario files, for completion and checks in an editor."""
    import json

    from mrc_testbed.testbed.scenario import load_cells, scenario_json_schema

    shown = scenario_json_schema(load_cells(scenario)[0].scenario.offered) if scenario else scenario_json_schema()
    say(json.dumps(shown, indent=2))
