"""`mrc-testbed attach`: Mininet's prompt in a run that is going on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mrc_testbed.testbed.app.shell import about_mrc0, about_ping, first_status, terminal_kept
from mrc_testbed.testbed.app.standby import data_addresses
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.fabric.processes import Process, as_user
from mrc_testbed.testbed.fabric.running import prompt_beside
from mrc_testbed.testbed.folders import require_own
from mrc_testbed.testbed.report.console import open_console
from mrc_testbed.testbed.rundir.asked import note_asked
from mrc_testbed.testbed.rundir.files import read_json
from mrc_testbed.testbed.rundir.ownership import OWNER, writer_of
from mrc_testbed.testbed.rundir.results import run_folder, run_folders
from mrc_testbed.testbed.runner.phases import as_built
from mrc_testbed.testbed.scenario import Scenario, load_recorded
from mrc_testbed.testbed.scenario.model.transports import WorldKind


class LivingRun(NamedTuple):
    """A run that is going on: its folder, scenario, and the process that writes the folder."""

    folder: Path
    scenario: Scenario
    writer: Process


def attach(run: Path | None, out: Path, commands: Sequence[str] = ()) -> int:
    """Prompt, or run single commands, on the nodes of a run; by default the only one that is going on in `out`.

    Returns the exit code. Raises UsageError where no run is going on, or another user's; MissingCapability without root
    in a run of root.
    """
    folder, scenario, writer = run_going_on(run, out, "attach")
    whole = scenario.plan()
    plan = as_built(scenario, whole, scenario.job.plan_job(whole))
    if not commands:
        delay = (read_json(folder / "environment.json") or {}).get("delay", "")
        text = (
            f"The nodes of {folder.name}. What you start here takes CPU from the run and shares its links; leaving it "
            f"ends your own commands alone.\n{about_mrc0(scenario) or about_ping(delay)}"
        )
        open_console().print(text.rstrip(), soft_wrap=True)
    with terminal_kept():
        trimming = scenario.trimming.rules() if scenario.transport.can_be_trimmed else None
        noted = partial(note_asked, folder)
        return first_status(prompt_beside(writer, plan, noted, commands, data_addresses(scenario), trimming))


def run_going_on(run: Path | None, out: Path, command: str) -> LivingRun:
    """The run, or the only one that is going on in `out`. Nothing of it is believed before its folder is known to be
    that of a user who is trusted. Raises UsageError."""
    folder = run_folder(run or _the_one_going_on(out), out)
    require_own(folder, as_user(folder.stat().st_uid))
    scenario = load_recorded(folder)
    if scenario.world is WorldKind.VIRTUAL:
        again = f"mrc-testbed replay {folder.name} --kernel"
        raise UsageError(f"{folder}: this run is in virtual time, which has no nodes to enter; `{again}` has them")
    over = UsageError(f"{folder}: this run is over; {command} needs one that is going on")
    try:
        require_own(folder / OWNER, as_user((folder / OWNER).stat().st_uid))
        pid = writer_of(folder)
        if pid is None:
            raise over
        return LivingRun(folder, scenario, Process(pid))
    except FileNotFoundError:
        raise over from None


def _the_one_going_on(out: Path) -> Path:
    going_on = [folder for folder in run_folders(out) if writer_of(folder) is not None]
    if not going_on:
        raise UsageError(f"{out}: no run is going on there")
    if len(going_on) > 1:
        names = ", ".join(folder.name for folder in going_on)
        raise UsageError(f"{out}: {len(going_on)} runs are going on there: say which one of {names}")
    return going_on[0]
