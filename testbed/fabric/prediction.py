"""Which way a flow will take, asked of the kernel without a packet. For fabrics whose switches choose the path.

Every switch with a choice is asked, in the order in which packets come to it: the T0s first, then those above them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.fabric import port_object
from mrc_testbed.testbed.switching.ecmp import PlainFlow, number_of_way, unpredictable
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos import names
from mrc_testbed.topos.plan import Plan

_ASK = ["ip", "-6", "-j", "-batch", "-"]


def predicted_uplinks(
    plan: Plan, options: FabricOptions, pids: Mapping[str, int], flows: Sequence[PlainFlow]
) -> list[int]:
    """The number of each flow's way among those of its pair, as long as the ports of switches stay as they are; 0
    within a T0 group, as in `Plan.paths`. One process a switch with a choice.

    Raises MissingCapability where packets are not hashed by these fields alone, FabricError if a switch has no way.
    """
    if why := unpredictable(options):
        raise MissingCapability(f"the path of a flow cannot be predicted: {why}", port_object.FIX)
    crossed = [[_t0(flow, flow.source.group)] for flow in flows]
    waiting = list(zip(flows, crossed, strict=True))
    while waiting := [(flow, switches) for flow, switches in waiting if switches[-1] != _end(flow)]:
        chosen = _answers(plan, pids, [one for one in waiting if _chooses(plan, *one)])
        for flow, switches in waiting:
            switches.append(next(chosen) if _chooses(plan, flow, switches) else _next_names(plan, flow, switches)[0])
    return [number_of_way(plan, flow, switches) for flow, switches in zip(flows, crossed, strict=True)]


def _t0(flow: PlainFlow, group: int) -> str:
    return names.switch_name(flow.plane, 0, group)


def _end(flow: PlainFlow) -> str:
    return _t0(flow, flow.destination.group)


def _next_names(plan: Plan, flow: PlainFlow, switches: Sequence[str]) -> list[str]:
    """The switches that may come next."""
    places = plan.next_places(plan.switch_by_name[switches[-1]].place)[flow.destination.group]
    return [names.switch_name(flow.plane, *place) for place in places]


def _chooses(plan: Plan, flow: PlainFlow, switches: Sequence[str]) -> bool:
    """The first T0 is asked in any case: it may have lost its only uplink."""
    return len(switches) == 1 or len(_next_names(plan, flow, switches)) > 1


def _answers(plan: Plan, pids: Mapping[str, int], asked: Sequence[tuple[PlainFlow, Sequence[str]]]) -> Iterator[str]:
    """What each of these flows' last switch would send it to."""
    from mrc_testbed.testbed.fabric.batch import query  # here, because any world may ask for the way of a PlainFlow

    lines: dict[str, list[str]] = {}
    for flow, switches in asked:
        lines.setdefault(switches[-1], []).append(_question(plan, flow, switches))
    texts = query(_ASK, {switch: pids[switch] for switch in lines}, {at: "\n".join(text) for at, text in lines.items()})
    answers = {switch: _next_switches(plan, switch, text) for switch, text in texts.items()}
    return (next(answers[switches[-1]]) for _, switches in asked)


def _question(plan: Plan, flow: PlainFlow, switches: Sequence[str]) -> str:
    source, destination = (dict(plan.host_ports(host))[flow.plane] for host in (flow.source, flow.destination))
    came_in = plan.port_toward(switches[-1], (flow.source.name, *switches)[-2]).name
    ports = f"sport {flow.source_port} dport {flow.destination_port}"
    return f"route get {destination} from {source} iif {came_in} ipproto {flow.protocol} {ports}"


def _next_switches(plan: Plan, switch: str, text: str) -> Iterator[str]:
    """`ip -batch` prints one list an answer."""
    by_port = {own.name: peer.node for own, peer in plan.ports[switch] if peer.node in plan.switch_by_name}
    decoder, at, text = json.JSONDecoder(), 0, text.strip()
    while at < len(text):
        (route,), end = decoder.raw_decode(text, at)
        following = by_port.get(route.get("dev", ""))
        if following is None:
            raise FabricError(switch, f"find the way to {route.get('dst')}", f"it is {route.get('dev', 'none')}")
        yield following
        at = end + len(text[end:]) - len(text[end:].lstrip())
