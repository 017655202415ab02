"""Error output: one clear line on standard error, a traceback only with --debug."""

from __future__ import annotations

import traceback

import typer

from testbed.errors import ExitCode, ScenarioError, TestbedError


class GlobalOptions:
    """Set by the options before the command."""

    debug = False


def show(error: Exception) -> ExitCode:
    """Print an error, and return its exit status."""
    if GlobalOptions.debug:
        traceback.print_exception(error)
    if isinstance(error, ScenarioError):
        from testbed.scenario import render_problems

        typer.echo(render_problems(error), err=True)
    elif isinstance(error, TestbedError):
        typer.echo(f"mrc-testbed: {error}", err=True)
    else:
        typer.echo(f"mrc-testbed: internal error: {type(error).__name__}: {error} (more with --debug)", err=True)
    return error.exit_code if isinstance(error, TestbedError) else ExitCode.INCONCLUSIVE
