"""Form B without a network: one line in bounded time whatever the program says, and nothing of it is left."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

import pytest

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.forker import Child
from mrc_testbed.testbed.interop import kernel
from mrc_testbed.testbed.interop.channel import judge_channel, start_on_channel
from mrc_testbed.testbed.interop.entries import ListedProgram, RowForm
from mrc_testbed.testbed.interop.evidence import Role
from mrc_testbed.testbed.interop.kernel import ForeignDaemon, ProgramReport
from mrc_testbed.testbed.interop.program import ContractFailure
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.loop import RealTimeLoop
from tests.unit.interop.judged import HERE, python

OURS = (sys.executable, "-m", "mrc_testbed.hosts.contract_daemon")
ANSWER_S = 3.0


def _judged(tmp_path: Path, command: tuple[str, ...]) -> list[str]:
    says, wrong = judge_channel(command, HERE, tmp_path / "log", ANSWER_S)
    assert says
    return list(wrong)


def test_our_daemon_passes(tmp_path: Path) -> None:
    says, wrong = judge_channel(OURS, HERE, tmp_path / "log", 30)
    assert (says, list(wrong)) == ("mrc-testbed", [])


WRONG = {
    "takes all": "answered a request that does not exist with ok",
    "status 3": "exit status 3 after `stop`, not 0",
    "stays": "still there 3 s after `stop`",
}
BROKEN = {
    "silent": "gave no line for its first line within 3 s",
    "long line": "its first line is longer than 4 MiB",
    "no json": "not JSON: hello world",
    "wrong version": 'its first line must be the event hello with "contract": 1',
    "dies": "ended before the answer to `no such request`; standard error: out of cheese",
    "no answer": "gave no line for the answer to `stop` within 3 s",
}


@pytest.mark.parametrize("how", WRONG)
def test_what_it_does_wrong_is_said(tmp_path: Path, how: str) -> None:
    assert any(WRONG[how] in each for each in _judged(tmp_path, python("hostile_channel.py", how)))


@pytest.mark.parametrize("how", BROKEN)
def test_what_it_breaks_is_said_in_one_line(tmp_path: Path, how: str) -> None:
    with pytest.raises(ContractFailure) as failure:
        _judged(tmp_path, python("hostile_channel.py", how))
    assert BROKEN[how] in str(failure.value)
    assert "\n" not in str(failure.value)


def test_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ContractFailure) as failure:
        _judged(tmp_path, ("/no/such/endpoint",))
    assert str(failure.value) == "cannot start /no/such/endpoint: No such file or directory"


class DaemonHere(ForeignDaemon):
    """In this network namespace."""

    def _start(self, fabric: Fabric, control: int, log: IO[bytes]) -> Child:
        self._kept = start_on_channel(self._entry.command, self._entry.folder, control, log)
        self._kept.process.returncode = 0
        return Child(self._kept.process.pid)


class Run:
    """A program as the runner sees it."""

    def __init__(self, folder: Path, how: str) -> None:
        self.loop, self.report, self.events = RealTimeLoop(), ProgramReport(), list[dict[str, Any]]()
        (folder / "logs").mkdir()
        self.recorder = Recorder(folder)
        entry = ListedProgram("b", python("hostile_channel.py", how), HERE, Role.BOTH, RowForm.CHANNEL)
        self.daemon = DaemonHere(
            entry, self.report, cast(Fabric, None), self.loop, self.recorder, lambda _, event: self._on_event(event)
        )

    def _on_event(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        event["event"].upper()

    def ask(self, command: str) -> dict[str, Any]:
        number = self.daemon.request(command)
        self.loop.run_until(lambda: number in self.daemon.answers, self.loop.now_ns() + 30 * 10**9)
        return self.daemon.answers[number]

    def close(self) -> None:
        self.daemon.close()
        self.recorder.close()
        with suppress(ProcessLookupError):
            os.kill(self.daemon.process.pid, 9)
        self.daemon.process.wait(5)


def test_its_lateness_is_unknown(tmp_path: Path) -> None:
    run = Run(tmp_path, "well")
    assert run.ask("stats")["lateness"]["p99_ns"] is None
    assert run.report.says == "hostile"
    run.close()


ENDING = {
    "silent": "gave no line for its first line within 0.5 s",
    "long line": "a line is longer than 4 MiB",
    "no json": "not JSON: hello world",
    "wrong version": "its first line must be the event hello",
    "unsupported": "`stats`: no sockets yet",
    "events": "said more than 1 MiB in a run",
    "strange answer": 'an answer must have "id" of a request and "ok"',
    "strange event": "said what cannot be: AttributeError",
    "dies": "out of cheese",
}


@pytest.mark.parametrize("how", ENDING)
def test_a_run_ends_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(kernel, "_MOST_BYTES", 1 << 20 if how == "events" else 64 << 20)
    monkeypatch.setattr(kernel, "ANSWER_S", 0.5 if how == "silent" else 30.0)
    began = time.monotonic()
    run = Run(tmp_path, how)
    with pytest.raises(RunError) as error:
        run.ask("stats")
    assert ENDING[how] in str(error.value)
    assert "\n" not in str(error.value)
    assert time.monotonic() - began < 30
    assert bool(run.report.unsupported) is (how == "unsupported")
    run.close()
