"""Flows between pairs of hosts, all at once: streams of messages over their own QPs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

from mrc_testbed.hosts.blocks import PERIOD
from mrc_testbed.testbed.workloads.arrivals import Arrival, PairArrivals, drained_ns
from mrc_testbed.testbed.workloads.estimate import answer_ns, transfer_ns, wire_ns
from mrc_testbed.testbed.workloads.fairness import Demand, line_rate, max_min_shares
from mrc_testbed.testbed.workloads.job import JobPlan, JsonOperation, QpSpec
from mrc_testbed.topos.names import host_name
from mrc_testbed.topos.shape import LEAST_PLANE_PACKETS, Shape

MIN_DEPTH = 2
MAX_DEPTH = 64
"""Queued messages: twice as many WRITEs with immediate as may be in flight (`max_wimm`)."""
WINDOWS_QUEUED = 2
"""Windows of data (line rate x T) that are always queued, so that a QP never waits for its program."""
DRAIN_RTTS = 4
"""Queued data are still sent after a flow stops."""


def window_bytes(shape: Shape) -> float:
    """What a host can send in T with all its ports; at least what windows are made for."""
    in_t = shape.planes * shape.port_rate_bps * shape.rtt_ns / 8e9
    return max(in_t, shape.planes * LEAST_PLANE_PACKETS * shape.wire_bytes)


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction between two hosts.

    It ends after `for_ns` or `total_bytes`, whichever is given. `queue` is the number of queued messages per QP, None
    for enough to fill the line. `groups` are names of several flows for expectations. The first `warm_up_ns` and the
    first `warm_up_messages` do not count. A flow that is not `greedy` has no meaningful rate: it measures latency, or
    with `arrivals` it is all flows from one host to the other, which begin over time.
    """

    src: int
    dst: int
    message_bytes: int
    qps: int
    start_ns: int
    for_ns: int | None
    total_bytes: int | None
    queue: int | None
    groups: tuple[str, ...]
    warm_up_ns: int = 0
    warm_up_messages: int = 0
    greedy: bool = True
    arrivals: tuple[Arrival, ...] = ()

    @property
    def measures(self) -> Literal["greedy", "latency", "trace"]:
        """Which figures of flows it has."""
        return "trace" if self.arrivals else "greedy" if self.greedy else "latency"

    @property
    def count(self) -> int:
        """How many flows a person would count."""
        return len(self.arrivals) or 1

    @property
    def name(self) -> str:
        """`h0->h4`."""
        return f"{host_name(self.src)}->{host_name(self.dst)}"

    @property
    def stop_ns(self) -> int | None:
        """When it stops sending, from the start of the workload; None if its bytes decide."""
        return None if self.for_ns is None else self.start_ns + self.for_ns

    @property
    def demand(self) -> Demand:
        """What the flow asks of the fabric, for the calculation of fair shares."""
        return Demand(self.src, self.dst, self.qps)

    def qp_names(self) -> tuple[str, ...]:
        """`h0->h4/0`, ..."""
        return tuple(f"{self.name}/{number}" for number in range(self.qps))

    def messages_of(self, number: int) -> int:
        """Messages of QP `number`, with its bytes rounded up; 0 if time decides."""
        if self.total_bytes is None:
            return 0
        messages = max(ceil(self.total_bytes / self.message_bytes), self.qps)
        return messages // self.qps + (number < messages % self.qps)

    def depth(self, shape: Shape) -> int:
        """Queued messages of each QP."""
        if self.queue is not None:
            return self.queue
        queued = WINDOWS_QUEUED * window_bytes(shape)
        return min(MAX_DEPTH, max(MIN_DEPTH, ceil(queued / self.message_bytes) + 1))

    def under_way_bytes(self, shape: Shape) -> int:
        """Payload that it can have under way: messages that are queued, and that endpoints let out."""
        messages = min(self.depth(shape), shape.open_messages or MAX_DEPTH)
        return messages * self.message_bytes * self.qps

    def fills(self, shape: Shape) -> bool:
        """It may have a whole window under way, so that it can have its fair share."""
        return self.greedy and self.under_way_bytes(shape) >= window_bytes(shape)

    def pace(self, shape: Shape, share: float) -> float:
        """Payload in bytes per second that it can move where its fair share is `share`: no packet holds data of two
        messages, and what is under way is acknowledged after a round trip."""
        filled = wire_ns(shape, shape.payload_bytes) / shape.payload_bytes
        sparse = wire_ns(shape, self.message_bytes) / self.message_bytes
        round_trip_ns = transfer_ns(shape, self.message_bytes) + answer_ns(shape)
        return min(share * filled / sparse, self.under_way_bytes(shape) * 1e9 / round_trip_ns)

    def slots(self, shape: Shape) -> int:
        """Message slots in the receiver's region: one more than can be in flight, see hosts/stream.py."""
        return self.depth(shape) + 1

    def region_bytes(self, shape: Shape) -> int:
        """Memory that each QP's receiver registers."""
        return self.slots(shape) * self.message_bytes

    def memory_bytes(self, shape: Shape) -> int:
        """Memory of both ends."""
        return self.qps * (self.region_bytes(shape) + self.message_bytes + 3 * PERIOD)

    def drain_ns(self, shape: Shape, pace: float) -> int:
        """Time to drain the queue at `pace` bytes per second. Where its bytes end a flow, the last message is
        acknowledged, and nothing is queued."""
        if self.for_ns is None:
            return transfer_ns(shape, self.message_bytes) + answer_ns(shape)
        queued = self.depth(shape) * self.qps * self.message_bytes
        return max(DRAIN_RTTS * shape.rtt_ns, round(queued * 1e9 / pace))


def flow_of(qp: str) -> str:
    """Finds the flow of a QP by name."""
    return qp.rpartition("/")[0]


def plan_flows(shape: Shape, flows: Sequence[Flow]) -> JobPlan:
    """The job of all flows: a track for each end of each QP."""
    hosts = sorted({host for flow in flows for host in (flow.src, flow.dst)})
    tracks: dict[int, list[list[JsonOperation]]] = {host: [] for host in hosts}
    qps = []
    for flow in flows:
        slots = flow.slots(shape)
        taken = [flow.message_bytes, slots, flow.depth(shape)]
        for number, qp in enumerate(flow.qp_names()):
            qps.append(QpSpec(qp, flow.src, flow.dst, flow.region_bytes(shape)))
            if flow.arrivals:
                tracks[flow.dst].append([["receive_flows", qp, *taken, [one.size for one in flow.arrivals]]])
                continue
            tracks[flow.src].append([["send", qp, *taken, flow.start_ns, flow.for_ns, flow.messages_of(number)]])
            tracks[flow.dst].append([["receive", qp, *taken]])
        if flow.arrivals:
            begins = [[one.start_ns, one.size] for one in flow.arrivals]
            tracks[flow.src].append([["send_flows", list(flow.qp_names()), *taken, begins]])
    return JobPlan(tuple(qps), tracks, tuple(hosts))


def flows_ns(shape: Shape, flows: Sequence[Flow]) -> int:
    """Clean duration: until the last flow has stopped and its queue is delivered.

    Flows limited by bytes are assumed to have the fair share of all flows together, or what their messages under way
    allow; those that arrive over time end when all ports, and the messages of each pair, could have carried them.
    """
    arriving = [PairArrivals(flow.src, flow.dst, flow.arrivals) for flow in flows if flow.arrivals]
    drained = round(drained_ns(shape, arriving)) + DRAIN_RTTS * shape.rtt_ns if arriving else 0
    drained = max([drained, *(round(_acknowledged_ns(shape, flow)) for flow in flows if flow.arrivals)])
    others = [flow for flow in flows if not flow.arrivals]
    shares = max_min_shares(shape, {flow.name: flow.demand for flow in flows if flow.greedy})
    ends = (_end_ns(shape, flow, shares.get(flow.name) or line_rate(shape)) for flow in others)
    return max([drained, *ends])


def _acknowledged_ns(shape: Shape, flow: Flow) -> float:
    """When the last message of flows that arrive over time is acknowledged, if its QPs alone keep them back."""
    round_trip_ns = transfer_ns(shape, flow.message_bytes) + answer_ns(shape)
    each_ns = round_trip_ns * flow.message_bytes * flow.qps / flow.under_way_bytes(shape)
    end_ns = free_ns = 0.0
    for one in flow.arrivals:
        messages = ceil(one.size / flow.message_bytes)
        free_ns = max(free_ns, one.start_ns) + messages * each_ns / flow.qps
        end_ns = max(end_ns, free_ns, one.start_ns + messages * each_ns)
    return end_ns + round_trip_ns


def _end_ns(shape: Shape, flow: Flow, share: float) -> int:
    pace = flow.pace(shape, share)
    lasts_ns = round((flow.total_bytes or 0) * 1e9 / pace) if flow.for_ns is None else flow.for_ns
    return flow.start_ns + lasts_ns + flow.drain_ns(shape, pace)
