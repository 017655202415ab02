"""One endpoint daemon seen from the runner: process, control channel, messages."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.forker import Child
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.loop import Loop

_READ_BYTES = 1 << 16
_SEND_S = 30
"""A daemon reads within a turn of its loop; after this time without reading it is stuck."""


class DaemonProcess:
    """Starts the daemon of a host. Answers to requests land in `answers` by request id, events go to `on_event`."""

    def __init__(
        self, name: str, fabric: Fabric, loop: Loop, recorder: Recorder, on_event: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self.name = name
        self.answers: dict[int, dict[str, Any]] = {}
        self.stopped = False
        self._loop = loop
        self._on_event = on_event
        self._log = Path(recorder.folder, "logs", f"{name}.log")
        self._next_id = 1
        self._received = b""
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(_SEND_S)
        with theirs, recorder.log(name) as log:
            self.process = self._start(fabric, theirs.fileno(), log)
        loop.watch(self._socket, self._readable)

    def _start(self, fabric: Fabric, control: int, log: IO[bytes]) -> Child:
        return fabric.start_daemon(self.name, control, log)

    def request(self, command: str, **fields: Any) -> int:
        """Send a request; returns its id. Raises RunError if the daemon is gone or does not read."""
        number = self._next_id
        self._next_id += 1
        line = json.dumps({"id": number, "cmd": command, **fields}, separators=(",", ":")) + "\n"
        try:
            self._socket.sendall(line.encode())
        except TimeoutError:
            raise RunError(
                f"{self.name}: does not read requests; `{command}` could not be sent within {_SEND_S:g} s"
            ) from None
        except OSError:
            raise self.death() from None
        return number

    def _readable(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except ConnectionError:  # it exited with an unread request
            data = b""
        if not data:
            self._loop.forget(self._socket)
            if not self.stopped:
                raise self.death()
            return
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            self._take(self._fields(line))

    def _fields(self, line: bytes) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(line)
        return fields

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self.answers[message["id"]] = message
        elif message.get("event") == "fatal":
            raise RunError(f"{self.name}: the endpoint daemon failed: {message.get('reason')}; see {self._log}")
        else:
            self._on_event(self.name, message)

    def death(self) -> RunError:
        """An error with the way in which the process ended."""
        try:
            code = self.process.wait(timeout=5)
        except TimeoutError:
            return RunError(f"{self.name}: the endpoint daemon closed its control channel but is still running")
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        last = self._last_words()
        return RunError(
            f"{self.name}: the endpoint daemon {how}" + (f": {last}" if last else f"; its log {self._log} is empty")
        )

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"{lines[-1]} ({self._log})" if lines else ""

    def close(self) -> None:
        """Close the channel; the daemon then exits."""
        self.stopped = True
        self._socket.close()
