"""Commands that somebody starts on hosts of a run that is going on: `mrc-testbed exec`, from outside or by a program.

A socket of packets in the sandbox's own folder. A client sends one request, JSON with `host` and `command`, and the
descriptors of its standard streams (unix(7), SCM_RIGHTS); then numbers of signals. It is answered once, with `status`
as a shell tells it, or with `error`. A client that goes ends its command, and so does the end of the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any

from mrc_testbed.hosts.scratch import SOCKET
from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.node_shell import shown_status
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.launching import Launched, NetworkOf
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.program_spec import HostPlace

LARGEST_REQUEST = 1 << 17
STREAMS = 3
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_WAITING = 64
_MOST = 64
"""Clients at a time."""


class ExecServer:
    """`places`: every host. `beside`: the process of the program that runs on a host now."""

    def __init__(
        self,
        places: Mapping[str, HostPlace],
        beside: Callable[[str], int | None],
        fabric: NetworkOf,
        loop: Loop,
        recorder: Recorder,
    ) -> None:
        self._places = places
        self._beside = beside
        self._fabric = fabric
        self._loop = loop
        self._recorder = recorder
        self._clients: set[_Client] = set()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        self._socket.bind(str(SOCKET))
        self._socket.setblocking(False)
        self._socket.listen(_WAITING)
        loop.watch(self._socket, self._accept)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            connection, _ = self._socket.accept()
            connection.setblocking(False)
            client = _Client(connection, self._start, self._gone, self._loop)
            self._clients.add(client)
            if len(self._clients) > _MOST:
                client.end(f"{_MOST} commands are running already")

    def _gone(self, client: _Client) -> None:
        self._clients.discard(client)

    def _start(self, request: Any, streams: list[int]) -> Launched:
        """Raises ValueError with what is wrong."""
        host, command = _words_of(request)
        place = self._places.get(host)
        if place is None:
            raise ValueError(f"there is no host {host!r} in this run; hosts are h0 to h{len(self._places) - 1}")
        try:
            launched = Launched(place, command, self._fabric, streams, self._beside(host))
        except OSError as error:
            raise ValueError(f"cannot start {command[0]} on {host}: {error.strerror}") from None
        except FabricError as error:
            raise ValueError(str(error)) from None
        self._recorder.history("ok", op="exec", hosts=host, how=shlex.join(command))
        launched.go()
        return launched

    def close(self) -> None:
        """End all commands, and take no more."""
        self._loop.forget(self._socket)
        self._socket.close()
        for client in list(self._clients):
            client.end("the run is over")


def _words_of(request: Any) -> tuple[str, list[str]]:
    host, command = (request.get("host"), request.get("command")) if isinstance(request, dict) else (None, None)
    words = isinstance(command, list) and all(isinstance(word, str) and "\0" not in word for word in command)
    if not isinstance(host, str) or not isinstance(command, list) or not command or not words:
        raise ValueError("a request needs a host, and a command of one word or more")
    return host, command


class _Client:
    """One connection, and the command that it has started."""

    def __init__(
        self,
        connection: socket.socket,
        start: Callable[[Any, list[int]], Launched],
        gone: Callable[[_Client], None],
        loop: Loop,
    ) -> None:
        self._connection = connection
        self._start = start
        self._gone = gone
        self._loop = loop
        self._launched: Launched | None = None
        self._over = False
        loop.watch(connection, self._readable)

    def _readable(self) -> None:
        streams: list[int] = []
        try:
            data, streams, _, _ = socket.recv_fds(self._connection, LARGEST_REQUEST, STREAMS)
            self._take(data, streams)
        except (BlockingIOError, InterruptedError):
            return
        except ConnectionError:
            self.end("")
        except (ValueError, RecursionError) as error:  # the latter of JSON that is very deep
            self.end(str(error))
        finally:
            for each in streams:
                os.close(each)

    def _take(self, data: bytes, streams: list[int]) -> None:
        if not data:
            self.end("")
        elif self._launched is None:
            if len(streams) != STREAMS:
                raise ValueError(f"a request needs {STREAMS} descriptors")
            self._launched = self._start(json.loads(data), streams)
            self._loop.watch(self._launched.end, self._ended)  # type: ignore[arg-type]
        elif data.isdigit() and int(data) in FORWARDED:
            self._launched.signal(int(data))

    def _ended(self) -> None:
        if self._launched is None:
            return
        self._loop.forget(self._launched.end)  # type: ignore[arg-type]
        status, _ = self._launched.reap()
        self._answer({"status": shown_status(status)})

    def end(self, why: str) -> None:
        """It has gone, or has to; `why` is told to it. Its command ends, too."""
        if self._launched and not self._launched.ended:
            self._launched.terminate(self._loop)
        self._answer({"error": why})

    def _answer(self, answer: dict[str, Any]) -> None:
        if self._over:
            return
        self._over = True
        with contextlib.suppress(OSError):  # it may have gone
            self._connection.send(json.dumps(answer).encode())
        self._loop.forget(self._connection)
        self._connection.close()
        self._gone(self)
