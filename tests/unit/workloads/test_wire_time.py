"""The least time that a step or a message takes on a wire without credit, by hand and by the program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.wire_time import wire_times
from mrc_testbed.testbed.workloads.collective import Terms
from mrc_testbed.testbed.workloads.estimate import eager, earliest_completion_ns, earliest_ns, links_between
from mrc_testbed.testbed.workloads.steps import ALL, Compute, Exchange, StepJob, Together
from mrc_testbed.topos.families.clos2 import Clos2, clos2_shape
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.shape import Shape
from tests.unit.checks.test_flows import FlowFolder
from tests.unit.checks.test_folder import HOSTS, RunFolder, at
from tests.unit.outcomes import reasons

SLOW = clos2_shape(planes=2, t0_groups=2, t1=2, hosts_per_t0=2, port_rate_bps=4_000_000, rtt_ns=60_000_000)
PACKET_MS = 4238 * 8 / 4000
KIB = 1024


@pytest.mark.parametrize(
    ("messages", "links", "packets"),
    [
        ([4 * KIB], 2, 2),
        ([4 * KIB], 4, 4),
        ([8 * KIB], 4, 4),
        ([12 * KIB], 4, 5),
        ([64 * 4 * KIB], 4, 35),
        ([4 * KIB, 4 * KIB, 4 * KIB], 4, 5),
        ([4 * KIB + 1], 4, 4),
    ],
)
def test_full_packets_follow_each_other_on_the_first_link_alone(messages: list[int], links: int, packets: int) -> None:
    assert earliest_ns(SLOW, messages, links) / 1e6 == pytest.approx(30 + packets * PACKET_MS)


def test_a_short_packet_takes_its_own_time_on_each_link() -> None:
    assert earliest_ns(SLOW, [2], 4) / 1e6 == pytest.approx(30 + 4 * 144 * 8 / 4000)
    assert earliest_ns(SLOW, [], 2) / 1e6 == pytest.approx(30 + 2 * 142 * 8 / 4000)


def test_a_completion_waits_for_the_acknowledgement() -> None:
    assert earliest_completion_ns(SLOW, 4096, 2) / 1e6 == pytest.approx(60 + 2 * PACKET_MS + 2 * 82 * 8 / 4000)


def test_a_message_cut_over_ports_takes_as_long_as_its_parts() -> None:
    """4 KiB over two ports: 2 KiB each, in 2190 B; 12 KiB: 6 KiB, whose first packet is full. A part is a multiple."""
    cut = replace(SLOW, cut_bytes=128)
    assert earliest_ns(cut, [4 * KIB], 4) / 1e6 == pytest.approx(30 + 4 * 2190 * 8 / 4000)
    assert earliest_ns(cut, [12 * KIB], 4) / 1e6 == pytest.approx(30 + 4 * PACKET_MS)
    assert earliest_ns(cut, [2], 4) == earliest_ns(SLOW, [2], 4)
    assert earliest_ns(cut, [258], 4) == earliest_ns(SLOW, [256], 4)
    assert earliest_ns(eager(cut), [64 * 4 * KIB], 4) == earliest_ns(eager(SLOW), [64 * 4 * KIB], 4)


def test_hosts_of_a_group_are_two_links_apart() -> None:
    assert [links_between(SLOW, 0, target) for target in (1, 2, 3)] == [2, 4, 4]


def test_links_are_counted_on_the_shortest_way_and_by_their_time() -> None:
    three = Shape(2, Clos3(pods=2, t0=2, t1=2, t2=2, hosts_per_t0=2), 4_000_000, 60_000_000)
    assert [links_between(three, 0, target) for target in (1, 2, 4)] == [2, 4, 6]
    rails = Shape(2, Rail(rails=2, nodes=2, spine=1), 4_000_000, 60_000_000)
    assert [links_between(rails, 0, target) for target in (2, 1, 3)] == [2, 4, 4]
    unequal = Shape(2, Clos2(2, 2, 1, t1_speed=(0.25, 0.5)), 4_000_000, 60_000_000)
    assert links_between(unequal, 0, 1) == 2 + 2 * 2
    # A full packet: a link of the host, two at half the rate, and one of the other host; its answer the same.
    assert earliest_completion_ns(unequal, 4096, 6) / 1e6 == pytest.approx(60 + 6 * PACKET_MS + 6 * 82 * 8 / 4000)


def test_what_two_tiers_of_links_carry_bounds_a_step() -> None:
    """Eight hosts that send to all, 8 x 128 KiB: four of a pod send 16 chunks over two links to T2s, and each port
    seven. With twice the T2s the ports take longest."""
    size = 8 * 128 * KIB

    def step_ms(family: Family) -> float:
        shape = Shape(1, family, 4_000_000, 60_000_000)
        return StepJob(tuple(range(8)), 1, (Exchange("all-to-all", ALL, Terms(size)),)).step_ns(shape) / 1e6

    chunk_ms = 32 * PACKET_MS
    whole, half = (step_ms(Clos3(pods=2, t0=2, t1=2, t2=t2, hosts_per_t0=2)) for t2 in (4, 2))
    assert whole == pytest.approx(7 * chunk_ms + 30 + 5 * PACKET_MS + 30 + 6 * 143 * 8 / 4000)
    assert half - whole == pytest.approx(chunk_ms)
    # All 16 chunks of a side over one link of a T1 at full and one at half the rate, each with half of them.
    unequal = step_ms(Clos2(2, 2, 4, t1_speed=(1.0, 0.5)))
    assert unequal - step_ms(Clos2(2, 4, 4)) == pytest.approx((16 - 7) * chunk_ms + 2 * PACKET_MS + 2 * 143 * 8 / 4000)


def job(*parts: object, **more: object) -> StepJob:
    return StepJob((0, 1, 2, 3), 2, parts, **more)  # type: ignore[arg-type]


def test_a_chunk_of_a_ring_goes_round_twice_but_for_its_two_longest_hops() -> None:
    ring = job(Exchange("allreduce", ALL, Terms(4 * 32 * KIB)))
    within, across = 30 + (4 + 1) * PACKET_MS, 30 + (4 + 3) * PACKET_MS
    assert ring.earliest_step_ns(SLOW) / 1e6 == pytest.approx(2 * (2 * within + 2 * across) - 2 * across)
    assert ring.earliest_step_ns(SLOW) < ring.step_ns(SLOW)


@pytest.mark.parametrize("kind", ["allreduce", "reduce-scatter", "all-gather", "sendrecv", "all-to-all", "pipeline"])
@pytest.mark.parametrize("qps", [1, 3])
@pytest.mark.parametrize("message_bytes", [5_000, 1 << 20])
def test_nothing_is_as_slow_as_a_clean_step_is_taken_to_be(kind: str, qps: int, message_bytes: int) -> None:
    terms = Terms(300_001, qps, message_bytes, micro_batches=3, compute_ns=10_000_000)
    one = job(Exchange(kind, ALL, terms))
    assert 0 < one.earliest_step_ns(SLOW) < one.step_ns(SLOW)


def test_parts_side_by_side_take_as_long_as_the_longest() -> None:
    exchange = Exchange("sendrecv", ALL, Terms(64 * KIB))
    alone = job(exchange).earliest_step_ns(SLOW)
    compute_ns = round(2 * alone)
    assert job(Compute(5), exchange).earliest_step_ns(SLOW) == pytest.approx(alone + 5)
    assert job(Together((Compute(compute_ns), exchange))).earliest_step_ns(SLOW) == compute_ns
    assert job(Together((Compute(5), exchange))).earliest_step_ns(SLOW) == alone


@pytest.mark.parametrize(("packets", "behind"), [(1, 0), (6, 0), (8, 1), (64, 29)])
def test_plain_shapers_let_three_packets_of_a_plane_go_at_once_and_no_link_takes_time(
    packets: int, behind: int
) -> None:
    plain = eager(SLOW)
    assert earliest_ns(plain, [packets * 4 * KIB], 4) / 1e6 == pytest.approx(30 + behind * PACKET_MS)
    assert earliest_completion_ns(plain, packets * 4 * KIB, 4) / 1e6 == pytest.approx(60 + behind * PACKET_MS)
    ring = job(Exchange("allreduce", ALL, Terms(256 * KIB)))
    assert ring.earliest_step_ns(plain) < ring.earliest_step_ns(SLOW)


def test_a_run_on_plain_shapers_is_held_against_their_own_wire(tmp_path: Path) -> None:
    folder, earliest_ns = RunFolder(), []
    for ports in ("port program", "plain shaper"):
        folder.environment["switch_ports"] = ports
        (least_ns,) = {one.earliest_ns for one in wire_times(load_record(folder.write(tmp_path)))}
        earliest_ns.append(least_ns)
    assert 0 < earliest_ns[1] < earliest_ns[0]


def fast_step(ms: float) -> RunFolder:
    """A run whose step 5 took so long from the last rank's beginning to the last one's end."""
    folder = RunFolder()
    end_ns = at(6)
    for row in folder.completions:
        if row[1] == 5:
            row[2:4] = [end_ns - round(ms * 1e6), end_ns]
    return folder


def test_a_step_that_is_faster_than_the_wire_is_not_believed(tmp_path: Path) -> None:
    (earliest_ms,) = {one.earliest_ns / 1e6 for one in wire_times(load_record(RunFolder().write(tmp_path)))}
    assert fast_step(earliest_ms * 0.991).judge(tmp_path).status is Status.PASS
    verdict = fast_step(earliest_ms * 0.98).judge(tmp_path)
    assert verdict.status is Status.INCONCLUSIVE
    why = f"step 5 took {earliest_ms * 0.98:.0f} ms, never under {earliest_ms:.0f} ms"
    assert reasons(verdict) == (f"faster than the wire: observed 2 %, expected <= 1 %; {why}",)


def test_tcp_has_the_credit_of_shapers_and_is_not_held_against_the_wire(tmp_path: Path) -> None:
    folder = fast_step(1)
    assert not folder.judge(tmp_path).fidelity.ok
    folder.scenario = "transport: tcp\n" + folder.scenario
    figure = next(one for one in folder.judge(tmp_path).fidelity.figures if one.name == "faster than the wire")
    assert figure.ok
    assert figure.why.startswith("not known here: TCP gets packets when shapers let them go")


def test_a_rank_that_is_late_does_not_make_a_step_of_all_faster(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.completions[0][2] = at(0.9)
    step = next(wire_times(load_record(folder.write(tmp_path))))
    assert step.took_ns == pytest.approx(0.1e9)


def test_steps_that_some_rank_did_not_end_are_left_out(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.completions = [row for row in folder.completions if row[0] != HOSTS[1]]
    assert not list(wire_times(load_record(folder.write(tmp_path))))
    figures = {figure.name: figure for figure in folder.judge(tmp_path).fidelity.figures}
    figure = figures["faster than the wire"]
    assert (figure.ok, figure.observed, figure.why) == (
        True, None, "not known here: nothing came to its end",
    )  # fmt: skip


def test_a_message_is_held_against_its_way_there_and_back(tmp_path: Path) -> None:
    folder = FlowFolder()
    assert folder.judge(tmp_path).fidelity.ok
    folder.messages[7][4] = 20_000_000
    (reason,) = reasons(folder.judge(tmp_path))
    assert reason.startswith("faster than the wire: observed 3")
    assert "a message of h0->h2 took 20 ms, never under" in reason
