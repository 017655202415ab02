"""`mrc-testbed validate` and `mrc-testbed schema`: scenario files looked at, nothing built."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import typer

from testbed.commands import errors
from testbed.commands.options import ScenarioFiles, Seed, Set, warn_of_budget, warn_of_captures
from testbed.errors import ExitCode, ScenarioError

if TYPE_CHECKING:
    from testbed.scenario import Scenario


def validate(scenarios: ScenarioFiles, set_: Set = None, seed: Seed = None) -> None:
    """Check scenario files and report every mistake with its place; nothing is built."""
    from testbed.scenario import load_scenario

    failed = False
    for path in scenarios:
        try:
            loaded = load_scenario(path, set_ or [], seed)
        except ScenarioError as error:
            errors.show(error)
            failed = True
        else:
            needs = "; needs the port program, see `mrc-testbed doctor`" if loaded.needs_port_program else ""
            typer.echo(f"{path}: ok: {loaded.name}, takes about {loaded.estimate_ns / 1e9:.0f} s{needs}")
            _tell_draws(loaded)
            warn_of_budget(loaded.shape())
            warn_of_captures([loaded])
    raise typer.Exit(ExitCode.USAGE if failed else ExitCode.PASS)


def _tell_draws(scenario: Scenario) -> None:
    from testbed.report.capture_facts import capture_lines
    from testbed.report.draws import draw_lines, empty_chaos

    for line in chain(draw_lines(scenario), capture_lines(scenario)):
        typer.echo(f"  {line}")
    for warning in empty_chaos(scenario):
        typer.echo(f"warning: {warning}", err=True)


def schema() -> None:
    """Print the JSON Schema of scenario files, for completion and checks in an editor."""
    import json

    from testbed.scenario import scenario_json_schema

    typer.echo(json.dumps(scenario_json_schema(), indent=2))
