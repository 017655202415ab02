"""How an error is told: one clear line on standard error, a traceback only with --debug."""

from __future__ import annotations

import traceback

import typer

from testbed.errors import ExitCode, ScenarioError, TestbedError


class GlobalOptions:
    """Set by the options that stand before the command."""

    debug = False


def show(error: Exception) -> ExitCode:
    """Tell it, and return the exit status that it stands for."""
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
