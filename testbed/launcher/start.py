"""Starts programs of others: the one place that does. What it starts ends with this process, whatever ends that.

Between both is a keeper of ours (mrc_testbed.hosts.keeper): it ends the program, and all that the program has
started, when this process ends it, or ends itself, or is killed. In a run on the kernel the programs of hosts have
no keeper each (`kept_by_the_run`): the run's own PID namespace does the same for all of them.

A program gets no descriptors but its streams and a control channel, and of the environment what is no secret.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import IO

from mrc_testbed.hosts.keeper import NAMESPACE
from mrc_testbed.testbed.isolated import python_command
from mrc_testbed.testbed.terminal import say

PASSED = "MRC_PASS_ENV"
"""Names more variables for programs, with commas between: the user's own word."""
PLAIN = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLUMNS", "LINES"),
    *("TMPDIR", "TEMP", "TMP", "XDG_RUNTIME_DIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "SYSTEMROOT"),
    *("OMP_*", "MKL_*", "OPENBLAS_*", "CUDA_*", "NVIDIA_*", "NCCL_*", "GLOO_*", "TORCH_*", "MALLOC_*", "UCX_*"),
)
"""Variables of the caller that programs get, by pattern."""
_WHERE = "docs/trust.md, programs of others"
_END_S = 10.0
"""A keeper that has not ended what it keeps by then is killed, and the kernel does it."""

Stream = int | IO[bytes] | None
"""As subprocess has it."""


def environment(**more: str) -> dict[str, str]:
    """The variables of a program: those of the caller that are no secret, or that MRC_PASS_ENV names, and `more`."""
    patterns = (*PLAIN, *(name.strip() for name in os.environ.get(PASSED, "").split(",")))
    kept = {name: value for name, value in os.environ.items() if any(fnmatchcase(name, each) for each in patterns)}
    return {**kept, **more}


class KeptProgram:
    """A program that was started. `process`: who keeps it, which ends as it does; `kept_by`: the means by which all of
    it ends."""

    def __init__(self, process: subprocess.Popen[bytes], tie: socket.socket, kept_by: str) -> None:
        self.process, self._tie, self.kept_by = process, tie, kept_by

    def wait(self, most_s: float | None = None) -> int:
        """The exit status, or -N for signal N, when it has ended and all that it has started is gone. Raises
        TimeoutError after `most_s`."""
        try:
            return self.process.wait(most_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None

    def end(self) -> None:
        """It and all that it has started are gone afterwards."""
        self._tie.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_S)
            return
        self.process.kill()
        self.process.wait()


def launch(
    command: Sequence[str],
    streams: tuple[Stream, Stream, Stream],
    folder: Path | None = None,
    owner: tuple[int, int] | None = None,
    network: int | None = None,
    control: int | None = None,
    then: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> KeptProgram:
    """Start a program. Raises OSError where it cannot be started.

    `streams`: its input, output and errors; `folder`: where (None: here); `owner`: by this user and group (None: as
    this process); `network`: a descriptor of the network namespace that it is in; `control`: what it gets as descriptor
    3; `then`: a command that is run when all of it is gone, for what no kernel ends; `variables`: its environment
    (None: `environment()`).
    """
    tie, theirs = socket.socketpair()
    spec = {"tie": theirs.fileno(), "caller": os.getpid(), "command": list(command), "owner": owner}
    spec |= {"network": network, "control": control, "then": list(then)}
    with theirs:
        process = subprocess.Popen(
            python_command("mrc_testbed.hosts.keeper", json.dumps(spec)),
            cwd=folder,
            env=environment() if variables is None else variables,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            pass_fds=[each for each in (theirs.fileno(), network, control) if each is not None],
            start_new_session=True,
        )
    started = KeptProgram(process, tie, "")
    try:
        started.kept_by = _answer(tie, command[0])
        if not then:
            _tell(started.kept_by)
    except BaseException:
        started.end()
        _close(process)
        raise
    return started


def launch_in_the_run(
    command: Sequence[str], streams: Sequence[Stream], passed: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Start a program of ours that becomes one of others on a host, whose variables its request names. The PID
    namespace of the run on the kernel, whose first process this is, keeps it. `passed`: descriptors that it gets."""
    stdin, stdout, stderr = streams
    return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, env=environment(), pass_fds=passed)


def told_by(command: Sequence[str], most_s: float) -> tuple[int, str]:
    """The exit status of a program that is asked something, and the last line of its errors. Raises OSError where it
    cannot be started, TimeoutError after `most_s`."""
    with tempfile.TemporaryFile() as errors:
        program = launch(command, (subprocess.DEVNULL, subprocess.DEVNULL, errors))
        try:
            status = program.wait(most_s)
        finally:
            program.end()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    return status, said[-1] if said else ""


@cache
def _tell(kept_by: str) -> None:
    if kept_by != NAMESPACE:
        say(f"note: programs of others are kept by a {kept_by} here, and not by a {NAMESPACE}: {_WHERE}", err=True)


def _answer(tie: socket.socket, name: str) -> str:
    """How it is kept. Raises OSError."""
    line = b""
    while not line.endswith(b"\n"):
        more = tie.recv(4096)
        if not more:
            raise OSError(0, "its keeper has ended")
        line += more
    fields = json.loads(line)
    if "errno" in fields:
        raise OSError(fields["errno"], os.strerror(fields["errno"]), name)
    return str(fields["kept_by"])


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()
