"""The tutorial's commands, typed in its order: verdicts, checks and exit statuses are those that the page shows, and so
are all figures of runs in virtual time and of their captures."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mrc_testbed.testbed.rundir.results import run_folders
from tests import tutorial
from tests.emu.runs import COMMAND, lateness_of
from tests.retry import Inconclusive
from tests.tshark import readable_by_all

# Root has no Lua in Wireshark 4.4; a reader runs tshark as an ordinary user. A bare machine has no sudo, and root
# needs none.
AS_A_READER = {
    "tshark": 'exec setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/tmp {tshark} "$@"',
    "sudo": 'exec "$@"',
}


@contextmanager
def readers_shell() -> Iterator[tuple[Path, dict[str, str]]]:
    """An empty folder, and an environment in which the commands of the page are found."""
    with readable_by_all() as home:
        tools, folder = home / "tools", home / "work"
        tools.mkdir()
        folder.mkdir()
        for name, script in AS_A_READER.items():
            tool = tools / name
            tool.write_text(f"#!/bin/sh\n{script.format(tshark=shutil.which('tshark'))}\n", encoding="utf-8")
            tool.chmod(0o755)
        path = os.pathsep.join([str(tools), str(Path(COMMAND[0]).parent), os.environ["PATH"]])
        yield folder, {**os.environ, "PATH": path}


def assert_machine_kept_time(folder: Path) -> None:
    """Raises Inconclusive when a run of the tutorial was inconclusive for the machine's sake."""
    for run in run_folders(folder / "results"):
        verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
        late = ", ".join(lateness_of(verdict))
        if late and verdict["verdict"] == "inconclusive":
            raise Inconclusive(late)


@pytest.mark.timed
@pytest.mark.timeout(120)
@pytest.mark.nightly
def test_the_commands_of_the_tutorial_do_what_it_shows() -> None:
    with readers_shell() as (folder, environment):
        ran = tutorial.run_all(folder, environment)
        assert_machine_kept_time(folder)
    for command, printed in ran:
        said = f"$ {command.text}\n" + "\n".join(printed)
        if command.text == "echo $?":
            assert printed == list(command.output), said
        assert tutorial.verdicts(printed).items() >= tutorial.verdicts(command.output).items(), said
        assert tutorial.unlike(command.output, printed, tutorial.is_exact(command)) == [], said
    statuses = [command.output for command, _ in ran if command.text == "echo $?"]
    assert {"0", "1"} <= {line for output in statuses for line in output}, "a pass and a fail"
