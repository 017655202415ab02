"""Tries of a hunt inside a worker: a process of its own for each thread, for the interpreter runs one try at a time.

The worker and the process send each other pickled objects, each with its length before it. The process ends with the
worker (`tied.py`), and by itself after a minute without work.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from mrc_testbed.testbed.app.hunt.subject import HuntRequest, Subject
from mrc_testbed.testbed.app.hunt.trial import STUCK, Candidate, Outcome, attempt, trouble
from mrc_testbed.testbed.app.hunt.workers import LONGEST_S
from mrc_testbed.testbed.isolated import python_command
from mrc_testbed.testbed.launcher.tied import end_with
from mrc_testbed.testbed.rundir.scratch import HUNT, scratch

_LENGTH = struct.Struct("<Q")
_IDLE_S = 60.0
_LOOK_EVERY_S = 1.0
_GOING_S = 5.0
"""Between the end of a pipe and that of its process."""


@dataclass(frozen=True, slots=True)
class HuntSpec:
    """A hunt as another machine needs it. `text`: of the scenario file, whose path means nothing there."""

    request: HuntRequest
    text: str


def send(pipe: IO[bytes], thing: object) -> None:
    """Raises OSError where the other side is gone."""
    content = pickle.dumps(thing)
    pipe.write(_LENGTH.pack(len(content)) + content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Raises EOFError where the other side is gone."""
    return pickle.loads(_exactly(pipe, _LENGTH.unpack(_exactly(pipe, _LENGTH.size))[0]))


def _exactly(pipe: IO[bytes], length: int) -> bytes:
    """A pipe hands over what is there, which may be less."""
    content = b""
    while len(content) < length:
        more = pipe.read(length - len(content))
        if not more:
            raise EOFError
        content += more
    return content


def main() -> None:
    """The process: a hunt, then one candidate after the other. Its arguments: the descriptor that it is tied to, and
    its folder, which is its worker's."""
    end_with(int(sys.argv[1]))
    folder = Path(sys.argv[2])
    # Unbuffered, or `select` would not see what was read too far.
    asked, answers = os.fdopen(0, "rb", 0), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    spec: HuntSpec = receive(asked)
    subject: Subject | None = None
    while select.select([asked], [], [], _IDLE_S)[0]:
        try:
            job: Candidate = receive(asked)
        except EOFError:
            return
        try:
            subject = subject or _subject(spec, folder)
            outcome = attempt(subject, job, folder)
        except Exception as error:
            if not (lack := trouble(error)):
                raise
            outcome = Outcome.by_machine(lack)  # the next try begins from the start
        send(answers, outcome)


def _subject(spec: HuntSpec, folder: Path) -> Subject:
    """Raises what `Subject` does, OSError."""
    file = folder / spec.request.file.name
    file.write_text(spec.text, encoding="utf-8")
    return Subject(replace(spec.request, file=file))


class _Hunter:
    """A process, from the side of the worker."""

    def __init__(self, spec: HuntSpec) -> None:
        """Raises OSError or EOFError where the machine lacks something for it."""
        with contextlib.ExitStack() as held:
            folder = held.enter_context(scratch(HUNT)).path  # ours, for the process may be killed at any time
            theirs, tie = os.pipe()
            held.callback(os.close, tie)
            self._process = self._started(theirs, folder)
            held.callback(self._kill)
            if self._process.stdin is None or self._process.stdout is None:
                raise ValueError("it was started without pipes")
            self._asked, self._answers = self._process.stdin, self._process.stdout
            self._send(spec)
            self._held = held.pop_all()

    @staticmethod
    def _started(tie: int, folder: Path) -> subprocess.Popen[bytes]:
        command = python_command("mrc_testbed.testbed.sweep.hunter", str(tie), str(folder))
        try:
            return subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[tie])
        finally:
            os.close(tie)

    def attempt(self, job: Candidate, stopped: Callable[[], bool]) -> Outcome:
        """One try. Raises EOFError where the process has ended: by the try, or before it."""
        began = time.monotonic()
        self._send(job)
        while not select.select([self._answers], [], [], _LOOK_EVERY_S)[0]:
            seconds = time.monotonic() - began
            if seconds > LONGEST_S or stopped():
                self.end()
                return Outcome({STUCK: f"no end after {LONGEST_S:.0f} s"}, seconds=seconds)
        found: Outcome = receive(self._answers)
        return found

    def end(self) -> None:
        """Whatever it does."""
        self._held.close()

    def end_by_itself(self) -> None:
        """Where its pipe has closed: its own status is wanted, and not that of our kill."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GOING_S)
        self.end()

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what it did not take any more
                if pipe:
                    pipe.close()

    @property
    def is_there(self) -> bool:
        """It has not ended."""
        return self._process.poll() is None

    @property
    def status(self) -> int | None:
        """How it ended."""
        return self._process.returncode

    def _send(self, thing: object) -> None:
        try:
            send(self._asked, thing)
        except OSError:
            raise EOFError from None


_OF_THREAD = threading.local()


def attempt_here(spec: HuntSpec, job: Candidate, stopped: Callable[[], bool]) -> Outcome:
    """One try by the process of this thread, which is started where there is none for this hunt."""
    known: Mapping[HuntSpec, _Hunter] = getattr(_OF_THREAD, "hunters", {})
    hunter = known.get(spec)
    for other in known.values():
        if other is not hunter or not other.is_there:
            other.end()
    if hunter is None or not hunter.is_there:
        _OF_THREAD.hunters = {}
        try:
            hunter = _Hunter(spec)
        except (OSError, EOFError) as error:
            return Outcome.by_machine(trouble(error) or "its process ended at once")
    _OF_THREAD.hunters = {spec: hunter}
    try:
        outcome = hunter.attempt(job, stopped)
    except EOFError:
        _OF_THREAD.hunters = {}
        hunter.end_by_itself()
        if hunter.status == 0:  # it had nothing to do for a minute, and went when this came
            return attempt_here(spec, job, stopped)
        outcome = Outcome.of_death(hunter.status)
    if not hunter.is_there:
        _OF_THREAD.hunters = {}
    return outcome


if __name__ == "__main__":
    main()
