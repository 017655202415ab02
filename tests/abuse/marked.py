"""Commands whose processes can be found, whatever they start: by a mark in the environment of all of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from mrc_testbed.testbed.launcher.start import PASSED
from tests.abuse.command import COMMAND, KNOWN, assert_in_order
from tests.hangs import HANGS_S

MARK = "MRC_TEST_MARK"
EARLY = (-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP)
"""Statuses of a process that Python has not begun in."""
_GONE_S = 30.0


class MarkedCommand:
    """`mrc-testbed WORDS` as a terminal starts it, with a folder of its own for what it leaves in TMPDIR."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.mark, self.scratch = uuid4().hex, folder / "tmp"
        self.scratch.mkdir(parents=True)
        self._mounts, self._groups = _mounts(), _groups()
        self.process = subprocess.Popen(
            [COMMAND, *words],
            env={**os.environ, MARK: self.mark, PASSED: MARK, "TMPDIR": str(self.scratch)},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def pids(self) -> list[int]:
        """All processes that have the mark."""
        return [pid for pid, mark in _marks() if mark == self.mark]

    def end(self, number: signal.Signals) -> str:
        """Send it to the command, SIGINT to all of its group as a terminal does; what was said. Nothing may be left."""
        if number is signal.SIGINT:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=HANGS_S)
        if self.process.returncode not in EARLY:
            assert_in_order(said)
            assert self.process.returncode in (*KNOWN, -signal.SIGKILL), said
        self.assert_nothing_left()
        if number is not signal.SIGKILL and self.process.returncode not in EARLY:
            assert not list(self.scratch.iterdir()), f"left in TMPDIR: {list(self.scratch.rglob('*'))}\n{said}"
        return said

    def assert_nothing_left(self) -> None:
        """No process, and so no namespace; no mount and no cgroup."""
        until_s = time.monotonic() + _GONE_S
        while left := self.pids():
            assert time.monotonic() < until_s, [_command_of(pid) for pid in left]
            time.sleep(0.02)
        assert _mounts() <= self._mounts
        assert _groups() <= self._groups


def assert_whole(folder: Path) -> None:
    """No file of JSON is half a file."""
    for path in folder.rglob("*.json"):
        if path.is_file():
            json.loads(path.read_text(encoding="utf-8"))


def _marks() -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes()
        except OSError:
            continue
        _, found, rest = variables.partition(f"{MARK}=".encode())
        if found:
            yield int(folder.name), rest.partition(b"\0")[0].decode()


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "it has just ended"


def _mounts() -> set[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return {line.split()[4] for line in lines}


def _groups() -> set[Path]:
    return {path for path in Path("/sys/fs/cgroup").rglob("*mrc*") if path.is_dir()}
