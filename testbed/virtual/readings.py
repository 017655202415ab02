"""What is read of virtual ports: interface counters, pauses, and what a uSID has taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mrc_testbed.testbed.switching.port_counts import CLASSES, DROPPED, VERDICTS, SidCounts
from mrc_testbed.testbed.virtual.lossless import LosslessPort
from mrc_testbed.testbed.virtual.port import Port
from mrc_testbed.testbed.virtual.port_row import BYTES_AT
from mrc_testbed.topos import usid
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.tables import sid_of

_NO_SIDS = SidCounts(0, 0)
_ETHERNET_BYTES = 14
"""Of a frame, before what a uSID counts."""


def pause_counts(port: Port) -> dict[str, int]:
    """How often and how long a port was paused, and the most that waited of what came in by it."""
    if not isinstance(port, LosslessPort):
        return {}
    return {"pauses": port.pauses, "paused_ns": port.paused_ns(), "most_held_bytes": port.most_held_bytes}


def by_sid(port: Port) -> SidCounts:
    """What came in at a port for a uSID of its node."""
    into = port.into.row()
    lost = sum(into[DROPPED : CLASSES * VERDICTS : VERDICTS])
    lost_bytes = sum(into[BYTES_AT + DROPPED :: VERDICTS])
    packets = sum(into[:BYTES_AT]) - lost - port.strange
    taken = sum(into[BYTES_AT:]) - lost_bytes - port.strange_bytes
    return SidCounts(packets, taken - packets * _ETHERNET_BYTES)


def sid_counts(
    plan: Plan,
    ports: Mapping[Interface, Port],
    planes: Mapping[Interface, int],
    before: Mapping[Interface, SidCounts],
) -> dict[str, dict[str, SidCounts]]:
    """By node what each of its uSIDs has taken, without what its ports had taken `before`."""
    found: dict[str, dict[str, SidCounts]] = {node: {} for node in plan.node_names}
    for own, port in ports.items():
        sid = usid.locator(sid_of(plan, own.node, planes[own]))
        so_far, new, old = found[own.node].get(sid, _NO_SIDS), by_sid(port), before.get(own, _NO_SIDS)
        packets, taken = so_far.packets + new.packets - old.packets, so_far.bytes + new.bytes - old.bytes
        found[own.node][sid] = SidCounts(packets, taken)
    return found


def seen(row: Sequence[int]) -> tuple[int, int, int]:
    """Bytes, packets and drops of an interface, of what came over its link."""
    return sum(row[BYTES_AT:]), sum(row[:BYTES_AT]), 0
