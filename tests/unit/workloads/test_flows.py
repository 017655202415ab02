"""Sets of flows: what they compile to, run by real interpreters over a fabric that is a few lists; fair shares."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.program_io import IntervalReport, Report
from mrc_testbed.testbed.workloads.arrivals import Arrival
from mrc_testbed.testbed.workloads.estimate import answer_ns, transfer_ns
from mrc_testbed.testbed.workloads.fairness import Demand, line_rate, max_min_shares
from mrc_testbed.testbed.workloads.flows import Flow, flow_of, flows_ns, plan_flows
from mrc_testbed.testbed.workloads.steady import Epoch, epochs, settle_ns
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.shape import Shape
from tests.examples import examples
from tests.unit.workloads.wires import Wire

MS = 1_000_000
SHAPE = clos2_shape(planes=2, t0_groups=2, t1=2, hosts_per_t0=2, port_rate_bps=1_000_000, rtt_ns=1 * MS)
QUICKSTART = clos2_shape(planes=4, t0_groups=2, t1=4, hosts_per_t0=4, port_rate_bps=25_000_000, rtt_ns=20 * MS)


def flow(
    src: int,
    dst: int,
    for_ns: int | None = None,
    total_bytes: int | None = None,
    *,
    message: int = 100,
    qps: int = 1,
    start_ns: int = 0,
    queue: int | None = None,
) -> Flow:
    return Flow(src, dst, message, qps, start_ns, for_ns, total_bytes, queue, ("write",))


def wire_of(flows: list[Flow], seed: int = 1) -> Wire:
    return Wire(plan_flows(SHAPE, flows), seed, prompt=True)


def received(reports: dict[int, list[Report]], qp: str) -> list[tuple[int, ...]]:
    found = [report for each in reports.values() for report in each if isinstance(report, IntervalReport)]
    return [report.interval for report in found if report.qp == qp]


def test_a_flow_of_so_many_bytes_delivers_them_once_and_in_whole_messages() -> None:
    reports = wire_of([flow(0, 2, total_bytes=950)]).run()
    (only,) = received(reports, "h0->h2/0")
    assert only[2:] == (1000, 10, 0, True)


def test_bytes_are_shared_out_among_qps() -> None:
    one = flow(0, 2, total_bytes=1000, qps=3)
    assert [one.messages_of(number) for number in range(3)] == [4, 3, 3]
    assert [flow(0, 2, total_bytes=1, qps=3).messages_of(number) for number in range(3)] == [1, 1, 1]
    reports = wire_of([one]).run()
    assert [received(reports, qp)[0][3] for qp in one.qp_names()] == [4, 3, 3]


def test_a_flow_for_a_time_stops_then() -> None:
    wire = wire_of([flow(0, 2, for_ns=1 * MS, start_ns=2 * MS)])
    reports = wire.run()
    assert wire.now_ns >= 3 * MS
    (only,) = received(reports, "h0->h2/0")
    assert only[3] > 0


def test_one_flipped_bit_is_one_wrong_byte() -> None:
    wire = wire_of([flow(0, 2, total_bytes=1000)])
    wire.corrupt.add(("h0->h2/0", 4))
    (only,) = received(wire.run(), "h0->h2/0")
    assert only[2:] == (1000, 10, 1, True)


PAIRS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda pair: pair[0] != pair[1]),
    min_size=1,
    max_size=6,
    unique=True,
)


@settings(max_examples=examples(60), deadline=None)
@given(PAIRS, st.data())
def test_any_set_of_flows_comes_to_its_end_with_every_byte_right(
    pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    flows = []
    for src, dst in pairs:
        timed = data.draw(st.booleans())
        ends = (data.draw(st.integers(1, 50_000)), None) if timed else (None, data.draw(st.integers(1, 5_000)))
        more = {"message": data.draw(st.integers(1, 3000)), "qps": data.draw(st.integers(1, 3))}
        flows.append(flow(src, dst, *ends, **more, start_ns=data.draw(st.integers(0, 50_000))))
    reports = wire_of(flows, data.draw(st.integers(0, 99))).run()
    for one in flows:
        rows = [row for qp in one.qp_names() for row in received(reports, qp)]
        assert sum(row[5] for row in rows) == one.qps
        assert sum(row[4] for row in rows) == 0
        if one.total_bytes is not None:
            assert sum(row[2] for row in rows) >= one.total_bytes


def test_programs_hold_each_end_of_each_qp_once() -> None:
    job = plan_flows(SHAPE, [flow(0, 2, total_bytes=1), flow(2, 0, total_bytes=1), flow(1, 2, total_bytes=1, qps=2)])
    ops = {host: [(track[0][0], track[0][1]) for track in tracks] for host, tracks in job.programs.items()}
    assert ops[0] == [("send", "h0->h2/0"), ("receive", "h2->h0/0")]
    assert ops[1] == [("send", "h1->h2/0"), ("send", "h1->h2/1")]
    assert ops[2] == [("receive", "h0->h2/0"), ("send", "h2->h0/0"), ("receive", "h1->h2/0"), ("receive", "h1->h2/1")]
    assert job.ranks == (0, 1, 2)
    assert {flow_of(qp.id) for qp in job.qps} == {"h0->h2", "h2->h0", "h1->h2"}


@pytest.mark.parametrize(("message", "depth"), [(32 << 10, 17), (4096, 64), (1 << 20, 2)])
def test_two_windows_are_always_queued(message: int, depth: int) -> None:
    one = flow(0, 4, for_ns=1, message=message)
    assert one.depth(QUICKSTART) == depth
    assert one.slots(QUICKSTART) > depth


def test_one_message_at_a_time_is_never_two() -> None:
    wire = wire_of([flow(0, 2, total_bytes=1000, queue=1)])
    way = ("h0->h2/0", 0)
    post, under_way = wire.posted.setdefault(way, deque()), wire.arrived.setdefault(way, deque())
    move = wire.move

    def watched() -> bool:
        assert len(post) + len(under_way) <= 1
        return move()

    wire.move = watched  # type: ignore[method-assign]
    assert received(wire.run(), "h0->h2/0")[0][3] == 10


def test_the_estimate_is_the_last_stop_or_the_bytes_at_their_fair_share() -> None:
    line = line_rate(QUICKSTART)
    timed = flow(0, 4, for_ns=5 * 10**9, start_ns=10**9)
    assert flows_ns(QUICKSTART, [timed]) == 6 * 10**9 + 80 * MS
    halves = [flow(src, 4, total_bytes=round(line), message=1 << 20) for src in (0, 1)]
    acknowledged_ns = transfer_ns(QUICKSTART, 1 << 20) + answer_ns(QUICKSTART)
    assert flows_ns(QUICKSTART, halves) == pytest.approx(2 * 10**9 + acknowledged_ns, rel=1e-6)


@pytest.mark.parametrize(("open_messages", "queue", "under_way"), [(0, 8, 8), (32, 8, 8), (32, 64, 32), (0, 64, 64)])
def test_small_messages_take_round_trips(open_messages: int, queue: int, under_way: int) -> None:
    shape = replace(QUICKSTART, open_messages=open_messages)
    (small,) = [flow(0, 4, total_bytes=6400 * 100, qps=2, queue=queue)]
    round_trip_ns = transfer_ns(shape, 100) + answer_ns(shape)
    expected_ns = 6400 / (2 * under_way) * round_trip_ns + round_trip_ns
    assert flows_ns(shape, [small]) == pytest.approx(expected_ns, rel=1e-6)


def test_flows_that_arrive_wait_for_messages_under_way() -> None:
    shape = replace(QUICKSTART, open_messages=2)
    trace = replace(flow(0, 4, total_bytes=1000), arrivals=(Arrival(0, 800), Arrival(0, 200)), greedy=False)
    round_trip_ns = transfer_ns(shape, 100) + answer_ns(shape)
    assert flows_ns(shape, [trace]) == pytest.approx(5 * round_trip_ns + round_trip_ns, rel=1e-6)


# Fair shares


def shares(shape: Shape, *pairs: tuple[int, int] | tuple[int, int, int]) -> list[float]:
    demands = {str(number): Demand(pair[0], pair[1], (*pair, 1)[2]) for number, pair in enumerate(pairs)}
    return [round(share / line_rate(shape), 6) for share in max_min_shares(shape, demands).values()]


def test_the_line_rate_counts_payload_of_full_packets() -> None:
    assert line_rate(QUICKSTART) == pytest.approx(4 * 25e6 / 8 * 4096 / 4238)


def test_flows_that_meet_nowhere_have_the_line_each() -> None:
    assert shares(QUICKSTART, *((host, (host + 4) % 8) for host in range(8))) == [1.0] * 8


def test_an_incast_is_shared_and_its_victim_is_not_touched() -> None:
    assert shares(QUICKSTART, (0, 4), (1, 4), (2, 4), (3, 5)) == [pytest.approx(1 / 3, abs=1e-6)] * 3 + [1.0]


def test_what_one_bottleneck_leaves_goes_to_the_others() -> None:
    # h0 -> h4 has a third of h4; what it leaves at h0 is for h0 -> h5.
    assert shares(QUICKSTART, (0, 4), (1, 4), (2, 4), (0, 5)) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3], abs=1e-6)


def test_each_qp_has_a_share() -> None:
    assert shares(QUICKSTART, (0, 4, 3), (1, 4, 1)) == pytest.approx([0.75, 0.25], abs=1e-6)


def test_uplinks_bound_what_leaves_a_group_and_nothing_else() -> None:
    thin = clos2_shape(planes=1, t0_groups=2, t1=1, hosts_per_t0=4, port_rate_bps=25_000_000, rtt_ns=0)
    assert shares(thin, (0, 4), (1, 5), (2, 3)) == [0.5, 0.5, 1.0]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 4)).filter(lambda pair: pair[0] != pair[1]),
        min_size=1,
        max_size=12,
    )
)
def test_no_port_is_given_more_than_it_has_and_every_flow_meets_a_full_one(pairs: list[tuple[int, int, int]]) -> None:
    found = shares(QUICKSTART, *pairs)
    sent = [sum(share for share, pair in zip(found, pairs, strict=True) if pair[0] == host) for host in range(8)]
    taken = [sum(share for share, pair in zip(found, pairs, strict=True) if pair[1] == host) for host in range(8)]
    assert max(*sent, *taken) <= 1 + 1e-4
    for share, (src, dst, _) in zip(found, pairs, strict=True):
        assert share > 0
        assert max(sent[src], taken[dst]) >= 1 - 1e-4


# Epochs


def test_epochs_change_when_a_flow_begins_or_ends() -> None:
    found = epochs({"a": (0, 10), "b": (4, 6), "c": (12, 13)})
    assert found == [
        Epoch(0, 4, frozenset("a")),
        Epoch(4, 6, frozenset("ab")),
        Epoch(6, 10, frozenset("a")),
        Epoch(12, 13, frozenset("c")),
    ]
    assert all(before.end_ns <= after.begin_ns for before, after in pairwise(found))


def test_rates_settle_in_twenty_rtts_but_never_faster_than_reports_can_show() -> None:
    assert settle_ns(QUICKSTART) == 400 * MS
    assert settle_ns(SHAPE) == 200 * MS
