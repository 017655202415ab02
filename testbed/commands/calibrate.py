"""`mrc-testbed calibrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from testbed.errors import ExitCode, RunError, UsageError

if TYPE_CHECKING:
    from testbed.calibration import Calibration


def calibrate(
    show: Annotated[bool, typer.Option("--show", help="Show the saved calibration without measuring.")] = False,
) -> None:
    """Measure how many packets a second this machine carries, in about a minute, and save the result.

    `run` and `validate` then use it for warnings. Run nothing else meanwhile.
    """
    from testbed.calibration import load_calibration, state_file

    if show:
        found = load_calibration()
        if found is None:
            raise UsageError(f"--show: there is no {state_file()}; run `mrc-testbed calibrate`")
        _show(found)
    else:
        _show(_measured())
        typer.echo(f"saved in {state_file()}")


def _measured() -> Calibration:
    from testbed.app.calibrate import calibrate as measure
    from testbed.calibration import calibration_text, state_file
    from testbed.report.calibration import step_line
    from testbed.rundir.ownership import write_given

    found = measure(lambda step: typer.echo(step_line(step)))
    try:
        write_given(state_file(), calibration_text(found))
    except OSError as error:
        raise RunError(f"cannot write {state_file()}: {error.strerror}") from error
    return found


def _show(found: Calibration) -> None:
    from testbed.report.calibration import render_calibration
    from testbed.report.console import open_console

    open_console().print(render_calibration(found))
    if reason := found.stale():
        typer.echo(f"stale, not used: {reason}; run `mrc-testbed calibrate` again", err=True)
        raise typer.Exit(ExitCode.INCONCLUSIVE)
