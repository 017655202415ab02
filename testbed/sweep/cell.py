"""One cell, run by a process of its own: what every engine does, on whatever machine. Imports little, for workers do.

The process is tied to this one by a pipe: if this one dies, by whatever cause, the run ends with its fabric.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.consent import TRUST
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.isolated import python_command
from mrc_testbed.testbed.rundir.files import read_json
from mrc_testbed.testbed.rundir.scratch import CELL, Scratch, scratch
from mrc_testbed.testbed.sweep.code import version_words
from mrc_testbed.testbed.sweep.evidence import pack

_LOOK_EVERY_S = 1.0
"""Between looks at whether it is to stop, which may ask another machine."""
_GRACE_S = 20.0
_LOOK_WHILE_ENDING_S = 0.2
"""Between the stop of a run and its end: it takes its fabric down and writes its verdict."""
_LAST_CHARACTERS = 300
_NOTHING = {"another_try": True, "seconds": 0.0, "run": None}
"""Of a cell without a verdict."""


@dataclass(frozen=True, slots=True)
class CellSpec:
    """All that a machine needs to know of a cell. `files`: its scenario and plugins; `fetch`: how much of the run
    folder is wanted; `version`: that the sweep was planned with; `command`: in place of `mrc-testbed run`."""

    id: str
    files: Mapping[str, bytes]
    fetch: str
    version: Mapping[str, Any]
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CellResult:
    """What came of it: the content of cell.json, and the packed evidence."""

    document: Mapping[str, Any]
    packed: bytes


def run_cell(spec: CellSpec, stopped: Callable[[], bool], left: Callable[[], bool] = lambda: False) -> CellResult:
    """Run it to its end, or until `stopped` says so, which is asked once a second; then the run has time to end by
    itself, until `left` says that nobody waits for it. A machine that cannot, as where its disk is full, makes it
    inconclusive."""
    try:
        return _carried_out(spec, stopped, left)
    except OSError as error:
        reason = f"its machine could not run it: {error.strerror or error}"
        return CellResult({**_NOTHING, "verdict": "inconclusive", "exit_code": 3, "reason": reason}, b"")


def _carried_out(spec: CellSpec, stopped: Callable[[], bool], left: Callable[[], bool]) -> CellResult:
    began = time.monotonic()
    with scratch(CELL) as own:
        folder = own.path
        for place, content in spec.files.items():
            path = folder / place
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        status = _run(spec, own, stopped, left)
        document = read_json(folder / "cell.json") or _without_verdict(status, folder / "said")
        if other := _other_code(document, spec.version):
            return CellResult({**_NOTHING, "verdict": "inconclusive", "exit_code": 3, "reason": other}, b"")
        seconds = round(time.monotonic() - began, 3)
        return CellResult({**document, "wall_seconds": seconds}, pack(_run_folder(folder / "out"), spec.fetch))


def _run(spec: CellSpec, own: Scratch, stopped: Callable[[], bool], left: Callable[[], bool]) -> int:
    """Returns its exit status, that of an interrupted run where it was stopped; negative: the signal that killed it."""
    folder = own.path
    command = [*(spec.command or python_command("mrc_testbed", "run")), str(folder / "scenario.yaml")]
    command += ["--quiet", "--out", str(folder / "out")]
    command += ["--cell", str(folder / "cell.json"), "--tied", "0"]
    with (folder / "said").open("wb") as said:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, TRUST: "1"},  # its plugins are copies, which SweepFolder.require_own has judged
            pass_fds=[own.lock] if os.name == "posix" else [],  # it may outlive this process for its tear-down
            start_new_session=True,  # Ctrl-C is for the process that started the sweep, which tells all cells
        )
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return child.wait(_LOOK_EVERY_S)
            if stopped():
                _end(child, left)
                return ExitCode.INTERRUPTED
    finally:
        if child.stdin:
            child.stdin.close()
        if child.poll() is None:  # this thread was broken off
            _end(child, left)


def _other_code(document: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What to say of a run by other code than the sweep was planned with: it is no result of this sweep."""
    if "version" not in document or version_words(document) == version_words(wanted):
        return ""
    return f"was run by mrc-testbed {version_words(document)}, and the sweep was planned with {version_words(wanted)}"


def _end(child: subprocess.Popen[bytes], left: Callable[[], bool]) -> None:
    child.terminate()  # which a run takes as Ctrl-C; that may be ignored where a shell has started us in the background
    until_s = time.monotonic() + _GRACE_S
    while time.monotonic() < until_s and not left():
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_LOOK_WHILE_ENDING_S)
            return
    if os.name == "posix":
        os.killpg(child.pid, signal.SIGKILL)  # its session, with whatever it has started
    else:
        child.kill()
    child.wait()


def _without_verdict(status: int, said: Path) -> dict[str, Any]:
    """Of a run that has left nothing: it was killed, or could not begin."""
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    last = said.read_text("utf-8", errors="replace").strip()[-_LAST_CHARACTERS:]
    stopped = status in (ExitCode.INTERRUPTED, -signal.SIGINT, -signal.SIGTERM)
    refused = status in (ExitCode.USAGE, ExitCode.MISSING)
    code = ExitCode.INTERRUPTED if stopped else ExitCode(status) if refused else ExitCode.INCONCLUSIVE
    return {
        "verdict": {ExitCode.INTERRUPTED: "interrupted", ExitCode.USAGE: "bad input"}.get(code, "inconclusive"),
        "exit_code": int(code),
        "reason": f"its run {how}" + (f": {json.dumps(last, ensure_ascii=False)}" if last else ""),
        **_NOTHING,
        "another_try": code is not ExitCode.USAGE,
    }


def _run_folder(out: Path) -> Path | None:
    """The one that was made."""
    found = [path for path in out.iterdir() if path.is_dir() and not path.is_symlink()] if out.is_dir() else []
    return found[0] if found else None
