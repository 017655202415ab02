"""BGP between switches: what FRR is told, which routes come of it, the keys of scenarios, and what is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric import readback
from mrc_testbed.testbed.fabric.bgp import config
from mrc_testbed.testbed.fabric.bgp.config import bgpd_text, start_script, zebra_text
from mrc_testbed.testbed.fabric.bgp.learned import learned_routes
from mrc_testbed.testbed.fabric.bgp.systems import autonomous_systems
from mrc_testbed.testbed.fabric.bgp.watch import _count
from mrc_testbed.testbed.fabric.capabilities import FRR, HASH_SEED, KERNEL_DELAY, MULTIPATH, PORT_PROGRAM, Capability
from mrc_testbed.testbed.fabric.commands import node_lines, port_address_lines, port_lines
from mrc_testbed.testbed.runner.options import fabric_options
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.model.bgp import bfd_share, least_interval_ns
from mrc_testbed.testbed.switching.expected import Expected
from mrc_testbed.testbed.switching.options import BgpOptions, FabricOptions
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.routes import NextHop, Routing
from tests.unit.scenario.test_mistakes import mistakes
from tests.unit.scenario.test_transport import text

PLAN = build_plan(clos2_shape(1, 2, 2, 2, 25_000_000, 0), Routing.BGP)
WITH_BFD = FabricOptions("dummy", "none", "port program", bgp=BgpOptions(1, 3, 300, 3, "racks"))
USUAL = BgpOptions()
T0_TEXT = """\
hostname p0-t0-1
ipv6 prefix-list ANNOUNCED permit fd00:1:0:1::/64 ge 128
route-map ANNOUNCED permit 10
 match ipv6 address prefix-list ANNOUNCED
router bgp 4200000002
 bgp router-id 10.0.0.2
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 bgp bestpath as-path multipath-relax
 timers bgp 3 9
 neighbor fd00:2::3f5 remote-as 4200000000
 neighbor fd00:2::3f5 description p0-t1-0
 neighbor fd00:2::3f5 advertisement-interval 0
 neighbor fd00:2::3f5 timers connect 1
 neighbor fd00:2::3f7 remote-as 4200000000
 neighbor fd00:2::3f7 description p0-t1-1
 neighbor fd00:2::3f7 advertisement-interval 0
 neighbor fd00:2::3f7 timers connect 1
 address-family ipv6 unicast
  maximum-paths 64
  redistribute kernel route-map ANNOUNCED
  neighbor fd00:2::3f5 activate
  neighbor fd00:2::3f7 activate
 exit-address-family
"""


def test_a_t0_tells_its_t1s_of_its_hosts() -> None:
    assert bgpd_text(PLAN, PLAN.switch_by_name["p0-t0-1"], BgpOptions()) == T0_TEXT


def test_a_t1_has_a_session_with_each_t0_and_nothing_of_its_own() -> None:
    text = bgpd_text(PLAN, PLAN.switch_by_name["p0-t1-0"], WITH_BFD.bgp)
    assert "neighbor fd00:2::3f0 remote-as 4200000001" in text
    assert "neighbor fd00:2::3f4 remote-as 4200000002" in text
    assert " timers bgp 1 3\n" in text
    assert " neighbor fd00:2::3f0 bfd 3 300 300\n" in text
    assert "redistribute" not in text
    assert "ANNOUNCED" not in text


def test_racks_are_announced_by_the_route_of_the_group() -> None:
    assert "permit fd00:1::/64\n" in bgpd_text(PLAN, PLAN.switch_by_name["p0-t0-0"], WITH_BFD.bgp)


def test_next_hops_are_no_objects_of_the_kernel() -> None:
    assert "no zebra nexthop kernel enable" in zebra_text(PLAN.switches[0]).splitlines()


def test_zebra_replaces_routes_in_one_step() -> None:
    """Else a packet that comes between the old route and the new one is lost, in a switch that no fault touches."""
    (line,) = (line for line in start_script(PLAN, PLAN.switches[0], WITH_BFD).splitlines() if "/zebra -P" in line)
    assert " --v6-rr-semantics " in line


def test_the_daemons_start_in_order_and_bash_can_read_how() -> None:
    script = start_script(PLAN, PLAN.switches[0], WITH_BFD)
    assert script.index("/zebra -P") < script.index("until [ -S") < script.index("/bfdd -P") < script.index("/bgpd -P")
    assert "bfdd" not in start_script(PLAN, PLAN.switches[0], FabricOptions("dummy", "none"))
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


@pytest.mark.parametrize("there", [True, False])
def test_no_folder_of_the_machine_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """One that it lacks is made after a mount over its parent."""
    for name in ("RUN_FOLDER", "SCRATCH_FOLDER"):
        folder = tmp_path / name / "frr"
        monkeypatch.setattr(config, name, str(folder))
        (folder if there else folder.parent).mkdir(parents=True)
    say = "".join(f'{word}() {{ echo {word} "${{@: -1}}"; }}\n' for word in ("mount", "mkdir", "umount", "chown"))
    script = say + "\n".join(config._folders())
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True).stdout
    expected = [
        step
        for folder in (tmp_path / "RUN_FOLDER" / "frr", tmp_path / "SCRATCH_FOLDER" / "frr")
        for step in (
            *(() if there else (f"mount {folder.parent}", f"mkdir {folder}")),
            *(f"{word} {folder}" for word in ("umount", "mount", "chown")),
        )
    ]
    assert done.splitlines() == expected


def test_every_t0_is_an_autonomous_system_and_the_t1s_of_a_plane_are_one() -> None:
    plan = build_plan(clos2_shape(3, 4, 2, 1, 25_000_000, 0), Routing.BGP)
    numbers = autonomous_systems(plan, BgpOptions())
    assert len(set(numbers.values())) == 3 * (4 + 1)
    assert numbers["p1-t1-0"] == numbers["p1-t1-1"] != numbers["p2-t1-0"]


def test_each_t1_may_be_an_autonomous_system_too() -> None:
    plan = build_plan(clos2_shape(3, 256, 2, 1, 25_000_000, 0), Routing.BGP)
    numbers = set(autonomous_systems(plan, BgpOptions(t1_as="each")).values())
    assert len(numbers) == len(plan.switches)
    assert max(numbers) <= 4_294_967_294  # RFC 6996


def test_switches_have_addresses_on_the_links_between_them() -> None:
    lines = list(node_lines(PLAN, "p0-t0-0", WITH_BFD))
    assert list(port_address_lines(PLAN, "p0-t0-0"))[:2] == [
        "addr replace fe80::3f0/64 dev up0 nodad",
        "addr replace fd00:2::3f0/127 dev up0 nodad",
    ]
    assert "neigh replace fd00:2::3f1 lladdr 02:00:00:00:03:f1 nud permanent dev up0" in lines
    assert "route add blackhole fd00:1::/64 dev lo" in lines
    assert not [line for line in lines if "nexthop" in line]
    assert "addr replace fd00:2::3f0/127 dev up0 nodad" in port_lines(PLAN, "p0-t0-0", [near("p0-t0-0:p0-t1-0")], [])


def near(link: str) -> Interface:
    return PLAN.link_by_name[link].near


def hops(node: str, *lost: str, plan: Plan = PLAN, bgp: BgpOptions = USUAL) -> dict[str, tuple[NextHop, ...]]:
    return {route.prefix: route.hops for route in learned_routes(plan, node, bgp, lost)}


def test_a_t0_learns_each_remote_host_over_every_t1() -> None:
    both = (NextHop("fe80::3f1", "up0"), NextHop("fe80::3f3", "up1"))
    assert hops("p0-t0-0") == {"fd00:1:0:1::1/128": both, "fd00:1:0:1::2/128": both}
    assert hops("p0-t1-1")["fd00:1:0:1::1/128"] == (NextHop("fe80::3f6", "down1"),)
    assert not hops("h0")
    assert [route.prefix for route in learned_routes(PLAN, "p0-t0-0", WITH_BFD.bgp)] == ["fd00:1:0:1::/64"]


def test_a_lost_link_takes_the_ways_over_it_at_both_ends() -> None:
    left = (NextHop("fe80::3f1", "up0"),)
    for lost in ("p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1"):
        assert set(hops("p0-t0-0", lost).values()) == {left}
    assert not hops("p0-t0-0", "p0-t0-0:p0-t1-0", "p0-t0-1:p0-t1-1")
    assert list(hops("p0-t0-0", "h2:p0-t0-1")) == ["fd00:1:0:1::2/128"]


def answers(held: dict[str, object]) -> object:
    def query(command: list[str], pids: dict[str, int], _stdin: object = None) -> dict[str, str]:
        assert command[-2:] == ["proto", "bgp"]
        return {node: json.dumps(held[node]) for node in pids}

    return query


def as_kernel(node: str) -> list[dict[str, object]]:
    return [
        {
            "dst": prefix.removesuffix("/128"),
            "nexthops": [{"gateway": hop.gateway, "dev": hop.device, "weight": 1} for hop in found],
        }
        for prefix, found in hops(node).items()
    ]


def test_a_route_that_bgp_lacks_is_drift_only_once_it_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, held = Expected(PLAN, FabricOptions("dummy", "none")), as_kernel("p0-t0-0")
    monkeypatch.setattr(readback, "query", answers({"p0-t0-0": held}))

    def drifts(settled: bool) -> list[tuple[str, str]]:
        return readback._learned_drifts(expected, {"p0-t0-0": 1}, settled)

    assert not drifts(True)
    assert _count(json.dumps(held)) == 4
    held.pop()
    assert "lacks route of BGP via fd00:1:0:1::2/128 up0 fe80::3f1" in drifts(True)[0][1]
    assert not drifts(False)
    held.append({"dst": "fd00:1::9", "gateway": "fe80::3f1", "dev": "up0"})
    assert "unplanned route of BGP" in drifts(False)[0][1]


@given(st.integers(1, 3), st.integers(2, 4), st.integers(1, 4))
def test_the_least_interval_is_one_that_the_machine_carries(planes: int, groups: int, t1: int) -> None:
    shape = clos2_shape(planes, groups, t1, 1, 25_000_000, 0)
    least = least_interval_ns(shape)
    assert bfd_share(shape, least) <= 0.4
    assert least == 50_000_000 or bfd_share(shape, least - 10_000_000) > 0.4


def test_quickstart_written_without_folding_may_have_100_ms_and_no_less() -> None:
    assert least_interval_ns(clos2_shape(4, 2, 4, 4, 12_500_000, 0)) == 90_000_000


OVER_BGP = "transport: tcp\nrouting: bgp\n"


@pytest.mark.parametrize(
    ("keys", "place", "keyword"),
    [
        ("bgp: {bfd: on}", "4:12: bgp.bfd", "`off` or a mapping"),
        ("bgp: {bfd: {interval: 10ms}}", "4:23: bgp.bfd.interval", "50ms to 1min"),
        ("bgp: {bfd: {multiplier: 1}}", "4:25: bgp.bfd.multiplier", "at least 2"),
        ("bgp: {hold: {keepalive: 3s, hold: 8s}}", "4:35: bgp.hold.hold", "three times"),
        ("bgp: {hold: {keepalive: 1s, hold: 2s}}", "4:35: bgp.hold.hold", "3s to 65535s"),
        ("bgp: {hold: {hold: 4500ms}}", "4:20: bgp.hold.hold", "whole seconds"),
        ("bgp: {routes: all}", "4:15: bgp.routes", "racks"),
        ("fabric: {switch: plain}", "fabric.switch", "ecmp-static"),
    ],
)
def test_a_wrong_key_of_bgp_has_its_place_and_says_what_to_write(keys: str, place: str, keyword: str) -> None:
    source = text(OVER_BGP + keys) if "fabric" not in keys else text(OVER_BGP.strip(), ", switch: plain")
    assert [line for line in mistakes(source) if place in line and keyword in line]


def test_bfd_faster_than_the_machine_carries_is_refused() -> None:
    fast = OVER_BGP + "bgp: {bfd: {interval: 50ms}}"
    assert load_scenario_text(text(fast)).bgp.bfd is not None
    refused = mistakes(text(fast, ", layout: as-written"))
    assert [line for line in refused if "24 links would take 53% of a core" in line and "at least 70ms" in line]


@pytest.mark.parametrize(("transport", "instead"), [("roce", "ecmp-static"), ("mrc", "srv6")])
def test_virtual_time_has_no_bgp(transport: str, instead: str) -> None:
    virtual = mistakes(text(f"transport: {transport}\nrouting: bgp\nworld: virtual"))
    assert len(virtual) == 1
    assert "real daemons in real seconds" in virtual[0]
    assert f"`routing: {instead}`" in virtual[0]


def over_bgp(more: str = "") -> Scenario:
    return load_scenario_text(text(OVER_BGP + more))


PRESENT = [
    Capability(name, True, False, "", "") for name in ("dummy device", PORT_PROGRAM, KERNEL_DELAY, MULTIPATH, HASH_SEED)
]


def test_what_a_scenario_says_of_bgp_reaches_the_fabric() -> None:
    found = [*PRESENT, Capability(FRR, True, False, "", "")]
    assert fabric_options(over_bgp("seed: 3"), found).bgp == BgpOptions()
    more = "bgp: {hold: {keepalive: 1s, hold: 3s}, bfd: {interval: 100ms}, routes: racks}"
    assert fabric_options(over_bgp(more), found).bgp == BgpOptions(1, 3, 100, 3, "racks")


def test_without_frr_bgp_is_refused_with_the_fix() -> None:
    found = [*PRESENT, Capability(FRR, False, False, "no bgp", "apt-get install frr", "there is no bgpd")]
    with pytest.raises(MissingCapability, match=r"^routing: bgp needs FRR .* there is no bgpd\. Fix: apt-get install"):
        fabric_options(over_bgp("seed: 3"), found)


def test_what_the_tests_install_is_in_the_list_of_optional_packages() -> None:
    root = Path(__file__).resolve().parents[3]
    assert "frr" in (root / "apt-packages-optional.txt").read_text(encoding="utf-8").split()
    assert "apt_install frr" in (root / "tools/setup-tests").read_text(encoding="utf-8")
