"""The keys `transport`, `routing`, `fabric.layout`, `roce`, `tcp` and `ecmp`: what follows from what, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.scenario import Occurrence, Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.faults import KINDS, Target, read_occurrences
from mrc_testbed.testbed.scenario.faults.classes import CLASSES, FITTING, allowed
from mrc_testbed.testbed.scenario.faults.names import wrong_name
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings
from mrc_testbed.testbed.transports.base import FabricLayout
from mrc_testbed.testbed.transports.registry import TRANSPORTS
from mrc_testbed.testbed.workloads.fairness import line_rate
from mrc_testbed.topos.fold import fold, fold_all
from mrc_testbed.topos.routes import Routing
from tests.examples import examples
from tests.unit.scenario.test_mistakes import mistakes, told

TEXT = """\
name: small
{keys}
fabric: {{planes: {planes}, t0_groups: 2, t1: 3, hosts_per_t0: 2{fabric}}}
workload:
  - train: {{steps: 20, compute: 500ms, allreduce: 2MiB}}
"""
OTHERS = ("roce", "tcp")
AS_WRITTEN = ", layout: as-written"


def text(keys: str = "seed: 3", fabric: str = "", faults: str = "", planes: int = 4) -> str:
    return TEXT.format(keys=keys, fabric=fabric, planes=planes) + (f"faults:\n  - {{{faults}}}\n" if faults else "")


def load(*args: Any, sets: tuple[str, ...] = (), **rest: Any) -> Scenario:
    return load_scenario_text(text(*args, **rest), overrides=sets)


def test_the_transport_decides_routing_and_layout() -> None:
    mrc = load()
    assert (mrc.transport, mrc.routing, mrc.layout) == ("mrc", Routing.SRV6, FabricLayout.AS_WRITTEN)
    for word in OTHERS:
        other = load(f"transport: {word}")
        assert (other.routing, other.layout) == (Routing.ECMP_STATIC, FabricLayout.FOLDED)
        assert other.plan().routing is Routing.ECMP_STATIC


def test_a_folded_fabric_has_one_plane_with_the_rate_of_all_and_says_so() -> None:
    written, other = load(), load("transport: tcp")
    assert (other.written_shape().planes, other.written_shape().port_rate_bps) == (4, 12_500_000)
    assert other.written_shape().hosts == written.shape().hosts == other.shape().hosts
    assert (other.shape().planes, other.shape().port_rate_bps) == (1, 50_000_000)
    assert "4 x the rate" in other.layout_note
    assert "p3-t1-0 is p0-t1-0" in other.layout_note
    assert not written.layout_note


@pytest.mark.parametrize(
    ("keys", "payload", "wire"),
    [
        ("transport: mrc", 4096, 4238),
        ("transport: roce", 4096, 4174),
        ("transport: roce\nroce: {recovery: selective}", 4096, 4190),
        ("transport: roce\nroce: {recovery: lossless}", 4096, 4190),
        ("transport: tcp", 4084, 4170),
    ],
)
def test_a_line_carries_payload_by_the_packets_of_the_transport(keys: str, payload: int, wire: int) -> None:
    shape = load(keys).shape()
    assert (shape.payload_bytes, shape.wire_bytes) == (payload, wire)
    assert line_rate(shape) == pytest.approx(50e6 / 8 * payload / wire)


def test_the_layout_can_be_chosen() -> None:
    assert load("transport: tcp", fabric=", layout: as-written").shape().planes == 4
    assert load(fabric=", layout: folded").shape().planes == 1


def test_groups_stand_beside_any_transport_so_that_set_is_enough() -> None:
    groups = "roce: {timeout: 16}\ntcp: {rto_min: 5ms, connections: 4}\necmp: {hash: independent}"
    assert load(groups).transport is TRANSPORTS["mrc"]
    other = load(groups, sets=("transport=roce",))
    assert other.roce.timeout_ns == 4096 << 16
    assert (other.tcp.connections, other.ecmp.hash) == (4, "independent")


@pytest.mark.parametrize(
    ("keys", "place", "keyword"),
    [
        ("routing: ecmp-static", "2:10: routing", "`routing: srv6`"),
        ("transport: tcp\nrouting: srv6", "3:10: routing", "`routing: ecmp-static`"),
        ("transport: roce\nrouting: srv6", "3:10: routing", "`routing: ecmp-static`"),
        ("transport: tpc", "2:12: transport", "'tcp'"),
        ("transport: 3", "2:12: transport", "mrc, roce, tcp"),
        ("transport: roce\nroce: {timeout: 15}", "3:17: roce.timeout", "at least 16"),
        ("roce: {xoff: 1, xon: 2}", "2:17: roce.xon", "at most `xoff`"),
        ("roce: {xon: 0}", "2:8: roce.xon", "above 0"),
        ("roce: {xoff: -1}", "2:14: roce.xoff", "0"),
        ("roce: {xoff: 101}", "2:14: roce.xoff", "100"),
        ("transport: roce\nroce: {buffers: pfc}", "3:17: roce.buffers", "run it with --virtual"),
        ("transport: roce\nroce: {failover: port}", "3:18: roce.failover", "the folded fabric has one plane"),
        ("transport: roce\nroce: {port_recovery: true}", "3:23: roce.port_recovery", "write `failover: port`"),
        ("roce: {failover: ports}", "2:18: roce.failover", "'port'"),
        ("roce: {port_recovery: 1}", "2:23: roce.port_recovery", "true"),
        ("roce: {retry_hold: 0s}", "2:20: roce.retry_hold", "more than 0"),
        ("roce: {retry_hold: null}", "2:20: roce.retry_hold", "has no value"),
        ("roce: {planes: all}", "2:16: roce.planes", "balanced"),
        ("roce: {planes: balanced}", "2:8: roce.planes", "recovery: lossless"),
        ("roce: {planes: spread, recovery: selective}", "2:8: roce.planes", "takes for loss"),
        (
            "transport: roce\nroce: {planes: balanced, recovery: lossless}",
            "3:16: roce.planes",
            "folded fabric has one plane",
        ),
        ("roce: {timeout: 32}", "2:17: roce.timeout", "at most 31"),
        ("roce: {retrie: 3}", "2:8: roce.retrie", "'retries'"),
        ("tcp: {connections: 65}", "2:20: tcp.connections", "at most 64"),
        ("tcp: {rto_min: 5}", "2:16: tcp.rto_min", "5"),
        ("tcp: {rto_min: 500us}", "2:16: tcp.rto_min", "1ms to 2min"),
        ("tcp: {rto_min: 1h}", "2:16: tcp.rto_min", "1ms to 2min"),
        ("ecmp: {hash: random}", "2:14: ecmp.hash", "polarised"),
        ("ecmp: {choose: least}", "2:16: ecmp.choose", "adaptive"),
        ("ecmp: {choose: adaptive}", "2:16: ecmp.choose", "names the path of each packet, so nothing would choose"),
        ("transport: tcp\necmp: {choose: adaptive}", "3:16: ecmp.choose", "overtaken"),
        ("transport: mptcp\necmp: {choose: adaptive}", "3:16: ecmp.choose", "overtaken"),
        ("transport: roce\nrouting: bgp\necmp: {choose: adaptive}", "4:16: ecmp.choose", "`routing: ecmp-static`"),
        ("transport: roce\necmp: {choose: adaptive, repath: true}", "3:34: ecmp.repath", "hash no flow label"),
        ("transport: roce\necmp: {choose: adaptive, hosts: hashed}", "3:33: ecmp.hosts", "remove this key"),
        ("transport: roce\necmp: {far_links: known}", "3:19: ecmp.far_links", "`choose: adaptive`"),
        ("transport: roce\necmp: {choose: adaptive, far_links: known}", "3:37: ecmp.far_links", "`world: virtual`"),
        ("ecmp: {far_links: perhaps}", "2:19: ecmp.far_links", "known"),
        ("routing:", "3:1: routing", "no value"),
    ],
)
def test_a_wrong_key_has_its_place_and_says_what_to_write(keys: str, place: str, keyword: str) -> None:
    assert told(mistakes(text(keys)), place, keyword)


def test_a_short_timeout_matters_where_it_is_used() -> None:
    assert load("roce: {timeout: 15}").roce.timeout == 15
    assert load("transport: roce\nroce: {timeout: 16}").roce.timeout == 16
    assert load("transport: roce\nroce: {timeout: 15}", fabric=", rtt: 20ms").roce.timeout == 15


@pytest.mark.parametrize(
    ("keys", "fabric", "place", "keyword"),
    [
        ("transport: tcp", ", switch: plain", "fabric.switch", "repath: true"),
        ("transport: roce\nroce: {buffers: deep}", ", switch: plain", "fabric.switch", "buffers: lossy"),
        ("transport: roce", ", port_rate: 250gbit", "fabric.port_rate", "as-written"),
        ("transport: roce\necmp: {choose: adaptive}", ", switch: plain", "fabric.switch", "`choose: hash`"),
        ("transport: roce\nroce: {failover: port, retry_hold: 5s}", AS_WRITTEN, "roce.retry_hold", "one of the two"),
        ("transport: roce\nroce: {retry_hold: 5s}", AS_WRITTEN, "roce.retry_hold", "layout: folded"),
        (
            "transport: roce\nroce: {failover: port}\necmp: {hosts: hashed}",
            AS_WRITTEN,
            "roce.failover",
            "hosts: in-turn",
        ),
        ("seed: 3", ", layout: fold", "fabric.layout", "'folded'"),
    ],
)
def test_a_fabric_that_the_transport_cannot_use(keys: str, fabric: str, place: str, keyword: str) -> None:
    lines = mistakes(text(keys, fabric))
    assert [line for line in lines if f" {place}: " in line and keyword in line]


BALANCED = "transport: roce\nroce: {planes: balanced, recovery: lossless}"


@pytest.mark.parametrize(
    ("keys", "layout", "planes", "place", "keyword"),
    [
        (BALANCED, "folded", 4, "roce.planes", "layout: as-written"),
        (BALANCED, "as-written", 1, "roce.planes", "2 `fabric.planes` or more"),
        (f"{BALANCED}\necmp: {{hosts: hashed}}", "as-written", 4, "roce.planes", "remove one of the two"),
        (BALANCED.replace("}", ", failover: port}"), "as-written", 4, "roce.planes", "failover: off"),
    ],
)
def test_planes_are_used_at_once_where_there_are_several(
    keys: str, layout: str, planes: int, place: str, keyword: str
) -> None:
    lines = mistakes(text(keys, f", layout: {layout}", planes=planes))
    assert [line for line in lines if f" {place}: " in line and keyword in line]
    whole = load(BALANCED, fabric=", layout: as-written")
    assert whole.transport.called(whole.own) == "RoCE, lossy, planes balanced by the sender"


def test_what_needs_the_port_program_says_so() -> None:
    assert "tcp" in load("transport: tcp").needs_port_program
    assert not load("transport: tcp\necmp: {repath: true}").needs_port_program
    assert "deep" in load("transport: roce\nroce: {buffers: deep}").needs_port_program
    assert not load("transport: roce", fabric=", switch: plain").needs_port_program
    assert "adaptive" in load("transport: mrc-hashed\necmp: {choose: adaptive}").needs_port_program


VIRTUAL = ("world=virtual",)


def test_lossless_ports_are_a_matter_of_roce_in_virtual_time() -> None:
    """The group may be written with any transport, and counts where it is used."""
    pfc = "roce: {buffers: pfc}"
    assert load(pfc).pause_thresholds() is None
    assert load(f"transport: roce\n{pfc}", sets=VIRTUAL).pause_thresholds() is not None
    assert load("transport: roce", sets=VIRTUAL).pause_thresholds() is None


@pytest.mark.parametrize(
    ("roce", "levels", "most"),
    [
        ("congestion_control: none", (1, 0.8), None),
        ("congestion_control: dcqcn", (17, 13.6), 0.01),
        ("congestion_control: dcqcn-vendor", (17, 13.6), 0.2),
        ("congestion_control: none, xoff: 4", (4, 3.2), None),
        ("congestion_control: none, xoff: 4, xon: 1", (4, 1), None),
    ],
)
def test_the_levels_at_which_ports_pause_and_mark(roce: str, levels: tuple[float, float], most: float | None) -> None:
    pause = load(f"transport: roce\nroce: {{buffers: pfc, {roce}}}", sets=VIRTUAL).pause_thresholds()
    assert pause is not None
    assert (pause.xoff, pause.xon) == pytest.approx(levels)
    assert (pause.marking and pause.marking.most) == most


def test_deep_buffers_hold_what_others_drop() -> None:
    deep = "roce: {buffers: deep}"
    assert load(f"transport: roce\n{deep}").port_thresholds().drop == 64
    assert load(deep).port_thresholds() == load().port_thresholds()


ELSEWHERE = {"sets": ("transport=tcp",)}


def of_targets(occurrences: tuple[Occurrence, ...]) -> list[tuple[str, ...]]:
    return [one.targets for one in occurrences]


@pytest.mark.parametrize(
    ("fault", "targets"),
    [
        ("link-down: p2-t0-0:p2-t1-1, for: 1s", [("p0-t0-0:p0-t1-1",)]),
        ("link-down: p*-t0-0:p*-t1-1, for: 1s", [("p0-t0-0:p0-t1-1",)]),
        ("port-flap: h3:*, period: 1s, count: 2", [("h3:p0-t0-1",)] * 2),
        ("switch-silent: [p1-t1-0, p2-t1-0, p2-t1-1], for: 1s", [("p0-t1-0", "p0-t1-1")]),
        ("plane-loss: planes, loss: 1%, for: 1s", [("p0",)]),
        ("deny: [p1, p2-t1-0], for: 1s", [("p0", "p0-t1-0")]),
    ],
)
def test_targets_of_every_form_are_folded_and_what_becomes_one_is_one(
    fault: str, targets: list[tuple[str, ...]]
) -> None:
    occurrences = load(faults=f"at: 1s, {fault}", sets=("transport=tcp",)).occurrences
    assert of_targets(occurrences) == targets
    assert [one.number for one in occurrences] == list(range(len(targets)))


def test_a_flap_with_times_of_its_own_at_each_port_keeps_them() -> None:
    fault = "at: 1s, port-flap: h3:*, period: 1s, count: 2, jitter: 20%"
    written, there = load(faults=fault).occurrences, load(faults=fault, sets=("transport=tcp",)).occurrences
    assert sorted((one.begin_ns, one.end_ns) for one in written if one.begin_ns > 10**9) == sorted(
        (one.begin_ns, one.end_ns) for one in there if one.begin_ns > 10**9
    )


def test_a_slow_link_keeps_its_share_of_the_port() -> None:
    fault = "at: 1s, link-rate: p1-t0-0:p1-t1-0, rate: 6.25mbit, for: 1s"
    (slow,) = load(faults=fault, sets=("transport=tcp",)).occurrences
    assert slow.parameters.rate_bps == 25_000_000
    assert "25mbit" in slow.title


def test_captures_follow_their_links() -> None:
    keys = 'capture: [{links: "h0:*", around: run}, {links: "p3-t0-0:p3-t1-2", around: run}]'
    assert [one.link for one in load(keys).captures] == [*(f"h0:p{n}-t0-0" for n in range(4)), "p3-t0-0:p3-t1-2"]
    assert [one.link for one in load(keys, sets=("transport=tcp",)).captures] == ["h0:p0-t0-0", "p0-t0-0:p0-t1-2"]


def test_a_denylist_is_of_mrc_and_folds_with_its_fabric() -> None:
    keys = "endpoint: {denylist: [p1-t1-0, p2-t1-0]}"
    assert not load(keys, sets=("transport=tcp",)).denylist
    assert [one.path for one in load(keys).denylist] == ["p1-t1-0", "p2-t1-0"]
    (one,) = load(keys, fabric=", layout: folded").denylist
    assert one.path == "p0-t1-0"


def test_denied_names_that_fold_to_one_are_one_in_a_list_and_twice_in_two() -> None:
    folded = ", layout: folded"
    fault = "at: 1s, deny: [p1-t1-0, p3-t1-0], for: 1s"
    (one,) = load(fabric=folded, faults=fault).occurrences
    assert one.targets == ("p0-t1-0",)
    keys = "endpoint: {denylist: [p1-t1-0, p1-t1-0]}"
    assert told(mistakes(text(keys, folded)), "2:32: endpoint.denylist.1", "already denied by endpoint.denylist.0")
    keys = "endpoint: {denylist: [p1-t1-0, {path: p2-t1-0, hosts: [h0]}]}"
    assert told(mistakes(text(keys, folded)), "2:32: endpoint.denylist.1", "already denied by endpoint.denylist.0")
    keys = "endpoint: {denylist: [p1-t1-0]}"
    found = mistakes(text(keys, folded, "at: 1s, deny: p2-t1-0, for: 1s"))
    assert told(found, "7:20: faults.0.deny", "p2-t1-0 is already denied by endpoint.denylist.0 (p1-t1-0)")


@pytest.mark.parametrize("transport", OTHERS)
def test_a_denial_that_nothing_comes_of_is_warned_of(transport: str) -> None:
    keys, fault = "endpoint: {denylist: [p1-t1-0]}", "at: 1s, deny: p0, for: 1s, name: controller"
    assert not list(scenario_warnings(load(keys, faults=fault)))
    warned = list(scenario_warnings(load(keys, faults=fault, sets=(f"transport={transport}",))))
    assert [line.split(":")[0] for line in warned] == ["endpoint.denylist", "controller"]
    assert all(f"{transport} has no paths" in line for line in warned)


def test_denials_that_leave_no_path_on_one_plane_are_refused_there_only() -> None:
    keys = "endpoint: {denylist: [p1]}"
    assert told(mistakes(text(keys, ", layout: folded")), "2:23: endpoint.denylist.0", "leaves no path")
    assert load(keys, sets=("transport=roce",))


def test_tcp_notices_corruption_without_the_icrc() -> None:
    fault = "at: 1s, corrupt: p0-t0-0:p0-t1-0, share: 1%, for: 1s"
    assert load(faults=fault, sets=("transport=tcp",))
    assert any("ICRC" in line for line in mistakes(text(faults=fault)))


forms = st.sampled_from(sorted({name for fitting in FITTING.values() for name in fitting}))


@st.composite
def aims(draw: st.DrawFn, target: Target, scenario: Scenario) -> str:
    """A target of some form, which the fabric of `scenario` has."""
    plan = scenario.written_plan()
    name = draw(st.sampled_from(allowed(target, plan)))
    known = CLASSES[name](plan)
    one = draw(st.sampled_from(known))
    pattern = ":".join("-".join([part.split("-")[0][0] + "*", *part.split("-")[1:]]) for part in one.split(":"))
    draws = f"any {draw(st.integers(1, len(known)))} of {name}"
    return draw(st.sampled_from([one, name, draws, pattern]))


REST = {
    "link-loss": "loss: 1%",
    "one-way": "direction: up",
    "corrupt": "share: 1%",
    "plane-loss": "loss: 1%",
    "ev-loss": "loss: 1%, from: h0",
    "link-rate": "rate: 1mbit",
    "host-slow": "per_packet: 500us",
    "ecn-stuck": "marks: always",
    "shallow-buffer": "drop: 0.3",
    "switch-reboot": "boot: 1s",
}
FLAPS = ("link-flap", "port-flap", "transceiver-flap")
OF_MRC = ("cables-swapped", "entry-missing", "entry-wrong", "trim-off")
"""Of entries for uSIDs and of trimming: RoCE has neither."""


@given(st.data(), st.sampled_from(sorted({*KINDS} - {"deny", *OF_MRC})), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=examples(150), deadline=None)
@pytest.mark.nightly
def test_the_same_cables_break_in_every_layout(data: st.DataObject, kind: str, planes: int, seed: int) -> None:
    keys = f"seed: {seed}\nendpoint: {{icrc: true}}"
    bare = load_scenario_text(text(keys, planes=planes))
    aim = data.draw(aims(KINDS[kind].target, bare))
    lasts = "period: 1s, count: 2" if kind in FLAPS else "" if kind == "switch-reboot" else "for: 1s"
    rest = ", ".join(filter(None, [REST.get(kind, ""), lasts]))
    file = text(keys, planes=planes, faults=f'at: 1s, {kind}: "{aim}", {rest}')
    written = load_scenario_text(file)
    for layout in ("transport=roce", "fabric.layout=folded"):
        there = load_scenario_text(file, overrides=[layout])
        plan = there.plan()
        broken = {(one.begin_ns, one.end_ns, fold(name)) for one in written.occurrences for name in one.targets}
        assert broken == {(one.begin_ns, one.end_ns, name) for one in there.occurrences for name in one.targets}
        links = set(fold_all(link for one in written.occurrences for link in one.links))
        assert links == {link for one in there.occurrences for link in one.links}
        names = (name for one in there.occurrences for name in one.targets)
        assert not [wrong for name in names if (wrong := wrong_name(name, kind, KINDS[kind].target, plan))]
        assert len({one.key for one in there.occurrences}) == len(there.occurrences)
        records = [one.as_record() for one in there.occurrences]
        assert read_occurrences(records, plan, KINDS) == there.occurrences


FLOWS = """\
name: flows
transport: {transport}
tcp: {{connections: 4}}
fabric: {{planes: 4, t0_groups: 2, t1: 3, hosts_per_t0: 2}}
workload:
  - train: {{steps: 2, compute: 1ms, allreduce: 2MiB}}
  - write: {{from: h0, to: h2, for: 9s, qps: 2}}
  - latency: {{from: h1, to: h3, iterations: 5}}
"""


@pytest.mark.parametrize(
    ("transport", "counts"), [("tcp", (4, 4, 1)), ("mptcp", (4, 4, 1)), ("roce", (1, 2, 1)), ("mrc", (1, 2, 1))]
)
def test_connections_stand_for_the_qps_of_jobs_and_greedy_flows(transport: str, counts: tuple[int, ...]) -> None:
    scenario = load_scenario_text(FLOWS.format(transport=transport))
    names = [qp.id for qp in scenario.job.plan_job(scenario.plan()).qps]
    starts = "0>1/", "h0->h2/", "h1->h3/"
    assert tuple(sum(name.startswith(start) for name in names) for start in starts) == counts


def test_the_congestion_control_is_that_of_the_transport() -> None:
    keys = "roce: {congestion_control: none}\ntcp: {congestion_control: reno}"
    assert {kind: load(keys, sets=(f"transport={kind}",)).congestion_control for kind in TRANSPORTS} == {
        "mrc": "nscc",
        "roce": "none",
        "tcp": "reno",
        "mptcp": "reno",
        "mrc-hashed": "nscc",
    }


def test_failover_with_one_plane_as_written_has_no_other_port() -> None:
    keys = "transport: roce\nroce: {failover: port}"
    assert told(mistakes(text(keys, AS_WRITTEN, planes=1)), "3:18: roce.failover", "2 `fabric.planes` or more")
    assert load(keys, AS_WRITTEN, planes=2).roce.failover == "port"
    assert load("roce: {failover: port}", planes=1).roce.failover == "port"


def test_a_hold_is_scaled_as_the_timeout_is() -> None:
    keys = "transport: roce\nworld: virtual\nscale: 8\nroce: {retry_hold: 4s, timeout: 20}"
    run = load(keys, fabric=", rtt: 20ms").at_scale()
    assert (run.roce.retry_hold_ns, run.roce.timeout) == (500_000_000, 17)
