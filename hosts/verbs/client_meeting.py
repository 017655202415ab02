"""How the ranks of a job tell each other what they need to know before they can write: lines of JSON over TCP, through
rank 0."""

from __future__ import annotations

import json
import math
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from mrc_testbed.hosts.verbs.client_errors import TimedOut, VerbsError

_AGAIN_S: Final = 0.05
_GREETING_S: Final = 5.0
_PART: Final = 1 << 16
_PORT: Final = "29500"


@dataclass(frozen=True)
class Place:
    """The place of this program in its job."""

    rank: int
    size: int
    hosts: tuple[str, ...]
    """Names of the hosts, by rank; empty where nobody says."""
    meeting: tuple[str, int]
    """Where rank 0 listens."""

    @classmethod
    def of(cls, variables: Mapping[str, str] = os.environ) -> Place:
        """What MRC_RANK, MRC_WORLD_SIZE, MRC_HOSTS, MASTER_ADDR and MASTER_PORT say; RANK and WORLD_SIZE where the
        first two are not set. Raises VerbsError."""
        try:
            rank = int(variables["MRC_RANK"] if "MRC_RANK" in variables else variables["RANK"])
            size = int(variables["MRC_WORLD_SIZE"] if "MRC_WORLD_SIZE" in variables else variables["WORLD_SIZE"])
            port = int(variables.get("MASTER_PORT", _PORT))
        except KeyError as error:
            raise VerbsError(f"{error.args[0]} is not set: this program is no rank of a job") from error
        except ValueError as error:
            raise VerbsError(f"a rank, a world size or MASTER_PORT is no number: {error}") from error
        if not 0 <= rank < size:
            raise VerbsError(f"rank {rank} of {size}: there is none")
        hosts = tuple(filter(None, variables.get("MRC_HOSTS", "").split(",")))
        return cls(rank, size, hosts, (variables.get("MASTER_ADDR") or (hosts or ("127.0.0.1",))[0], port))

    def name(self, rank: int) -> str:
        """`rank 3 (h3)`."""
        return f"rank {rank} ({self.hosts[rank]})" if rank < len(self.hosts) else f"rank {rank}"


class _Lines:
    """JSON lines over one TCP connection."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket, self._came = connected, b""
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def say(self, value: Any, until: float) -> None:
        self._socket.settimeout(_left(until))
        self._socket.sendall(json.dumps(value).encode() + b"\n")

    def hear(self, until: float) -> Any:
        """Raises ConnectionResetError when the other side has gone, ValueError for what is no JSON."""
        while b"\n" not in self._came:
            self._socket.settimeout(_left(until))
            if not (part := self._socket.recv(_PART)):
                raise ConnectionResetError
            self._came += part
        line, _, self._came = self._came.partition(b"\n")
        return json.loads(line)

    def close(self) -> None:
        self._socket.close()


class Meeting:
    """All ranks, each with a connection to rank 0. Raises VerbsError, and TimedOut when somebody does not come within
    `timeout` seconds."""

    def __init__(self, place: Place, timeout: float) -> None:
        self._place = place
        self._others: dict[int, _Lines] = {}
        """Of rank 0: to each other rank. Of another rank: to rank 0."""
        if place.size > 1:
            until = time.monotonic() + timeout
            with self._in_words(timeout):
                self._others = self._receive_all(until) if place.rank == 0 else {0: self._find(until)}

    def all_gather(self, value: Any, timeout: float | None = None) -> list[Any]:
        """What each rank gave, by rank. `value` is anything that JSON can say. All ranks must call it."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        if self._place.size == 1:
            return [value]
        with self._in_words(timeout):
            if self._place.rank:
                self._others[0].say(value, until)
                found: list[Any] = self._hear(0, until)
                return found
            everything = [value, *(self._hear(rank, until) for rank in sorted(self._others))]
            for other in self._others.values():
                other.say(everything, until)
            return everything

    def close(self) -> None:
        """Others that wait for this rank are told that it has gone."""
        for other in self._others.values():
            other.close()

    def _receive_all(self, until: float) -> dict[int, _Lines]:
        found: dict[int, _Lines] = {}
        with socket.create_server(("", self._place.meeting[1]), backlog=self._place.size) as listener:
            while len(found) < self._place.size - 1:
                listener.settimeout(_left(until))
                came = _Lines(listener.accept()[0])
                rank = _rank_of(came, until)
                if rank in found or not 0 < rank < self._place.size:
                    came.close()
                else:
                    found[rank] = came
        return found

    def _find(self, until: float) -> _Lines:
        while True:
            try:
                found = _Lines(socket.create_connection(self._place.meeting, timeout=_left(until)))
                break
            except (ConnectionError, socket.gaierror):
                time.sleep(_AGAIN_S)
        found.say(self._place.rank, until)
        return found

    def _hear(self, rank: int, until: float) -> Any:
        try:
            return self._others[rank].hear(until)
        except (ConnectionError, ValueError) as error:
            raise VerbsError(f"{self._place.name(rank)} has gone") from error

    @contextmanager
    def _in_words(self, timeout: float | None) -> Iterator[None]:
        where = f"{self._place.meeting[0]}:{self._place.meeting[1]}"
        try:
            yield
        except TimeoutError as error:
            raise TimedOut(f"not all {self._place.size} ranks came to {where} in {timeout} s") from error
        except OSError as error:
            raise VerbsError(f"the ranks cannot meet at {where}: {error.strerror or error}") from error


def _left(until: float) -> float | None:
    if until == math.inf:
        return None
    if (left := until - time.monotonic()) <= 0:
        raise TimeoutError
    return left


def _rank_of(came: _Lines, until: float) -> int:
    """What a stranger says is no rank."""
    try:
        said = came.hear(min(until, time.monotonic() + _GREETING_S))
    except (OSError, ValueError):
        return -1
    return said if isinstance(said, int) else -1
