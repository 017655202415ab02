"""What holds in every step: packets that can be read, PSNs in order, and no answer for what has not come."""

from __future__ import annotations

from collections.abc import Iterable

from mrc_testbed.hosts.common.bth import PSN_MASK
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.interop.evidence import Complaints, QpEnds, StepEvidence, distance
from mrc_testbed.testbed.interop.tape import Crossing

_SACK_BITS = 64


def whole_run(evidence: StepEvidence) -> Complaints:
    """The run passed: flows ended, every byte is right in the memory of both ends, and the books agree."""
    outcome = evidence.outcome
    verdict = outcome.verdict
    if outcome.exit_code is ExitCode.PASS or verdict is None:
        return
    failed = [check for check in verdict.checks if check.status.value not in ("pass", "n/a")]
    for line in evidence.record.history:
        if line.type == "fail" and line.op != "phase" and line.error:
            yield line.error
    for check in failed:
        seen = check.observed_as or (
            "unknown" if check.observed is None else f"{check.observed:g} {check.unit}".strip()
        )
        yield f"{check.name}: {seen}"
    if verdict.fidelity.caveat:
        yield verdict.fidelity.caveat
    for figure in verdict.fidelity.figures:
        if not figure.ok:
            yield f"{figure.name}: {figure.why or figure.observed}"


def readable(evidence: StepEvidence) -> Complaints:
    """Every packet of the program is one of MRC."""
    for each in evidence.tape.sent():
        refusal = wire.check(memoryview(each.packet), evidence.record.scenario.endpoint.icrc)
        if refusal is not None:
            yield f"sent a packet that cannot be read: {refusal.value} (opcode {each.opcode:#04x})"
            return


def psns_in_order(evidence: StepEvidence) -> Complaints:
    """New data counts up from the PSN that was announced; what is sent again was sent before, and says so."""
    for ends in evidence.qps:
        first = following = ends.own["psn"]
        for each in evidence.data_to(ends):
            if each.psn == following:
                following = following + 1 & PSN_MASK
                if each.again:
                    yield f"PSN {each.psn} says that it is sent again, and it is not"
                    return
            elif not 0 <= distance(each.psn, first) < distance(following, first):
                yield f"data has PSN {each.psn} where {following} is next (the first is {first})"
                return
            elif not each.again:
                yield f"PSN {each.psn} is sent again without the bit that says so"
                return


def honest(evidence: StepEvidence) -> Complaints:
    """No SACK and no acknowledgement names a packet that had not come by then."""
    for ends in evidence.qps:
        yield from _honest_qp(evidence, ends)


def _honest_qp(evidence: StepEvidence, ends: QpEnds) -> Complaints:
    first, own, remote = ends.remote["psn"], ends.own["qpn"], ends.remote["qpn"]
    came: set[int] = set()
    whole = 0
    for each in evidence.tape.packets:
        if each.peer != ends.peer:
            continue
        if not each.out:
            if each.is_data and each.qpn == own and not evidence.trimmed(each):
                came.add(distance(each.psn, first))
                while whole in came:
                    whole += 1
        elif each.qpn == remote:
            for named in _named(each, first, whole):
                if named not in came:
                    kind = "a SACK" if each.opcode == wire.SACK else "an acknowledgement"
                    yield f"{kind} names PSN {first + named & PSN_MASK}, which had not come"
                    return


def _named(each: Crossing, first: int, whole: int) -> Iterable[int]:
    """Packets, by number, that an answer says have come; of those in a row up to its cumulative PSN the last, and the
    first that is missing."""
    view = memoryview(each.packet)
    if each.opcode == wire.TRANSPORT_ACK and len(view) == wire.ACK_BYTES:
        _, psn, _, _ = wire.parse_ack(view)
        bits, offset, bitmap = psn, 0, 0
    elif each.opcode == wire.SACK and len(view) == wire.SACK_BYTES:
        bits, _, _, _, _, _, offset, bitmap, *_ = wire.read_sack(view)
    else:
        return
    last = distance(bits & PSN_MASK, first)
    if last >= whole:
        yield whole
    for bit in range(_SACK_BITS):
        if bitmap >> bit & 1:
            yield last + offset + bit
