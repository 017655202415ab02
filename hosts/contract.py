"""Our endpoint as a program that speaks contract 1 (docs/contract.md): JSON lines on standard input and output.

It is what `mrc-testbed interop` judges where nothing else is named, so the contract is one that can be kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from mrc_testbed.hosts.common.errors import CoreError
from mrc_testbed.hosts.common.events import ImmediateDelivered, QpError, WriteCompleted
from mrc_testbed.hosts.control import CommandError, Fields, Request
from mrc_testbed.hosts.mrc.config import EndpointConfig, QpAttributes
from mrc_testbed.hosts.mrc.endpoint import Endpoint
from mrc_testbed.hosts.mrc.events import EvChanged
from mrc_testbed.hosts.mrc.settings import read_settings
from mrc_testbed.hosts.udp import MAX_DATAGRAM_BYTES

VERSION = 1
"""Of the contract."""
_MALFORMED = (CommandError, CoreError, KeyError, IndexError, TypeError, ValueError)


class ContractHost:
    """Answers requests; `running` until it was told to stop."""

    def __init__(self) -> None:
        self.running = True
        self._quiet = False
        self._endpoint: Endpoint
        self._regions: dict[int, QpAttributes] = {}
        self._placed = 0
        self._buffer = memoryview(bytearray(MAX_DATAGRAM_BYTES))
        self._commands: dict[str, Callable[[Request], Fields]] = {
            "step": lambda _: {},
            "configure": self._configure,
            "open_qp": self._open_qp,
            "connect_qp": self._connect_qp,
            "probe_paths": self._probe_paths,
            "base_rtt": self._base_rtt,
            "write": self._write,
            "deny": self._deny,
            "allow": self._allow,
            "port": self._port,
            "turn": self._turn,
            "stats": self._stats,
            "quiet": self._silence,
            "stop": self._stop,
        }

    def answer(self, line: bytes) -> Fields:
        """The answer to one request."""
        number = None
        try:
            request = Request(line)
            number = request.id
            command = self._commands.get(request.cmd)
            if command is None:
                return {"id": number, "ok": False, "unsupported": True, "error": f"unknown command {request.cmd!r}"}
            return {"id": number, "ok": True, **command(request)}
        except _MALFORMED as error:
            return {"id": number, "ok": False, "error": str(error) or type(error).__name__}

    def _configure(self, request: Request) -> Fields:
        self._endpoint = self.make(
            EndpointConfig(
                host=request.number("host"),
                planes=request.number("planes", 1),
                udp_port=request.number("udp_port", 1),
                rtt_ns=request.number("rtt_ns"),
                port_rate_bps=request.number("port_rate_bps", 1),
                seed=request.number("seed"),
                **read_settings(request),
            )
        )
        for row in request.rows("peers"):
            peer = row["peer"]
            self._endpoint.add_peer(peer, [(plane, uplink, (peer, plane, uplink)) for plane, uplink in row["paths"]])
        return {}

    def make(self, config: EndpointConfig) -> Endpoint:
        """The endpoint that it is about."""
        return Endpoint(config)

    def _open_qp(self, request: Request) -> Fields:
        attributes = self._endpoint.open_qp(request.number("peer"), request.number("region_bytes"))
        self._regions[attributes.qpn] = attributes
        return {"qp": attributes.as_json()}

    def _connect_qp(self, request: Request) -> Fields:
        self._endpoint.connect_qp(request.number("qpn"), QpAttributes.from_json(request.table("remote")))
        return {}

    def _probe_paths(self, request: Request) -> Fields:
        self._endpoint.probe_paths(request.number("peer"), request.number("now_ns"))
        return {}

    def _base_rtt(self, request: Request) -> Fields:
        self._endpoint.agree_on_base_rtt(request.number("base_rtt_ns"))
        return {}

    def _write(self, request: Request) -> Fields:
        data = memoryview(bytes.fromhex(request.text("data")))
        immediate = request.number("immediate") if request.has("immediate") else None
        self._endpoint.post_write(
            request.number("qpn"), data, request.number("address"), request.number("wr_id"), immediate
        )
        return {}

    def _deny(self, request: Request) -> Fields:
        self._endpoint.deny(request.number("peer"), [(plane, uplink) for plane, uplink in request.rows("paths")])
        return {}

    def _allow(self, request: Request) -> Fields:
        paths = [(plane, uplink) for plane, uplink in request.rows("paths")]
        self._endpoint.allow(request.number("peer"), paths, request.number("now_ns"))
        return {}

    def _port(self, request: Request) -> Fields:
        change = self._endpoint.port_up if request.flag("up") else self._endpoint.port_down
        change(request.number("plane"), request.number("now_ns"))
        return {}

    def _turn(self, request: Request) -> Fields:
        now_ns = request.number("now_ns")
        placed = [place for row in request.rows("datagrams") for place in self._take_in(row, now_ns)]
        due_ns = self._endpoint.next_timeout()
        if due_ns is not None and due_ns <= now_ns:
            self._endpoint.handle_timeout(now_ns)
        sent = [] if self._quiet else list(self._packets(now_ns, request.number("most", 1)))
        return {
            "transmit": sent,
            "place": placed,
            "events": list(self._events()),
            "timeout_ns": self._endpoint.next_timeout(),
            "more": len(sent) == request.number("most", 1),
        }

    def _take_in(self, row: Any, now_ns: int) -> Iterator[list[Any]]:
        """What the datagram wrote into regions, [[QP, offset, bytes], ...]."""
        peer, entropy, traffic_class, arrival_ns, text = row
        packet = memoryview(bytes.fromhex(text))
        self._endpoint.handle_datagram(packet, peer, entropy >> 16, entropy & 0xFFFF, traffic_class, arrival_ns, now_ns)
        delivered = self._endpoint.counters()["bytes_delivered"]
        size, self._placed = delivered - self._placed, delivered
        if size:
            qpn = int.from_bytes(packet[5:8], "big")
            stamped = 20 if packet[8] & 0x10 else 16
            offset = int.from_bytes(packet[stamped : stamped + 8], "big") - self._regions[qpn].region_address
            yield [qpn, offset, self._endpoint.region(qpn)[offset : offset + size].hex()]

    def _packets(self, now_ns: int, most: int) -> Iterator[list[Any]]:
        for _ in range(most):
            packet = self._endpoint.poll_transmit(now_ns, self._buffer)
            if packet is None:
                return
            size, token, traffic_class = packet
            yield [*token, traffic_class, self._buffer[:size].hex()]  # type: ignore[misc]

    def _events(self) -> Iterator[Fields]:
        while (event := self._endpoint.poll_event()) is not None:
            match event:
                case WriteCompleted():
                    yield {"event": "completed", "qpn": event.qpn, "wr_id": event.wr_id}
                case ImmediateDelivered():
                    yield {"event": "immediate", "qpn": event.qpn, "immediate": event.immediate}
                case QpError():
                    yield {"event": "qp_error", "qpn": event.qpn, "reason": str(event.reason)}
                case EvChanged():
                    where = {"peer": event.peer, "plane": event.plane, "uplink": event.uplink}
                    yield {"event": "ev_state", **where, "from": event.old.value, "to": event.new.value}

    def _stats(self, request: Request) -> Fields:
        return {"counters": self._endpoint.counters()}

    def _silence(self, request: Request) -> Fields:
        self._quiet = True
        return {}

    def _stop(self, request: Request) -> Fields:
        self.running = False
        return {}


def serve(host: ContractHost, name: str, requests: BinaryIO, answers: BinaryIO) -> None:
    """Say hello, then answer each line, until `stop` or the end of the requests."""

    def say(fields: Fields) -> None:
        answers.write(json.dumps(fields, separators=(",", ":")).encode() + b"\n")
        answers.flush()

    say({"contract": VERSION, "name": name})
    while host.running and (line := requests.readline()):
        say(host.answer(line))


if __name__ == "__main__":
    serve(ContractHost(), "mrc-testbed", sys.stdin.buffer, sys.stdout.buffer)
