"""The parts of a fabric that the plan leaves open and the machine decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mrc_testbed.testbed.switching.classes import (
    MRC_DATA,
    USUAL_MARKS,
    USUAL_TRIMMING,
    DataPackets,
    DscpMarks,
    TrimRules,
)
from mrc_testbed.testbed.switching.thresholds import DEFAULT_THRESHOLDS, PauseThresholds, PortThresholds
from mrc_testbed.topos.shape import LEAST_PLANE_PACKETS, WIRE_BYTES, Shape

QUEUE_BDP = 3
"""Tail drop of a plain shaper's data queue, in plane-BDP (ours, within UEC's 2 to 5)."""
PROGRAM_SLACK_BDP = 1
"""How much deeper than its drop level the queue behind a port program is: the program decides."""
CONTROL_QUEUE_BDP = 1
"""Tail drop of the high class (ours)."""
MIN_QUEUE_PACKETS = 32
"""A short T must not make the queue shorter than a burst of one host over all its ports."""
NIC_QUEUE_PACKETS = 4096
"""A host's own port does not drop: the endpoint paces, and a NIC would block rather than lose."""


@dataclass(frozen=True, slots=True)
class BgpOptions:
    """BGP between switches. `routes`: what a T0 announces, each of its hosts or their whole group.

    `t1_as`: the T1s of a plane, or of a pod where T2s join pods, are one autonomous system, and so are all T2s, so that
    no route leads through two of them; or each switch is its own (`mrc_testbed.testbed.fabric.bgp.systems`).

    `hold_s`: silence after which a neighbour is taken for dead; it is told that this one lives every `keepalive_s`.
    With BFD it is `bfd_multiplier` intervals instead. Interval 0: without BFD.
    """

    keepalive_s: int = 3
    hold_s: int = 9
    bfd_interval_ms: int = 0
    bfd_multiplier: int = 3
    routes: Literal["hosts", "racks"] = "hosts"
    t1_as: Literal["one", "each"] = "one"


@dataclass(frozen=True, slots=True)
class FabricOptions:
    """`sid_device`: kind of device for uSID routes. `delay`: what delays packets by T. `switch_ports`: what queues
    there.

    "endpoint": each daemon delays what it receives. "nfqueue": the kernel does at the ports of hosts
    (testbed/fabric/delay.py), for protocols that it speaks itself.

    A plain shaper has two classes and tail drop; it neither marks nor trims nor loses by rule. `thresholds` apply to
    the port program only, and so does `trimming`. `marks`: by which DSCPs ports tell packets apart; `data`: how
    they know the transport's data among them; `trims`: whether they may cut off its payload.

    `pause`: ports pause each other and drop nothing (PFC), as virtual ones alone can; `thresholds` do not count then.

    Where switches choose the path: `ecmp_hash` says whether all have one hash seed or each its own, `hash_seed` is the
    (first) one; None leaves the kernel's, which it draws when the machine boots. `repath`: the flow label counts too.
    `hash_ports`: of a packet protocol and port numbers count, and its addresses do not. `adaptive`: data go where least
    waits (testbed/switching/adaptive.py). `far_links`: and not to a T1 that has lost its link to their group, which
    virtual switches alone can know.

    `sid_device`: has the uSID routes, because on `lo` the kernel makes reject routes of them.

    `path_order`: each switch takes in packets on one CPU, so that none overtakes another on its path.

    `subflows`: hosts tell their MPTCP peers of their addresses in all planes, and take up subflows to theirs.

    `tunnel_source`: hosts are told the outer source address of what they encapsulate. Else the kernel looks for one
    packet by packet, and finds the same where a host has no other.
    """

    sid_device: Literal["dummy", "ifb"]
    delay: Literal["netem", "endpoint", "nfqueue", "none"]
    switch_ports: Literal["port program", "plain shaper"] = "plain shaper"
    thresholds: PortThresholds = DEFAULT_THRESHOLDS
    marks: DscpMarks = USUAL_MARKS
    trimming: TrimRules = USUAL_TRIMMING
    data: DataPackets = MRC_DATA
    trims: bool = True
    pause: PauseThresholds | None = None
    ecmp_hash: Literal["polarised", "independent"] = "polarised"
    hash_seed: int | None = None
    repath: bool = False
    hash_ports: bool = False
    adaptive: bool = False
    far_links: bool = False
    path_order: bool = False
    subflows: bool = False
    tunnel_source: bool = True
    bgp: BgpOptions = BgpOptions()

    @property
    def port_program(self) -> bool:
        """True where ports run the port program."""
        return self.switch_ports == "port program"

    def one_way_delay_ns(self, shape: Shape) -> int:
        """One-way delay of a packet, by the endpoint or by the kernel."""
        return 0 if self.delay == "none" else shape.rtt_ns // 2


def bdp_bytes(shape: Shape, rate_bps: int) -> int:
    """One BDP of a port in bytes on the wire: T times its rate, which is that of its link."""
    return int(rate_bps * shape.rtt_ns / 8e9)


def queue_bytes(shape: Shape, rate_bps: int, bdps: int) -> int:
    """Limit of a queue that holds `bdps` BDP of its port."""
    return max(bdps * bdp_bytes(shape, rate_bps), MIN_QUEUE_PACKETS * WIRE_BYTES)


def level_bdp_bytes(shape: Shape, rate_bps: int) -> int:
    """The BDP of a port for thresholds, with a minimum: a short T must not put the whole ramp between two packets."""
    return max(bdp_bytes(shape, rate_bps), LEAST_PLANE_PACKETS * shape.wire_bytes)


def control_queue_bytes(shape: Shape, rate_bps: int) -> int:
    """Limit of a switch port's queue of control packets and trimmed headers."""
    return queue_bytes(shape, rate_bps, CONTROL_QUEUE_BDP)


def program_queue_bytes(shape: Shape, rate_bps: int, thresholds: PortThresholds) -> int:
    """Limit of the data queue behind a port program."""
    slack = max(PROGRAM_SLACK_BDP * bdp_bytes(shape, rate_bps), MIN_QUEUE_PACKETS * WIRE_BYTES)
    return int(thresholds.drop * level_bdp_bytes(shape, rate_bps)) + slack
