"""Which way the switches will hash each QP to, asked of the fabric before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.switching.ecmp import PlainFlow
from mrc_testbed.testbed.switching.interface import FabricLike
from mrc_testbed.testbed.workloads.job import JobPlan

QpFlows = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
"""By host and QP: plane, protocol and ports of the packets that this end sends, as the daemons say."""


def uplinks_of(fabric: FabricLike, job: JobPlan, flows: QpFlows, intact: bool) -> dict[str, Any]:
    """What environment.json has of it: `uplinks`, a row a QP or subflow in the direction of its data with the number of
    its way, or `uplinks_unknown`, why.

    QPs that broken paths keep from connecting have no row. Raises FabricError if a flow has no way through an `intact`
    fabric.
    """
    hosts = fabric.plan.hosts
    known = [(qp, flow) for qp in job.qps for flow in flows[hosts[qp.src].name].get(qp.id, ())]
    try:
        uplinks = fabric.predicted_uplinks([PlainFlow(hosts[qp.src], hosts[qp.dst], **flow) for qp, flow in known])
    except MissingCapability as lacking:
        return {"uplinks_unknown": lacking.what}
    except FabricError as error:
        if intact:
            raise
        return {"uplinks_unknown": str(error)}
    rows = []
    for (qp, flow), uplink in zip(known, uplinks, strict=True):
        ends = {"qp": qp.id, "from": hosts[qp.src].name, "to": hosts[qp.dst].name}
        crossed = uplink if hosts[qp.src].group != hosts[qp.dst].group else None
        rows.append({**ends, **flow, "uplink": crossed})
    return {"uplinks": rows}
