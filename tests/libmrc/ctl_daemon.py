"""A daemon for tests of the controller API: ports, EVs and probes, nothing of QPs."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from errno import EINVAL, ENOENT
from pathlib import Path
from threading import Condition, Thread
from typing import Any

from mrc_testbed.hosts.verbs.messages import FORMS, HELLO_REPLY, MOST_NEWS, RECORD_BYTES, VERSION, RecordKind, kind_of

Fields = dict[str, Any]
PLANES, UPLINKS = 2, 3
GOOD, ASSUMED_BAD, DENIED = 1, 2, 4
EVERY = bytes(16)


def gid(host: int) -> bytes:
    """That of 10.64.0.`host`."""
    return bytes(10) + b"\xff\xff\x0a\x40\x00" + bytes([host])


@dataclass
class CtlDaemon:
    """Host 0 with hosts 1 and 2 as its peers. A context manager; `path` is its socket's.

    Probes wait until the test answers them.
    """

    path: Path
    disabled: set[int] = field(default_factory=set)
    """Ports that a controller has disabled."""
    no_carrier: set[int] = field(default_factory=set)
    watched: bool = False
    probes: list[Fields] = field(default_factory=list)
    """Those that have come."""
    asked: list[tuple[RecordKind, Fields]] = field(default_factory=list)
    """All records that have come, but HELLO."""
    silent: set[RecordKind] = field(default_factory=set)
    """Requests of these kinds end the daemon instead."""
    instead: list[tuple[int, bytes, int]] = field(default_factory=list)
    """Changes of EVs that happen while EVs are asked for, before they are told."""

    def __post_init__(self) -> None:
        evs = [plane << 8 | uplink for plane in range(PLANES) for uplink in range(UPLINKS)]
        self.states = {(ev, gid(peer)): GOOD for ev in evs for peer in (1, 2)}
        self.news = Condition()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket: socket.socket | None = None

    def __enter__(self) -> CtlDaemon:
        self._listener.bind(str(self.path))
        self._listener.listen()
        self._thread = Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.die()
        self._thread.join(10)

    def die(self) -> None:
        """Ends the connection, and takes no other."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            if self._socket:
                self._socket.shutdown(socket.SHUT_RDWR)

    def change(self, ev: int, peer: int, state: int) -> None:
        """An EV's state towards a peer; told if it is watched, changed or not."""
        with self.news:
            self._change(ev, gid(peer), state)

    def _change(self, ev: int, dgid: bytes, state: int) -> None:
        self.states[ev, dgid] = state
        if self.watched:
            self._tell(self._ev_state(ev, dgid))

    def answer(self, index: int, rtt_ns: int) -> None:
        """Answers probe `index` of those that have come."""
        probe = self.probes[index]
        port = (probe["ev"] >> 8) + 1
        self._tell(FORMS[RecordKind.PROBED].pack(ev=probe["ev"], token=probe["token"], rtt_ns=rtt_ns, port=port))

    def refuse(self, index: int, error: int, text: bytes = b"") -> None:
        """Says that probe `index` cannot be sent."""
        self._tell(FORMS[RecordKind.REPLY].pack(token=self.probes[index]["token"], error=error, text=text))

    def wait_for_probes(self, count: int) -> None:
        """Until this number has come."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.probes) >= count, 10)

    def wait_until_watched(self, watched: bool) -> None:
        """Until EVs are watched, or no more."""
        with self.news:
            assert self.news.wait_for(lambda: self.watched == watched, 10)

    def _serve(self) -> None:
        with self._listener:
            while True:
                try:
                    self._socket, _ = self._listener.accept()
                except OSError:
                    return
                with self._socket:
                    self._serve_one(self._socket)
                self.watched = False

    def _serve_one(self, program: socket.socket) -> None:
        with suppress(OSError):
            while datagram := program.recv(16 * RECORD_BYTES):
                for at in range(0, len(datagram), RECORD_BYTES):
                    self._take(datagram[at : at + RECORD_BYTES])

    def _take(self, record: bytes) -> None:
        kind = kind_of(record)
        fields = FORMS[kind].unpack(record)
        if kind in self.silent:
            self.die()
            return
        with self.news:
            if kind == RecordKind.HELLO:
                self._hello(fields)
            else:
                self.asked.append((kind, fields))
                self._answer(kind, fields)
            self.news.notify_all()

    def _hello(self, fields: Fields) -> None:
        assert fields["version"] == VERSION
        limits = {"max_qp": 64, "max_qp_wr": 64, "max_cqe": 1024, "max_mr": 64, "max_wimm": 32, "mpr": 8}
        hello = HELLO_REPLY.pack(
            token=fields["token"], planes=PLANES, payload_bytes=4096, port_mask=3, gid=gid(0), name=b"h0", **limits
        )
        self._tell(hello)

    def _answer(self, kind: RecordKind, fields: Fields) -> None:
        if kind == RecordKind.PROBE:
            self.probes.append(fields)
            return
        answers = {
            RecordKind.QUERY_PORT: self._query_port,
            RecordKind.MODIFY_PORT: self._modify_port,
            RecordKind.QUERY_EVS: self._query_evs,
            RecordKind.MODIFY_EV: self._modify_ev,
            RecordKind.WATCH_EVS: self._watch,
        }
        error, value = answers[kind](fields)
        self._tell(FORMS[RecordKind.REPLY].pack(token=fields["token"], error=error, value=value))

    def _query_port(self, fields: Fields) -> tuple[int, int]:
        port = fields["port"]
        return 0, 2 if port in self.disabled else 0 if port in self.no_carrier else 1

    def _modify_port(self, fields: Fields) -> tuple[int, int]:
        (self.disabled.discard if fields["enabled"] else self.disabled.add)(fields["port"])
        return 0, 0

    def _peers(self, dgid: bytes) -> list[bytes]:
        return [gid(1), gid(2)] if dgid == EVERY else [dgid]

    def _query_evs(self, fields: Fields) -> tuple[int, int]:
        for change in self.instead:
            self._change(*change)
        self.instead.clear()
        told = [self._ev_state(ev, peer) for ev, peer in self.states if peer in self._peers(fields["dgid"])]
        for at in range(0, len(told), MOST_NEWS):
            self._tell(b"".join(told[at : at + MOST_NEWS]))
        return 0 if told else EINVAL, 0

    def _modify_ev(self, fields: Fields) -> tuple[int, int]:
        for peer in self._peers(fields["dgid"]):
            if (fields["ev"], peer) not in self.states:
                return ENOENT, 0
            # As the endpoint does: what is allowed again has to show first that it works.
            self._change(fields["ev"], peer, DENIED if fields["denied"] else ASSUMED_BAD)
        return 0, 0

    def _watch(self, fields: Fields) -> tuple[int, int]:
        self.watched = bool(fields["on"])
        return 0, 0

    def _ev_state(self, ev: int, dgid: bytes) -> bytes:
        return FORMS[RecordKind.EV_STATE].pack(ev=ev, dgid=dgid, state=self.states[ev, dgid], port=(ev >> 8) + 1)

    def _tell(self, datagram: bytes) -> None:
        assert self._socket is not None
        self._socket.send(datagram, socket.MSG_NOSIGNAL)
