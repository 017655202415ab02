"""Which uplink a flow will take, asked of the kernel without a packet. For fabrics whose switches choose the path."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.fabric import port_object
from mrc_testbed.testbed.switching.ecmp import PlainFlow, unpredictable
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos import names
from mrc_testbed.topos.plan import Plan

_ASK = ["ip", "-6", "-j", "-batch", "-"]


def predicted_uplinks(
    plan: Plan, options: FabricOptions, pids: Mapping[str, int], flows: Sequence[PlainFlow]
) -> list[int]:
    """The uplink (T1) of each flow, as long as the ports of its T0 stay as they are; 0 within a T0 group, as in
    `Plan.paths`. One process a T0.

    Raises MissingCapability where packets are not hashed by these fields alone, FabricError if a T0 has no way.
    """
    if why := unpredictable(options):
        raise MissingCapability(f"the path of a flow cannot be predicted: {why}", port_object.FIX)
    from mrc_testbed.testbed.fabric.batch import query  # here, because any world may ask for the way of a PlainFlow

    lines: dict[str, list[str]] = {}
    for flow in _crossing(flows):
        lines.setdefault(_t0(flow), []).append(_question(plan, flow))
    asked = {switch: pids[switch] for switch in lines}
    answers = query(_ASK, asked, {switch: "\n".join(text) for switch, text in lines.items()})
    uplinks = {switch: iter(_uplinks(plan, switch, text)) for switch, text in answers.items()}
    return [next(uplinks[_t0(flow)]) if _crosses(flow) else 0 for flow in flows]


def _crosses(flow: PlainFlow) -> bool:
    return flow.source.group != flow.destination.group


def _crossing(flows: Iterable[PlainFlow]) -> Iterable[PlainFlow]:
    return (flow for flow in flows if _crosses(flow))


def _t0(flow: PlainFlow) -> str:
    return names.switch_name(flow.plane, 0, flow.source.group)


def _question(plan: Plan, flow: PlainFlow) -> str:
    source, destination = (dict(plan.host_ports(host))[flow.plane] for host in (flow.source, flow.destination))
    came_in = names.downlink_port(flow.source.downlink)
    ports = f"sport {flow.source_port} dport {flow.destination_port}"
    return f"route get {destination} from {source} iif {came_in} ipproto {flow.protocol} {ports}"


def _uplinks(plan: Plan, switch: str, text: str) -> Iterable[int]:
    """`ip -batch` prints one list an answer."""
    by_port = {own.name: names.parse_switch(peer.node) for own, peer in plan.ports[switch]}
    decoder, at, text = json.JSONDecoder(), 0, text.strip()
    while at < len(text):
        (route,), end = decoder.raw_decode(text, at)
        t1 = by_port.get(route.get("dev", ""))
        if t1 is None:
            raise FabricError(switch, f"find the way to {route.get('dst')}", f"it is {route.get('dev', 'none')}")
        yield t1[2]
        at = end + len(text[end:]) - len(text[end:].lstrip())
