"""`mrc-testbed exec`: a command on a host of a run that is going on, from outside or from a program of that run."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mrc_testbed.hosts.scratch import SOCKET
from mrc_testbed.testbed.app.attach import run_going_on
from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.fabric.running import seen_from_outside
from mrc_testbed.testbed.runner.exec_server import FORWARDED, LARGEST_REQUEST
from mrc_testbed.testbed.runner.program_spec import SOCKET_VARIABLE

_END_OF_OPTIONS = "--"
_LARGEST_ANSWER = 1 << 12


def command_of(words: Sequence[str]) -> list[str]:
    """Behind `--` the words are the command, unchanged. Without it they are a line for the host's shell, as ssh and
    rsh take it. Raises UsageError where there is none."""
    literal = words[:1] == [_END_OF_OPTIONS]
    command = list(words[1:]) if literal else ["sh", "-c", " ".join(words)]
    if not command or not words:
        raise UsageError("exec: a command is missing, as in `mrc-testbed exec h3 -- ping -c 1 h5`")
    return command


def execute(host: str, words: Sequence[str], run: Path | None, out: Path) -> int:
    """Run it with this process's standard streams, and return its status. Signals to this process go to the command.

    Raises UsageError where no run is going on, RunError where it ends first or cannot start the command.
    """
    command = command_of(words)
    request = json.dumps({"host": host, "command": command}).encode()
    if len(request) > LARGEST_REQUEST:
        raise UsageError(f"exec: the command is longer than {LARGEST_REQUEST >> 10} KiB: {shlex.join(command)[:40]}...")
    with _socket_of(run, out) as path, _connected(path) as server:
        socket.send_fds(server, [request], [0, 1, 2])
        for number in FORWARDED:
            signal.signal(number, lambda number, _frame: server.send(str(int(number)).encode()) and None)
        return _status(server)


def _status(server: socket.socket) -> int:
    try:
        data = server.recv(_LARGEST_ANSWER)
    except ConnectionError:
        data = b""
    if not data:
        raise RunError("exec: the run is over")
    answer = json.loads(data)
    if "error" in answer:
        raise RunError(f"exec: {answer['error']}")
    return int(answer["status"])


def _connected(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        server.connect(str(path))
    except PermissionError:
        raise UsageError("exec: the run is another user's; run the same command with sudo") from None
    except OSError as error:
        raise RunError(f"exec: cannot reach the run: {error.strerror}; try again in a second") from None
    _, listener, _ = struct.unpack("3i", server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if listener not in (0, os.geteuid()):  # it would be given this terminal
        raise UsageError("exec: another user listens in the place of the run")
    return server


@contextmanager
def _socket_of(run: Path | None, out: Path) -> Iterator[Path]:
    inside = os.environ.get(SOCKET_VARIABLE)
    if inside and run is None:
        yield Path(inside)
        return
    with seen_from_outside(run_going_on(run, out, "exec").writer, SOCKET) as path:
        yield path
