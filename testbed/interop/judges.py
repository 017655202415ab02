"""What each step asks of a run, beside what always holds. A judge says what is wrong, or nothing."""

from __future__ import annotations

from collections import Counter
from statistics import median

from mrc_testbed.hosts.common.bth import PSN_MASK
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.interop.evidence import Complaints, StepEvidence, requests
from mrc_testbed.testbed.interop.tape import Crossing

_MOST_TRIES = 12
"""Of one packet at a loss of a few percent."""
_PACKETS_PER_ANSWER = 16
"""A sender that hears less often than that knows too little of its paths."""
_RESENT_RTTS = 1.5
_INCAST_SENDERS = 3
_MOST_SHARE = 1.5
"""The first to begin is ahead of the others for a while."""
_ENOUGH = 50
"""Data packets; with fewer a share says nothing."""
_NEVER = 1 << 62
_LEAVE_RTTS = 8
"""A path that loses everything has no data left after that: three to find the loss, and what was under way."""


def paths_probed(evidence: StepEvidence) -> Complaints:
    """Each path carried an EV probe, and came back."""
    if not evidence.reached("warm up"):
        errors = [line.error for line in evidence.record.history if line.type == "fail" and line.error]
        yield errors[0] if errors else "the warm-up did not end"


def probes_answered(evidence: StepEvidence) -> Complaints:
    """Each endpoint request of a peer has an answer with its number and its EV."""
    answers: Counter[tuple[int, int, int]] = Counter()
    for each in evidence.tape.sent(lambda each: each.opcode == wire.ENDPOINT_RESPONSE):
        operation, number, entropy, *_ = wire.parse_response(memoryview(each.packet))
        if operation == wire.OP_EV_PROBE:
            answers[each.peer, number, entropy >> 16] += 1
    last_ns = evidence.tape.packets[-1].t_ns if evidence.tape.packets else 0
    for each, number, _ in requests(evidence.tape.came(), wire.OP_EV_PROBE):
        key = each.peer, number, each.plane << 8 | each.uplink
        if each.t_ns < last_ns - evidence.rtt_ns and not answers[key]:
            yield f"no answer to EV probe {number} of host {each.peer} on plane {each.plane}, uplink {each.uplink}"
            return
        answers[key] -= 1


def sent_once(evidence: StepEvidence) -> Complaints:
    """Where nothing is lost, nothing is sent twice."""
    again = sum(each.again for each in evidence.tape.data_sent())
    if again:
        yield f"sent {again} packets again where none was lost"


def whole_packets(evidence: StepEvidence) -> Complaints:
    """No payload is longer than the path MTU."""
    for ends in evidence.qps:
        most = min(ends.own["mtu"], ends.remote["mtu"])
        longest = max((len(each.packet) for each in evidence.data_to(ends)), default=0)
        if longest > most + wire.MAX_HEADER_BYTES:
            yield f"sent a packet of {longest} B; the path MTU is {most} B"


def sprayed(evidence: StepEvidence) -> Complaints:
    """Planes carry the same, and each path its share."""
    for ends in evidence.qps:
        data = evidence.data_to(ends)
        by_plane, by_path = Counter(each.plane for each in data), Counter(each.path for each in data)
        planes = evidence.record.scenario.shape().planes
        plan = evidence.record.plan
        paths = plan.paths(plan.hosts[0], plan.hosts[ends.peer])
        if len(data) < 8 * len(paths):
            continue
        for plane in range(planes):
            if abs(by_plane[plane] * planes - len(data)) > 0.1 * len(data):
                yield f"plane {plane} carried {by_plane[plane]} of {len(data)} packets; planes should carry the same"
                return
        for path in paths:
            carried = by_path[path.id.plane, path.id.uplink]
            if carried * len(paths) < 0.5 * len(data):
                where = f"plane {path.id.plane}, uplink {path.id.uplink}"
                yield f"{where} carried {carried} of {len(data)} packets; {len(paths)} paths should share them"
                return


def acknowledged_often(evidence: StepEvidence) -> Complaints:
    """SACKs come every few packets, and name EVs that packets came on."""
    for ends in evidence.qps:
        data, sacks = evidence.data_from(ends), evidence.answers_to(ends, wire.SACK)
        if len(data) > _PACKETS_PER_ANSWER * (len(sacks) + 1):
            yield f"sent {len(sacks)} SACKs for {len(data)} data packets; one for {_PACKETS_PER_ANSWER} is the least"
        came_on = {each.path for each in evidence.tape.came()}
        for each in sacks:
            entropy = wire.read_sack(memoryview(each.packet))[3]
            if (entropy >> 24, entropy >> 16 & 0xFF) not in came_on:
                yield f"a SACK names EV {entropy:#010x}, on which nothing came"
                return


def tries_bounded(evidence: StepEvidence) -> Complaints:
    """A few percent of loss make no packet go again and again."""
    tries = Counter((each.peer, each.qpn, each.psn) for each in evidence.tape.data_sent())
    if tries and max(tries.values()) > _MOST_TRIES:
        (_, _, psn), most = tries.most_common(1)[0]
        yield f"PSN {psn} was sent {most} times; {_MOST_TRIES} are enough at this loss"


def gave_up(evidence: StepEvidence) -> Complaints:
    """A peer that never answers ends the QP, and nothing is sent on it afterwards."""
    if not evidence.role.sends:
        return
    errors = list(evidence.tape.of("qp_error"))
    if not errors:
        yield "no event qp_error, although the peer was silent until the end"
        return
    at_ns = errors[0][0]
    late = [each for each in evidence.tape.data_sent() if each.t_ns > at_ns + evidence.rtt_ns]
    if late:
        yield f"sent {len(late)} data packets after qp_error"


def trims_told(evidence: StepEvidence) -> Complaints:
    """Each trimmed packet is asked for by a NACK with its PSN and the reason."""
    for ends in evidence.qps:
        nacks: dict[int, int] = {}
        for each in evidence.answers_to(ends, wire.NACK):
            _, bits, reason, _, _ = wire.parse_nack(memoryview(each.packet))
            nacks.setdefault(bits & PSN_MASK, reason)
        trimmed = [each for each in evidence.data_from(ends) if evidence.trimmed(each)]
        for each in trimmed:
            if each.psn not in nacks and not _came_whole(evidence, ends.own["qpn"], each):
                yield f"PSN {each.psn} came trimmed, and no NACK asked for it"
                return
        last_hop = evidence.record.scenario.trimming.rules().dscp_last_hop
        for each in trimmed:
            wanted = wire.NACK_TRIMMED_LASTHOP if each.traffic_class >> 2 == last_hop else wire.NACK_TRIMMED
            if nacks.get(each.psn, wanted) != wanted:
                yield f"the NACK of PSN {each.psn} has reason {nacks[each.psn]:#x}, not {wanted:#x}"
                return


def _came_whole(evidence: StepEvidence, qpn: int, cut: Crossing) -> bool:
    """Had it come whole before it came trimmed?"""
    return any(
        each.is_data
        and each.qpn == qpn
        and each.psn == cut.psn
        and each.t_ns <= cut.t_ns
        and not evidence.trimmed(each)
        for each in evidence.tape.came()
    )


def marks_told(evidence: StepEvidence) -> Complaints:
    """Marks of congestion come back in SACKs."""
    marked = sum(each.marked for each in evidence.tape.came(lambda each: each.is_data))
    sacks = [each for each in evidence.tape.sent() if each.opcode == wire.SACK]
    told = sum(bool(wire.read_sack(memoryview(each.packet))[1] & wire.SACK_MARK_MASK) for each in sacks)
    if marked >= 8 and told * 8 < marked:
        yield f"{marked} data packets came marked, and {told} SACKs say so"


def trims_resent(evidence: StepEvidence) -> Complaints:
    """What a NACK asks for is sent again soon: half of it within 1.5 T, by when a loss could be inferred."""
    again = [each for each in evidence.tape.data_sent() if each.again]
    waits_ns = []
    for each in evidence.tape.came(lambda each: each.opcode == wire.NACK):
        psn = wire.parse_nack(memoryview(each.packet))[1] & PSN_MASK
        later = (one.t_ns - each.t_ns for one in again if one.psn == psn and one.t_ns >= each.t_ns)
        waits_ns.append(min(later, default=_NEVER))
    if waits_ns and median(waits_ns) > _RESENT_RTTS * evidence.rtt_ns:
        yield f"half of {len(waits_ns)} packets that NACKs asked for were not sent again within {_RESENT_RTTS:g} T"


def takes_its_share(evidence: StepEvidence) -> Complaints:
    """Among three senders to one host it is not much faster than a third of the port allows."""
    data = [each for each in evidence.tape.data_sent() if not each.again]
    if len(data) < _ENOUGH:
        return
    shape = evidence.record.scenario.shape()
    rate_bps = shape.planes * shape.port_rate_bps
    fair_ns = _INCAST_SENDERS * sum(len(each.packet) for each in data) * 8 * 10**9 / rate_bps
    took_ns = data[-1].t_ns - data[0].t_ns
    if took_ns * _MOST_SHARE < fair_ns:
        yield f"took {fair_ns / max(took_ns, 1):.1f} times its share of the port in an incast: it does not slow down"


def denied_left(evidence: StepEvidence) -> Complaints:
    """No data on a denied EV from the next turn on until it is allowed."""
    allowed = {tuple(path): t_ns for t_ns, fields in evidence.tape.of("allow") for path in fields["paths"]}
    denied = {tuple(path): t_ns for t_ns, fields in evidence.tape.of("deny") for path in fields["paths"]}
    for each in evidence.tape.data_sent():
        if each.path in denied and denied[each.path] < each.t_ns < allowed.get(each.path, _NEVER):
            yield f"sent data on the denied EV of plane {each.plane}, uplink {each.uplink}"
            return
    for path, since_ns in allowed.items():
        if not any(each.path == path and each.t_ns > since_ns for each in evidence.tape.data_sent()):
            yield f"sent no data on the EV of plane {path[0]}, uplink {path[1]} after it was allowed again"


def dead_path_left(evidence: StepEvidence, path: tuple[int, int] = (0, 0), fault: str = "dead") -> Complaints:
    """Data leaves a path that loses everything; probes ask for it; and it is used again when it is whole."""
    for begin_ns, end_ns in zip(evidence.times_of("inject", fault), evidence.times_of("heal", fault), strict=False):
        left_ns = begin_ns + _LEAVE_RTTS * evidence.rtt_ns
        late = [each for each in evidence.tape.data_sent() if each.path == path and left_ns < each.t_ns < end_ns]
        if late:
            yield f"sent {len(late)} data packets on a dead EV, from {_LEAVE_RTTS} T after it had died"
        probes = [each for each, *_ in requests(evidence.tape.sent(), wire.OP_EV_PROBE) if each.path == path]
        if not any(left_ns < each.t_ns for each in probes):
            yield "sent no EV probe on a dead EV"
        elif not any(each.path == path and each.t_ns > end_ns for each in evidence.tape.data_sent()):
            yield "sent no data on the EV that was whole again"


def port_told(evidence: StepEvidence) -> Complaints:
    """A port of its own that is down carries nothing, and the peers hear of it; so does one of a peer."""
    for down_ns, fields in evidence.tape.of("port"):
        if fields["up"]:
            continue
        ups = (t_ns for t_ns, each in evidence.tape.of("port") if each["up"] and each["plane"] == fields["plane"])
        up_ns, plane = min((t_ns for t_ns in ups if t_ns > down_ns), default=_NEVER), fields["plane"]
        if any(each.plane == plane and down_ns < each.t_ns < up_ns for each in evidence.tape.sent()):
            yield f"sent on plane {plane} while its own port there was down"
        updates = requests(evidence.tape.sent(), wire.OP_PORT_STATUS)
        told = [mask for each, _, mask in updates if down_ns <= each.t_ns < up_ns]
        if not any(not mask >> plane & 1 for mask in told):
            yield f"told no peer that its port of plane {plane} was down"
        back = any(each.plane == plane and each.t_ns > up_ns for each in evidence.tape.data_sent())
        if evidence.role.sends and not back:
            yield f"sent no data on plane {plane} after its port was up again"


def peers_port_heeded(evidence: StepEvidence) -> Complaints:
    """A Port Status Update of a peer is answered, and its plane left."""
    answered = set()
    for each in evidence.tape.sent(lambda each: each.opcode == wire.ENDPOINT_RESPONSE):
        operation, number, *_ = wire.parse_response(memoryview(each.packet))
        if operation == wire.OP_PORT_STATUS:
            answered.add((each.peer, number))
    for each, number, mask in requests(evidence.tape.came(), wire.OP_PORT_STATUS):
        if (each.peer, number) not in answered:
            yield f"no answer to Port Status Update {number} of host {each.peer}"
            return
        down = [plane for plane in range(evidence.record.scenario.shape().planes) if not mask >> plane & 1]
        until_ns = each.t_ns + 4 * evidence.rtt_ns
        late = (one for one in evidence.tape.data_sent() if one.peer == each.peer and one.plane in down)
        if any(each.t_ns + evidence.rtt_ns < one.t_ns < until_ns for one in late):
            yield f"sent data to host {each.peer} on a plane whose port is down there"
            return


def counted_right(evidence: StepEvidence) -> Complaints:
    """What it counts of its packets is what crossed."""
    for _, fields in evidence.tape.of("stats"):
        counters = fields["counters"]
        sent = len(evidence.tape.data_sent())
        told = counters.get("data_sent") if isinstance(counters, dict) else None
        if told != sent:
            yield f"`stats` says data_sent {told!r}; {sent} data packets left"
