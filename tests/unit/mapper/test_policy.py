"""What the mapper may deny: which accusations count, which paths that takes, and that hosts keep one."""

from __future__ import annotations

from itertools import permutations

import pytest

from mrc_testbed.testbed.mapper.evidence import Witness
from mrc_testbed.testbed.mapper.mapper import MapAction, MapChange
from mrc_testbed.testbed.mapper.policy import DenyPolicy, MapPolicy
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import Plan, build_plan

NIC, FAR = "h0:p1-t0-0", "p1-t0-0:p1-t1-1"


def plan_of(planes: int = 2) -> Plan:
    return build_plan(clos2_shape(planes=planes, t0_groups=2, t1=2, hosts_per_t0=2, port_rate_bps=10**7, rtt_ns=10**7))


def policy_of(plan: Plan, policy: DenyPolicy = DenyPolicy.ALL, above: float = 0.01) -> MapPolicy:
    return MapPolicy(plan, permutations(plan.host_by_name, 2), policy, above)


def accused(name: str, loss: float = 0.05, alike: tuple[str, ...] = ()) -> MapChange:
    return MapChange(10, MapAction.ACCUSE, name, None, loss, 20.0, 1, 9, alike, 1.0, (Witness.ENDPOINTS,), ("h0",))


@pytest.mark.parametrize(
    ("policy", "name", "loss", "wanted"),
    [
        (DenyPolicy.NOTHING, NIC, 0.5, False),
        (DenyPolicy.LOSSY_NIC_LINKS, NIC, 0.05, True),
        (DenyPolicy.LOSSY_NIC_LINKS, NIC, 0.01, False),
        (DenyPolicy.LOSSY_NIC_LINKS, NIC, 0.899, True),
        (DenyPolicy.LOSSY_NIC_LINKS, NIC, 0.9, False),
        (DenyPolicy.LOSSY_NIC_LINKS, NIC, 1.0, False),
        (DenyPolicy.LOSSY_NIC_LINKS, FAR, 0.05, False),
        (DenyPolicy.NIC_LINKS, NIC, 1.0, True),
        (DenyPolicy.NIC_LINKS, FAR, 1.0, False),
        (DenyPolicy.ALL, FAR, 1.0, True),
        (DenyPolicy.ALL, "p1-t1-1", 0.02, True),
        (DenyPolicy.ALL, "p1-t1-1", 0.005, False),
    ],
)
def test_which_accusations_count(policy: DenyPolicy, name: str, loss: float, wanted: bool) -> None:
    assert policy_of(plan_of(), policy).wants(accused(name, loss)) is wanted


def test_what_cannot_be_told_from_a_nic_link_counts_as_one() -> None:
    assert policy_of(plan_of(), DenyPolicy.LOSSY_NIC_LINKS).wants(accused("p1-t0-0", alike=(NIC,)))


def test_a_nic_link_is_its_plane_on_its_host_and_towards_it_on_others() -> None:
    policy = policy_of(plan_of())
    rows = policy.rows(policy.paths(accused(NIC)))
    assert rows["h0"] == [{"plane": 1}]
    assert {host: rows[host] for host in ("h1", "h2", "h3")} == {
        host: [{"plane": 1, "peer": "h0"}] for host in ("h1", "h2", "h3")
    }


def test_a_link_between_switches_is_the_paths_over_it() -> None:
    policy = policy_of(plan_of())
    rows = policy.rows(policy.paths(accused(FAR)))
    assert rows["h0"] == [{"plane": 1, "uplink": 1, "peer": peer} for peer in ("h2", "h3")]
    assert {row["peer"] for row in rows["h2"]} == {"h0", "h1"}


def test_of_what_is_alike_only_what_crosses_all_of_it_is_denied() -> None:
    policy = policy_of(plan_of())
    paths = policy.paths(accused(NIC, alike=("h2:p1-t0-1",)))
    assert {(sender, receiver) for sender, receiver, _ in paths} == {("h0", "h2"), ("h2", "h0")}
    assert {path.plane for _, _, path in paths} == {1}


def test_nobody_loses_the_last_path() -> None:
    policy = policy_of(plan_of())
    first = policy.paths(accused(NIC))
    assert policy.left_without(first, []) == ""
    policy.denied[NIC] = first
    other = policy.paths(accused("h0:p0-t0-0"))
    assert policy.left_without(other, []) == "h0 no path to h1"


def test_a_path_over_something_dead_is_none() -> None:
    policy = policy_of(plan_of())
    paths = policy.paths(accused(NIC))
    assert policy.left_without(paths, [accused("p0-t0-0", loss=0.5)]) == ""
    assert policy.left_without(paths, [accused("p0-t0-0", loss=1.0)]) == "h0 no path to h1"
    assert policy.left_without(paths, [accused("p0-t0-1", loss=1.0)]) == "h0 no path to h2"


def test_a_host_with_all_its_ports_is_kept() -> None:
    policy = policy_of(plan_of())
    assert policy.left_without(policy.paths(accused("h0")), []) == "h0 no path to h1"
