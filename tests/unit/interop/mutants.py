"""Our endpoint with one thing wrong each, as programs that speak the contract: `python mutants.py NAME`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mrc_testbed.hosts.common.bth import HAS_IMMEDIATE, WRITE_FIRST
from mrc_testbed.hosts.contract import ContractHost, serve
from mrc_testbed.hosts.control import Fields, Request
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.endpoint import Endpoint
from mrc_testbed.hosts.plugins import LoadedPlugins

TRIMMED = (wire.DSCP_TRIMMED, wire.DSCP_TRIMMED_LASTHOP)


def is_data(packet: bytes | bytearray) -> bool:
    return WRITE_FIRST <= packet[0] <= wire.LAST_DATA_OPCODE


def operation(packet: bytes | bytearray) -> int | None:
    return wire.parse_request(memoryview(packet))[0] if packet[0] == wire.ENDPOINT_REQUEST else None


class Mutant(ContractHost):
    """Hooks for what is wrong. It fails at `step`, in the run of that name, with a reason that has `why` in it."""

    step: int
    run = ""
    why: str
    silent = False
    """It fails by not answering."""

    def incoming(self, packet: bytes, traffic_class: int) -> bool:
        """Is it taken in?"""
        return True

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        """Change it; is it sent?"""
        return True

    def turned(self, answer: Fields) -> None:
        """Change the answer to a turn."""

    def _turn(self, request: Request) -> Fields:
        fields = request._fields
        fields["datagrams"] = [
            row for row in fields["datagrams"] if len(row[4]) < 40 or self.incoming(bytes.fromhex(row[4]), row[2])
        ]
        answer = super()._turn(request)
        kept = []
        for row in answer["transmit"]:
            packet = bytearray.fromhex(row[4])
            if self.outgoing(row, packet):
                kept.append([*row[:4], packet.hex()])
        answer["transmit"] = kept
        self.turned(answer)
        return answer


class PsnOffByOne(Mutant):
    step = 3
    why = "data has PSN"

    def _open_qp(self, request: Request) -> Fields:
        answer = super()._open_qp(request)
        answer["qp"]["psn"] = answer["qp"]["psn"] - 1 & 0xFFFFFF
        return answer


class DeliversTwice(Mutant):
    step = 5
    run = "loss"
    why = "arrived instead of"

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[bytes] = set()
        self.twice: list[Fields] = []

    def incoming(self, packet: bytes, traffic_class: int) -> bool:
        if packet[0] in HAS_IMMEDIATE and traffic_class >> 2 not in TRIMMED:
            key = packet[5:12]
            immediate = wire.parse_immediate(memoryview(packet))
            if key in self.seen:
                qpn = int.from_bytes(packet[5:8], "big")
                self.twice.append({"event": "immediate", "qpn": qpn, "immediate": immediate})
            self.seen.add(key)
        return True

    def turned(self, answer: Fields) -> None:
        answer["events"] += self.twice
        self.twice = []


class IgnoresTrims(Mutant):
    step = 6
    run = "incast-receiver"
    why = "no NACK asked for it"

    def incoming(self, packet: bytes, traffic_class: int) -> bool:
        return traffic_class >> 2 not in TRIMMED


class IgnoresDeny(Mutant):
    step = 7
    run = "denied"
    why = "on the denied EV"

    def _deny(self, request: Request) -> Fields:
        return {}


class IgnoresAllow(Mutant):
    step = 7
    run = "denied"
    why = "after it was allowed again"

    def _allow(self, request: Request) -> Fields:
        return {}


class AcksTooFar(Mutant):
    step = 3
    why = "an acknowledgement names PSN"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        if packet[0] == wire.TRANSPORT_ACK:
            packet[8:12] = (int.from_bytes(packet[8:12], "big") + 1 & 0xFFFFFF).to_bytes(4, "big")
        return True


class AcksBeforeItIsThere(Mutant):
    step = 3
    why = "all data arrived as sent"

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Any] = []

    def turned(self, answer: Fields) -> None:
        answer["place"], self.held = self.held, answer["place"]


class SacksAll(Mutant):
    step = 4
    why = "a SACK names PSN"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        if packet[0] == wire.SACK:
            packet[32:40] = b"\xff" * 8
        return True


class SendsNothingAgain(Mutant):
    step = 5
    run = "loss"
    why = "not finished within"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        return not (is_data(packet) and packet[8] & 0x20)


class SaysNotThatItIsAgain(Mutant):
    step = 5
    run = "loss"
    why = "without the bit"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        if is_data(packet):
            packet[8] &= ~0x20
        return True


class OnePath(Mutant):
    step = 4
    why = "planes should carry the same"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        if is_data(packet):
            row[1:3] = [0, 0]
        return True


class IgnoresItsPort(Mutant):
    step = 7
    run = "own-port"
    why = "while its own port there was down"

    def _port(self, request: Request) -> Fields:
        return {}


class TellsNoPort(Mutant):
    step = 7
    run = "own-port"
    why = "told no peer"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        return operation(packet) != wire.OP_PORT_STATUS


class IgnoresPeersPort(Mutant):
    step = 7
    run = "peers-port"
    why = "no answer to Port Status Update"

    def incoming(self, packet: bytes, traffic_class: int) -> bool:
        return operation(packet) != wire.OP_PORT_STATUS


class AnswersNoProbe(Mutant):
    step = 2
    why = "did not answer a probe"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        return packet[0] != wire.ENDPOINT_RESPONSE


class ProbesOnePath(Mutant):
    step = 2
    why = "did not answer a probe"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        return operation(packet) != wire.OP_EV_PROBE or row[1:3] == [0, 0]


class NeverQuiet(Mutant):
    step = 1
    why = "after `quiet`"

    def turned(self, answer: Fields) -> None:
        probe = bytearray(wire.REQUEST_BYTES)
        wire.emit_request(memoryview(probe), wire.OP_EV_PROBE, 1, 3, 0)
        answer["transmit"].append([1, 0, 0, 184, probe.hex()])


class NeverStops(Mutant):
    step = 1
    why = "the answer to `stop`"
    silent = True

    def _stop(self, request: Request) -> Fields:
        time.sleep(60)
        return {}


class TellsNoMarks(Mutant):
    step = 6
    run = "marks"
    why = "came marked, and 0 SACKs"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        if packet[0] == wire.SACK:
            packet[13] &= ~wire.SACK_MARK_MASK
        return True


class NeverGivesUp(Mutant):
    step = 5
    run = "silence"
    why = "no event qp_error"

    def turned(self, answer: Fields) -> None:
        answer["events"] = [event for event in answer["events"] if event["event"] != "qp_error"]


class Everything:
    """A window without end."""

    window = 1 << 30

    def __init__(self, timing: Any) -> None: ...

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


class Greedy(Mutant):
    step = 6
    run = "incast-sender"
    why = "times its share"

    def make(self, config: EndpointConfig) -> Endpoint:
        plugins = LoadedPlugins()
        plugins._made["congestion_control"]["everything"] = Everything
        return Endpoint(replace(config, congestion_control="everything"), plugins.plugins)


class IgnoresNacks(Mutant):
    step = 6
    run = "incast-sender"
    why = "not sent again within"

    def incoming(self, packet: bytes, traffic_class: int) -> bool:
        return packet[0] != wire.NACK


class CountsWrong(Mutant):
    step = 8
    why = "`stats` says"

    def _stats(self, request: Request) -> Fields:
        answer = super()._stats(request)
        answer["counters"]["data_sent"] += 1
        return answer


class FlipsABit(Mutant):
    step = 3
    why = "all data arrived as sent"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        if is_data(packet) and len(packet) > 100:
            packet[60] ^= 1
        return True


class SwallowsImmediates(Mutant):
    step = 3
    why = "not finished within"

    def turned(self, answer: Fields) -> None:
        answer["events"] = [event for event in answer["events"] if event["event"] != "immediate"]


class WritesBeside(Mutant):
    step = 3
    why = "outside of the region"

    def turned(self, answer: Fields) -> None:
        for place in answer["place"]:
            place[1] += 1 << 30


class WrongVersion(Mutant):
    step = 3
    why = "cannot be read: bad_version"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        packet[1] |= 1
        return True


class StaysOnDeadPath(Mutant):
    step = 7
    run = "dead-path"
    why = "on a dead EV"

    def outgoing(self, row: list[Any], packet: bytearray) -> bool:
        if is_data(packet) and row[1] == 0:
            row[2] = packet[11] & 1
        return True


def _one_of_each_step_first() -> dict[str, type[Mutant]]:
    found = Mutant.__subclasses__()
    turn = {each: [one for one in found if one.step == each.step].index(each) for each in found}
    return {each.__name__: each for each in sorted(found, key=lambda each: (turn[each], each.step))}


MUTANTS = _one_of_each_step_first()

if __name__ == "__main__":
    serve(MUTANTS[sys.argv[1]](), sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
