"""What is known of one run of a step: the tape, the run folder, and what follows from both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from mrc_testbed.hosts.common.bth import PSN_MASK
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.interop.tape import Crossing, Tape
from mrc_testbed.testbed.report.outcome import RunOutcome

Complaints = Iterator[str]
"""What is wrong, a sentence each; nothing is wrong where there are none."""


class Role(StrEnum):
    """What a program can do with data."""

    BOTH = "both"
    SENDER = "sender"
    RECEIVER = "receiver"

    @property
    def sends(self) -> bool:
        """It sends data."""
        return self is not Role.RECEIVER

    @property
    def receives(self) -> bool:
        """It takes data in."""
        return self is not Role.SENDER


@dataclass(frozen=True, slots=True)
class QpEnds:
    """Both ends of a QP, as they told each other. `own`, `remote`: attributes as JSON."""

    peer: int
    own: dict[str, Any]
    remote: dict[str, Any]


@dataclass(frozen=True)
class StepEvidence:
    """Of one run."""

    tape: Tape
    record: RunRecord
    outcome: RunOutcome
    role: Role

    @cached_property
    def qps(self) -> list[QpEnds]:
        """Of the program's host."""
        opened = {fields["qp"]["qpn"]: fields for _, fields in self.tape.of("open_qp")}
        return [
            QpEnds(opened[fields["qpn"]]["peer"], opened[fields["qpn"]]["qp"], fields["remote"])
            for _, fields in self.tape.of("connect_qp")
        ]

    def reached(self, phase: str) -> bool:
        """Did this phase of the run end well?"""
        return any(line.op == "phase" and line.phase == phase and line.type == "ok" for line in self.record.history)

    def times_of(self, op: str, fault: str) -> list[int]:
        """When a fault was injected or healed, ns."""
        lines = self.record.history
        return [line.t_ns for line in lines if line.op == op and line.fault == fault and line.type == "ok"]

    @property
    def begin_ns(self) -> int:
        """When the phase `run` began; the end of all time where it did not."""
        begins = (line.t_ns for line in self.record.history if line.op == "phase" and line.phase == "run")
        return next(begins, 1 << 62)

    @property
    def rtt_ns(self) -> int:
        """T."""
        return self.record.scenario.shape().rtt_ns

    def data_to(self, ends: QpEnds) -> list[Crossing]:
        """Data that the program sent on a QP."""
        return [each for each in self.tape.data_sent() if each.peer == ends.peer and each.qpn == ends.remote["qpn"]]

    def data_from(self, ends: QpEnds) -> list[Crossing]:
        """Data that came on a QP, trimmed ones too."""
        qpn = ends.own["qpn"]
        return list(self.tape.came(lambda each: each.is_data and each.peer == ends.peer and each.qpn == qpn))

    def trimmed(self, each: Crossing) -> bool:
        """Did a switch cut it?"""
        rules = self.record.scenario.trimming.rules()
        return each.traffic_class >> 2 in (rules.dscp, rules.dscp_last_hop)

    def answers_to(self, ends: QpEnds, opcode: int) -> list[Crossing]:
        """Packets of this kind that the program sent for a QP."""
        qpn = ends.remote["qpn"]
        return list(self.tape.sent(lambda each: each.opcode == opcode and each.peer == ends.peer and each.qpn == qpn))


def requests(crossings: Iterator[Crossing], operation: int) -> Iterator[tuple[Crossing, int, int]]:
    """Endpoint requests of an operation among packets: (packet, request id, port mask)."""
    for each in crossings:
        if each.opcode == wire.ENDPOINT_REQUEST and len(each.packet) == wire.REQUEST_BYTES:
            found, number, mask, *_ = wire.parse_request(memoryview(each.packet))
            if found == operation:
                yield each, number, mask


def distance(psn: int, base: int) -> int:
    """How far a PSN is ahead of another, -2^23 to 2^23 - 1."""
    ahead = psn - base & PSN_MASK
    return ahead - (PSN_MASK + 1) if ahead > PSN_MASK >> 1 else ahead
