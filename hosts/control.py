"""The control channel of a daemon: JSON lines over a stream socket (docs/architecture.md, "The control channel").

What is here is the form of the lines; what the commands do is in hosts/session.py.
"""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

from mrc_testbed.hosts.json_lines import as_line

_RECEIVE_BYTES = 1 << 16
_FINISH_SECONDS = 1.0
FORK_MESSAGE_BYTES = 4096
"""Longest request to the process that forks daemons, and longest answer (hosts/forker.py)."""

Fields = dict[str, Any]


class CommandError(Exception):
    """A command that cannot be carried out. The text is the answer to it."""


class ControlChannel:
    """Lines over a socket, without ever blocking: what the other side is too slow to take is kept for `flush`."""

    def __init__(self, control: socket.socket) -> None:
        control.setblocking(False)
        self._socket = control
        self._received = bytearray()
        self._unsent = bytearray()
        self.closed = False
        """True once the other side is gone."""

    def fileno(self) -> int:
        """For epoll."""
        return self._socket.fileno()

    @property
    def backlog(self) -> bool:
        """Is anything waiting for `flush`?"""
        return bool(self._unsent)

    def receive(self) -> list[bytes]:
        """The whole lines that have come in since."""
        try:
            chunk = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return []
        except ConnectionError:
            chunk = b""
        self.closed = not chunk
        self._received += chunk
        *lines, self._received = self._received.split(b"\n")
        return [bytes(line) for line in lines if line]

    def send(self, fields: Fields) -> None:
        """Send one line, now or at a later `flush`."""
        self._unsent += as_line(fields).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes now."""
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            return
        except ConnectionError:
            self.closed = True
            self._unsent.clear()

    def finish(self) -> None:
        """Wait a moment for the other side to take what is left, before the process ends."""
        self._socket.settimeout(_FINISH_SECONDS)
        with contextlib.suppress(OSError):
            self._socket.sendall(self._unsent)


class Request:
    """One command, its fields read by kind. Raises CommandError for a line that is not a command."""

    def __init__(self, line: bytes) -> None:
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise CommandError(f"not JSON: {error}") from None
        except RecursionError:
            raise CommandError("not JSON that can be read: nested too deeply") from None
        if not isinstance(fields, dict):
            raise CommandError("not a JSON object")
        self._fields: Fields = fields
        self.id: Any = fields.get("id")
        self.cmd = str(fields.get("cmd"))

    def has(self, key: str) -> bool:
        """Is an optional field there?"""
        return key in self._fields

    def number(self, key: str, least: int = 0) -> int:
        """An integer field. Raises CommandError when it is missing, no integer, or below `least`."""
        return number_in(self._fields, key, least)

    def text(self, key: str) -> str:
        """A string field. Raises CommandError when it is missing or something else."""
        return text_in(self._fields, key)

    def flag(self, key: str) -> bool:
        """A boolean field. Raises CommandError when it is missing or something else."""
        return bool(_typed(self._fields, key, bool, "true or false"))

    def table(self, key: str) -> Fields:
        """An object field. Raises CommandError when it is missing or something else."""
        return dict(_typed(self._fields, key, dict, "an object"))

    def rows(self, key: str) -> list[Any]:
        """A list field. Raises CommandError when it is missing or something else."""
        return list(_typed(self._fields, key, list, "a list"))


def number_in(fields: Any, key: str, least: int = 0) -> int:
    """An integer entry of an object. Raises CommandError when it is missing, no integer, or below `least`."""
    value = _entry(fields, key)
    if type(value) is not int or value < least:
        raise CommandError(f"{key} must be an integer of {least} or more, not {value!r}")
    return value


def text_in(fields: Any, key: str) -> str:
    """A string entry of an object. Raises CommandError when it is missing or something else."""
    return str(_typed(fields, key, str, "a string"))


def _typed(fields: Any, key: str, kind: type, wanted: str) -> Any:
    value = _entry(fields, key)
    if not isinstance(value, kind):
        raise CommandError(f"{key} must be {wanted}, not {value!r}")
    return value


def _entry(fields: Any, key: str) -> Any:
    if not isinstance(fields, dict):
        raise CommandError(f"expected an object with {key}, not {fields!r}")
    return fields.get(key)
