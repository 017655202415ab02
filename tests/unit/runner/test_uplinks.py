"""What a run keeps of where its QPs were hashed to, with a fabric that answers from a list."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.runner.uplinks import uplinks_of
from mrc_testbed.testbed.switching.ecmp import PlainFlow
from mrc_testbed.testbed.workloads.job import JobPlan, QpSpec
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing

SHAPE = clos2_shape(planes=2, t0_groups=2, t1=2, hosts_per_t0=2, port_rate_bps=25_000_000, rtt_ns=40_000_000)
PLAN = build_plan(SHAPE, Routing.ECMP_STATIC)
JOB = JobPlan((QpSpec("a", 0, 2, 1), QpSpec("b", 3, 2, 1), QpSpec("c", 1, 3, 1)), {}, (0, 1, 2, 3))


def flow(source_port: int, destination_port: int = 4791) -> dict[str, Any]:
    return {"plane": 1, "protocol": "tcp", "source_port": source_port, "destination_port": destination_port}


FLOWS = {
    "h0": {"a": [flow(50000)]},
    "h1": {},
    "h2": {"a": [flow(4791, 50000)], "b": [flow(4791, 7)]},
    "h3": {"b": [flow(7)]},
}


class FakeFabric:
    plan = PLAN

    def __init__(self, answer: list[int] | Exception) -> None:
        self.answer = answer
        self.asked: list[PlainFlow] = []

    def predicted_uplinks(self, flows: Sequence[PlainFlow]) -> list[int]:
        self.asked = list(flows)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def kept(fabric: FakeFabric, intact: bool = True) -> dict[str, Any]:
    asked: Any = SimpleNamespace(plan=fabric.plan, predicted_uplinks=fabric.predicted_uplinks)
    return uplinks_of(asked, JOB, FLOWS, intact)


def test_a_qp_is_asked_for_in_the_direction_of_its_data_and_one_without_a_connection_is_not() -> None:
    fabric = FakeFabric([1, 0])
    rows = kept(fabric)["uplinks"]
    assert fabric.asked[0] == PlainFlow(PLAN.hosts[0], PLAN.hosts[2], 1, "tcp", 50000, 4791)
    assert rows == [
        {"qp": "a", "from": "h0", "to": "h2", **flow(50000), "uplink": 1},
        {"qp": "b", "from": "h3", "to": "h2", **flow(7), "uplink": None},
    ]


def test_where_nobody_can_foretell_the_reason_is_kept() -> None:
    lacking = MissingCapability("the path of a flow cannot be predicted: ecmp.repath is on", "this and that")
    assert kept(FakeFabric(lacking)) == {"uplinks_unknown": lacking.what}


def test_a_flow_without_a_way_is_an_error_unless_the_fabric_was_broken_before() -> None:
    lost = FabricError("p0-t0-0", "find the way to fd00::1", "it is none")
    assert kept(FakeFabric(lost), intact=False) == {"uplinks_unknown": str(lost)}
    with pytest.raises(FabricError):
        kept(FakeFabric(lost))
