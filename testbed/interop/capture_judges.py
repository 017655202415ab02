"""What a capture can show of a step. Where it may lack packets, only what is wrong for certain is said.

A capture begins and ends anywhere, and may be that of one port of several, so a packet that is not in it may have been
sent, and the last ones may have been answered later.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mrc_testbed.hosts.common.bth import PSN_MASK
from mrc_testbed.testbed.interop.captured import Captured, SeenPacket
from mrc_testbed.testbed.interop.evidence import Complaints, Role, distance

_FEW = 3
"""As many that are never answered are no chance."""
_ENOUGH = 16
"""Data packets of a QP; with fewer a share says nothing."""
_MOST_SHARE = 0.9
_MEMORY = 1 << 16
"""PSNs of a QP that are remembered: PSNs come again after 2^24."""
_Flow = tuple[str, str, int]
"""Source, destination, QP."""


@dataclass(frozen=True, slots=True)
class CaptureCheck:
    """Of one step. `lacks`: what is missing in the capture to judge it, empty for nothing. `of_absence`: what it finds
    wrong is that packets are not there, which only a whole capture shows."""

    step: int
    needs: Callable[[Role], bool]
    lacks: Callable[[Captured], str]
    judge: Callable[[Captured], Complaints]
    of_absence: bool = False


def is_whole(captured: Captured) -> bool:
    """There are data, and no QP with more than a few packets lacks one."""
    flows = [flow for flow in _flows(filter(is_data, captured.packets)).values() if len(flow) >= _ENOUGH]
    return bool(flows) and all(map(_no_gaps, flows))


def flow_of(each: SeenPacket) -> _Flow:
    """Of data."""
    return each.source, each.destination, each.qp


def is_data(each: SeenPacket) -> bool:
    """A WRITE, whole or trimmed."""
    return each.is_data


def _kinds(*kinds: str, op: str = "") -> Callable[[SeenPacket], bool]:
    return lambda each: each.kind in kinds and op in ("", each.values.get("op"))


def _flows(packets: Iterable[SeenPacket]) -> dict[_Flow, list[SeenPacket]]:
    found: dict[_Flow, list[SeenPacket]] = defaultdict(list)
    for each in packets:
        found[flow_of(each)].append(each)
    return found


# Step 2 and 7: requests and their answers


def no_probes(captured: Captured) -> str:
    """Nothing to answer."""
    return "" if any(captured.came(_kinds("ENDPOINT_REQUEST", op="EV_PROBE"))) else "no EV probe is in the capture"


def no_updates(captured: Captured) -> str:
    """Nothing to answer."""
    asked = any(captured.came(_kinds("ENDPOINT_REQUEST", op="PORT_STATUS")))
    return "" if asked else "no Port Status Update is in the capture"


def probes_answered(captured: Captured) -> Complaints:
    """By their number, and with the EV on which they came."""
    yield from _answered(captured, "EV_PROBE", "EV probes")
    asked_on = {
        (each.source, each.destination, each.values["request_id"]): each.ev
        for each in captured.came(_kinds("ENDPOINT_REQUEST", op="EV_PROBE"))
    }
    for each in captured.sent(_kinds("ENDPOINT_RESPONSE", op="EV_PROBE")):
        ev = asked_on.get((each.destination, each.source, each.values["request_id"]), each.values["of_ev"])
        if ev != each.values["of_ev"]:
            yield f"the answer to EV probe {each.values['request_id']} names EV {each.values['of_ev']}, not {ev}"
            return


def updates_answered(captured: Captured) -> Complaints:
    """By their number."""
    yield from _answered(captured, "PORT_STATUS", "Port Status Updates")


def _answered(captured: Captured, operation: str, what: str) -> Complaints:
    """Who sends packets, but never one of these answers, has no answer."""
    asked = Counter((each.source, each.destination) for each in captured.came(_kinds("ENDPOINT_REQUEST", op=operation)))
    answers = {
        (each.destination, each.source, each.values["request_id"])
        for each in captured.sent(_kinds("ENDPOINT_RESPONSE", op=operation))
    }
    answered = {
        (each.source, each.destination)
        for each in captured.came(_kinds("ENDPOINT_REQUEST", op=operation))
        if (each.source, each.destination, each.values["request_id"]) in answers
    }
    talking = {(each.destination, each.source) for each in captured.sent()}
    for pair, count in asked.items():
        if count >= _FEW and pair in talking and pair not in answered:
            yield f"{pair[1]} answered none of {count} {what} of {pair[0]}"


# Step 3: a stream


def no_data_out(captured: Captured) -> str:
    """Nothing was sent."""
    return "" if any(captured.sent(is_data)) else "no data packet of it is in the capture"


def no_data_in(captured: Captured) -> str:
    """Nothing came."""
    return "" if any(captured.came(is_data)) else "no data packet to it is in the capture"


def in_order(captured: Captured) -> Complaints:
    """On a path packets keep their order, so new data has rising PSNs there."""
    last: dict[tuple[object, ...], int] = {}
    for each in captured.sent(lambda each: each.is_data and not each.again and not each.trimmed):
        key = (*flow_of(each), *each.path)
        before = last.get(key, each.psn)
        if distance(each.psn, before) < 0:
            yield f"PSN {each.psn} of QP {each.qp:#x} comes after {before} on EV {each.ev}, not marked as sent again"
            return
        last[key] = each.psn


def acknowledged(captured: Captured) -> Complaints:
    """Who takes data in and sends packets, sends SACKs or acknowledgements among them."""
    came = Counter((each.source, each.destination) for each in captured.came(is_data))
    answering = {(each.destination, each.source) for each in captured.sent(_kinds("SACK", "TRANSPORT_ACK", "NACK"))}
    talking = {(each.destination, each.source) for each in captured.sent()}
    for pair, count in came.items():
        if count > _ENOUGH and pair in talking and pair not in answering:
            yield f"{pair[1]} acknowledged none of {count} data packets of {pair[0]}"


# Step 4: spraying, SACKs


def no_spray(captured: Captured) -> str:
    """No QP with data on several EVs."""
    flows = [flow for flow in _flows(captured.sent(is_data)).values() if len(flow) >= _ENOUGH]
    if not flows:
        return f"no QP has {_ENOUGH} data packets in the capture"
    if not any(len({each.ev for each in flow}) > 1 for flow in flows):
        return "data is on one EV only; a capture of one path does not show spraying"
    return ""


def sprayed(captured: Captured) -> Complaints:
    """No EV of a QP that uses several carries nearly all."""
    for (_, _, qp), flow in _flows(captured.sent(is_data)).items():
        (ev, most), *others = Counter(each.ev for each in flow).most_common()
        if others and len(flow) >= _ENOUGH and most > _MOST_SHARE * len(flow):
            yield f"EV {ev} carried {most} of {len(flow)} data packets of QP {qp:#x}; {len(others) + 1} EVs share them"


def no_whole_flow(captured: Captured) -> str:
    """No QP that has all its data in the capture, and SACKs."""
    if captured.repeats:
        return "a capture of all interfaces does not show in which order packets came"
    if not any(captured.sent(_kinds("SACK"))):
        return "no SACK is in the capture"
    if not _pairs(captured):
        return "the capture lacks data packets that SACKs tell of; capture all ports of the host"
    return ""


def honest(captured: Captured) -> Complaints:
    """No SACK names a packet that had not been seen by then."""
    for flow, sacks in _pairs(captured):
        first, whole = _first(flow), 0
        waiting = iter(flow)
        seen: set[int] = set()
        following = next(waiting, None)
        for sack in sacks:
            while following is not None and following.t_ns <= sack.t_ns:
                if not following.trimmed:
                    seen.add(distance(following.psn, first))
                following = next(waiting, None)
            while whole in seen:
                whole += 1
            for named in _named(sack, first, whole):
                if named >= 0 and named not in seen:
                    yield f"a SACK names PSN {first + named & PSN_MASK} of QP {flow[0].qp:#x}, which had not come"
                    return


def _named(sack: SeenPacket, first: int, whole: int) -> Iterable[int]:
    """Packets, by their number from `first` on, that it says have come; of those in a row the first that is missing."""
    if distance(sack.values["cack"], first) >= whole:
        yield whole
    for low, high in sack.values["received"]:
        yield from range(distance(low, first), distance(low, first) + (high - low & PSN_MASK) + 1)


def _pairs(captured: Captured) -> list[tuple[list[SeenPacket], list[SeenPacket]]]:
    """Data of QPs without a gap, each with its SACKs. A SACK names the QP of its receiver, so they belong together
    where its PSNs are among those of one QP alone."""
    whole = {flow: packets for flow, packets in _flows(captured.came(is_data)).items() if _no_gaps(packets)}
    by_sender: dict[tuple[str, str], list[_Flow]] = defaultdict(list)
    for flow in _flows(captured.came(is_data)):
        by_sender[flow[:2]].append(flow)
    found = []
    for (receiver, sender, _), sacks in _flows(captured.sent(_kinds("SACK"))).items():
        flows = by_sender[sender, receiver]
        fitting = flows if len(flows) == 1 else [flow for flow in flows if flow in whole and _fits(whole[flow], sacks)]
        if len(fitting) == 1 and fitting[0] in whole:
            found.append((whole[fitting[0]], sacks))
    return found


def _no_gaps(packets: list[SeenPacket]) -> bool:
    numbers = {distance(each.psn, packets[0].psn) for each in packets}
    return len(packets) < _MEMORY and max(numbers) - min(numbers) == len(numbers) - 1


def _first(packets: list[SeenPacket]) -> int:
    """The lowest PSN: packets on two paths need not come in order."""
    return packets[0].psn + min(distance(each.psn, packets[0].psn) for each in packets) & PSN_MASK


def _fits(packets: list[SeenPacket], sacks: list[SeenPacket]) -> bool:
    first = _first(packets)
    return all(-1 <= distance(each.values["cack"], first) < len(packets) for each in sacks)


# Step 5 and 6: losses and trims


def nothing_again(captured: Captured) -> str:
    """Nothing was lost."""
    if captured.repeats:
        return "a capture of all interfaces has packets twice that were sent once"
    for flow in _flows(captured.sent(is_data)).values():
        if any(each.again for each in flow) or len({each.psn for each in flow}) < len(flow):
            return ""
    return "no data packet of the capture was sent again"


def again_is_marked(captured: Captured) -> Complaints:
    """What is sent for the second time says so."""
    for (_, _, qp), flow in _flows(captured.sent(is_data)).items():
        seen: dict[int, None] = {}
        for each in flow:
            if each.psn in seen and not each.again:
                yield f"PSN {each.psn} of QP {qp:#x} is sent again without the bit that says so"
                return
            seen[each.psn] = None
            if len(seen) > _MEMORY:
                del seen[next(iter(seen))]


def no_trims(captured: Captured) -> str:
    """Nothing to ask for."""
    return "" if any(captured.came(lambda each: each.trimmed)) else "no trimmed packet is in the capture"


def no_nacks(captured: Captured) -> str:
    """Nothing to heed."""
    return "" if any(captured.came(_kinds("NACK"))) else "no NACK is in the capture"


def trims_told(captured: Captured) -> Complaints:
    """NACKs ask for trimmed packets."""
    nacks = {(each.destination, each.source, each.psn) for each in captured.sent(_kinds("NACK"))}
    trimmed = list(captured.came(lambda each: each.trimmed))
    told = sum((each.source, each.destination, each.psn) in nacks for each in trimmed)
    talking = any(captured.sent())
    if talking and len(trimmed) >= _FEW and told * 2 < len(trimmed):
        yield f"{len(trimmed)} packets came trimmed, and NACKs asked for {told} of them"


def nacks_heeded(captured: Captured) -> Complaints:
    """What NACKs ask for is sent again."""
    again = {(each.destination, each.source, each.psn): each.t_ns for each in captured.sent(is_data) if each.again}
    nacks = list(captured.came(_kinds("NACK")))
    heeded = sum(again.get((each.source, each.destination, each.psn), -1) >= each.t_ns for each in nacks)
    talking = any(captured.sent(is_data))
    if talking and len(nacks) >= _FEW and heeded * 2 < len(nacks):
        yield f"{len(nacks)} NACKs came, and {heeded} of these packets were sent again"


def _any(role: Role) -> bool:
    return True


def _sends(role: Role) -> bool:
    return role.sends


def _receives(role: Role) -> bool:
    return role.receives


CHECKS = (
    CaptureCheck(2, _any, no_probes, probes_answered, of_absence=True),
    CaptureCheck(3, _sends, no_data_out, in_order),
    CaptureCheck(3, _receives, no_data_in, acknowledged, of_absence=True),
    CaptureCheck(4, _sends, no_spray, sprayed),
    CaptureCheck(4, _receives, no_whole_flow, honest),
    CaptureCheck(5, _sends, nothing_again, again_is_marked),
    CaptureCheck(6, _receives, no_trims, trims_told, of_absence=True),
    CaptureCheck(6, _sends, no_nacks, nacks_heeded, of_absence=True),
    CaptureCheck(7, _any, no_updates, updates_answered, of_absence=True),
)
