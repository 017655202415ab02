"""Collectives and jobs of steps, run by real interpreters over a fabric that is a few lists."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.operations import TAGS
from mrc_testbed.hosts.program_io import Report, StepReport
from mrc_testbed.testbed.workloads.collective import Terms, part
from mrc_testbed.testbed.workloads.estimate import answer_ns, port_ns, transfer_ns, wire_ns
from mrc_testbed.testbed.workloads.job import JobPlan
from mrc_testbed.testbed.workloads.steps import ALL, COLLECTIVES, Compute, Exchange, StepJob, Together
from mrc_testbed.topos.families.clos2 import clos2_shape
from tests.examples import examples
from tests.unit.workloads.wires import Wire

KINDS = sorted(COLLECTIVES)
QUICKSTART = clos2_shape(planes=4, t0_groups=2, t1=4, hosts_per_t0=4, port_rate_bps=25_000_000, rtt_ns=20_000_000)


def job(kind: str, ranks: int, size: int, steps: int = 4, **more: int) -> StepJob:
    hosts = tuple(3 * rank for rank in range(ranks))
    return StepJob(hosts, steps, (Exchange(kind, ALL, Terms(size, **more)),))


def run(plan: JobPlan, **options: Any) -> dict[int, list[StepReport]]:
    reports = Wire(plan, **options).run()
    return {host: [one for one in told if isinstance(one, StepReport)] for host, told in reports.items()}


def wrong(reports: dict[int, list[StepReport]]) -> list[int]:
    return [report.wrong_bytes for told in reports.values() for report in told]


def sent_in_a_step(kind: str, ranks: int, size: int, micro_batches: int = 1) -> int:
    """What all ranks together must write, from the definition of the collective."""
    return {
        "allreduce": 2 * (ranks - 1) * size,
        "reduce-scatter": (ranks - 1) * size,
        "all-gather": (ranks - 1) * size,
        "sendrecv": ranks * size,
        "all-to-all": (ranks - 1) * size,
        "pipeline": (ranks - 1) * size * micro_batches,
    }[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
@pytest.mark.parametrize("extra", [0, 1, 1000])
def test_every_rank_ends_every_step_with_every_byte_right(kind: str, ranks: int, extra: int) -> None:
    reports = run(job(kind, ranks, ranks + extra).plan(), seed=ranks)
    for told in reports.values():
        assert [report.step for report in told] == [0, 1, 2, 3]
        assert all(before.end_ns <= after.begin_ns for before, after in pairwise(told))
    assert wrong(reports) == [0] * 4 * ranks
    sent = sum(report.sent_bytes for told in reports.values() for report in told)
    assert sent == 4 * sent_in_a_step(kind, ranks, ranks + extra)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(KINDS),
    st.integers(2, 6),
    st.integers(0, 600),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 800),
    st.integers(1, 4),
    st.integers(0, 999),
)
def test_any_size_cut_in_any_way_arrives(
    kind: str, ranks: int, extra: int, steps: int, qps: int, message: int, batches: int, seed: int
) -> None:
    size = ranks + extra
    made = job(kind, ranks, size, steps, qps=qps, message_bytes=message, micro_batches=batches)
    wire = Wire(made.plan(), seed=seed)
    longest = 0
    move = wire.move

    def watched() -> bool:
        nonlocal longest
        longest = max([longest, *(len(write[0]) for writes in wire.posted.values() for write in writes)])
        return move()

    wire.move = watched  # type: ignore[method-assign]
    reports = wire.run()
    told = [one for each in reports.values() for one in each if isinstance(one, StepReport)]
    assert [one.wrong_bytes for one in told] == [0] * steps * ranks
    assert sum(one.sent_bytes for one in told) == steps * sent_in_a_step(kind, ranks, size, batches)
    assert longest <= message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("seed", range(4))
def test_no_memory_changes_under_a_write_even_when_one_neighbour_acknowledges_late(
    kind: str, ranks: int, seed: int
) -> None:
    made = job(kind, ranks, 1000, 6, micro_batches=2)
    slow = f"3>{0 if ranks == 2 else 6}/{kind}/0" if kind != "pipeline" or ranks > 2 else "0>3/pipeline/0"
    plan = made.plan()
    assert slow in {qp.id for qp in plan.qps}
    assert wrong(run(plan, seed=seed, slow=slow)) == [0] * 6 * ranks


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("lazy", [0, 1])
def test_nobody_overwrites_what_a_slow_rank_has_not_looked_at(kind: str, ranks: int, lazy: int) -> None:
    made = job(kind, ranks, 100, 6, micro_batches=2)
    assert wrong(run(made.plan(), lazy=3 * lazy)) == [0] * 6 * ranks


def test_with_one_bank_a_slow_rank_would_be_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail."""
    monkeypatch.setattr("mrc_testbed.testbed.workloads.all_to_all.BANKS", 1)
    assert any(wrong(run(job("all-to-all", 3, 100, 6).plan(), lazy=0)))


def wrong_bytes(reports: list[Report]) -> list[int]:
    """Of each step."""
    return [report.wrong_bytes for report in reports if isinstance(report, StepReport)]


def test_a_corrupted_byte_is_counted_where_it_ends_up() -> None:
    wire = Wire(job("allreduce", 3, 300, 2).plan())
    # Phase 3, the last of step 0: rank 2 gets a complete chunk that it does not pass on.
    wire.corrupt = {("3>6/allreduce/0", 3)}
    reports = wire.run()
    assert wrong_bytes(reports[6]) == [1, 0]
    assert [*wrong_bytes(reports[0]), *wrong_bytes(reports[3])] == [0] * 4


def test_a_corrupted_contribution_spoils_one_byte_on_every_rank() -> None:
    wire = Wire(job("allreduce", 3, 300, 1).plan())
    wire.corrupt = {("0>3/allreduce/0", 0)}
    assert [wrong_bytes(told) for told in wire.run().values()] == [[1], [1], [1]]


@pytest.mark.parametrize(
    ("kind", "qp", "spoiled"),
    [
        ("reduce-scatter", "0>3/reduce-scatter/0", [0, 0, 1]),
        ("all-gather", "0>3/all-gather/0", [0, 1, 1]),
        ("sendrecv", "0>3/sendrecv/0", [0, 1, 0]),
        ("all-to-all", "6>0/all-to-all/0", [1, 0, 0]),
        ("pipeline", "0>3/pipeline/0", [0, 1, 1]),
        ("pipeline", "3>6/pipeline/0", [0, 0, 1]),
    ],
)
def test_a_corrupted_byte_of_one_sender_is_found_at_its_receivers(kind: str, qp: str, spoiled: list[int]) -> None:
    wire = Wire(job(kind, 3, 300, 2).plan())
    wire.corrupt = {(qp, TAGS)}
    reports = wire.run()
    assert [wrong_bytes(told) for told in reports.values()] == [[0, count] for count in spoiled]


def test_qps_go_round_and_programs_touch_only_their_own() -> None:
    plan = StepJob((4, 5, 9), 1, (Exchange("allreduce", ALL, Terms(10)),)).plan()
    assert [(qp.id, qp.src, qp.dst) for qp in plan.qps] == [
        *(("4>5/allreduce/0", 4, 5), ("5>9/allreduce/0", 5, 9), ("9>4/allreduce/0", 9, 4))
    ]
    assert {qp.id for qp in plan.qps_of(5)} == {"4>5/allreduce/0", "5>9/allreduce/0"}
    assert plan.rank_of(9) == 2


@pytest.mark.parametrize("kind", ["allreduce", "reduce-scatter", "all-gather", "all-to-all"])
def test_a_step_never_uses_the_slots_of_the_step_before(kind: str) -> None:
    (collective,) = job(kind, 4, 4096).collectives[0]

    def slots(step: int) -> set[int]:
        return {op[-3] for op in collective.operations(0, step) if op[0] in ("put", "forward")}

    assert len(slots(0)) == collective.slots // 2
    assert not slots(0) & slots(1)
    assert slots(0) == slots(2)


@settings(deadline=None)
@given(st.integers(0, 1 << 40), st.integers(1, 64))
def test_parts_are_whole_and_as_equal_as_can_be(length: int, parts: int) -> None:
    found = [part(length, parts, number) for number in range(parts)]
    assert sum(one.length for one in found) == length
    assert [one.offset for one in found[1:]] == [one.offset + one.length for one in found[:-1]]
    assert max(one.length for one in found) <= -(-length // parts)


# Jobs


MIXED = (
    Compute(20_000),
    Exchange("allreduce", "tensor", Terms(900)),
    Exchange("pipeline", "pipeline", Terms(500, micro_batches=3, compute_ns=5_000)),
    Exchange("all-to-all", "data", Terms(600, qps=2)),
    Together(
        (
            Exchange("allreduce", ALL, Terms(1001)),
            Exchange("sendrecv", "tensor", Terms(700, message_bytes=64)),
            Compute(3_000),
        )
    ),
)
AXES = (("tensor", 2), ("pipeline", 2), ("data", 3))


@pytest.mark.parametrize("steps", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.nightly(keep=4)
def test_a_job_of_everything_is_right_in_every_group(steps: int, seed: int) -> None:
    made = StepJob(tuple(range(12)), steps, MIXED, 1, AXES)
    reports = run(made.plan(), seed=seed)
    assert all([report.step for report in told] == list(range(steps + 1)) for told in reports.values())
    assert set(wrong(reports)) == {0}
    sent = 6 * 2 * 900 + 6 * 3 * 500 + 4 * 2 * 600 + 2 * 11 * 1001 + 6 * 2 * 700
    assert sum(report.sent_bytes for told in reports.values() for report in told) == (steps + 1) * sent


def test_groups_differ_in_their_axis_only_and_neighbours_are_innermost() -> None:
    made = StepJob(tuple(range(100, 112)), 1, (), axes=AXES)
    assert [group.ranks for group in made.groups("tensor")] == [(n, n + 1) for n in range(0, 12, 2)]
    assert [group.ranks for group in made.groups("pipeline")][:3] == [(0, 2), (1, 3), (4, 6)]
    assert [group.ranks for group in made.groups("data")] == [(n, n + 4, n + 8) for n in range(4)]
    assert made.groups("data")[1].hosts == (101, 105, 109)
    assert [group.ranks for group in made.groups(ALL)] == [tuple(range(12))]


@pytest.mark.parametrize(("local", "nodes"), [("tensor", 6), ("pipeline", 6), ("data", 4)])
def test_an_all_to_all_leaves_what_stays_in_a_node(local: str, nodes: int) -> None:
    made = StepJob(tuple(range(12)), 3, (Exchange("all-to-all", ALL, Terms(1200), local=local),), axes=AXES)
    reports = run(made.plan(), seed=nodes)
    assert set(wrong(reports)) == {0}
    beyond = 12 - 12 // nodes
    assert {report.sent_bytes for told in reports.values() for report in told} == {beyond * 100}
    of_node = {rank: set(group.ranks) for group in made.groups(local) for rank in group.ranks}
    assert len(list(made.qps())) == 12 * beyond
    assert not [qp for qp in made.qps() if qp.dst in of_node[qp.src]]


def test_an_all_to_all_by_way_of_rails_sends_as_much_between_nodes() -> None:
    """Of a node with two NICs: chunks for rank j of another node go over the node's NIC j, by fewer and longer hops."""
    axes = (("rails", 2), ("nodes", 3))
    direct = StepJob(tuple(range(6)), 1, (Exchange("all-to-all", ALL, Terms(600), local="rails"),), axes=axes)
    relayed = StepJob(tuple(range(6)), 1, (Exchange("all-to-all", "nodes", Terms(600)),), axes=axes)
    assert [each[0].sent_bytes for each in (direct.collectives[0], relayed.collectives[0])] == [400, 400]
    assert [len(list(job.qps())) for job in (direct, relayed)] == [24, 12]
    assert all(qp.src % 2 == qp.dst % 2 for qp in relayed.qps())
    assert direct.step_ns(QUICKSTART) == pytest.approx(relayed.step_ns(QUICKSTART), rel=0.01)


def test_no_two_collectives_of_a_step_share_a_qp_or_a_place() -> None:
    made = StepJob(tuple(range(12)), 1, MIXED, axes=AXES)
    counts = Counter(qp.id for qp in made.qps())
    assert set(counts.values()) == {1}
    places = [(of_groups[0].place, of_groups[0].data_bytes) for of_groups in made.collectives]
    assert all(before[0] + before[1] == after[0] for before, after in pairwise(places))


def test_a_program_is_as_long_for_a_million_steps_as_for_two() -> None:
    short, long = (str(job("allreduce", 3, 99, steps).plan().programs[0]) for steps in (2, 1_000_000))
    assert len(long) < len(short) + 10


def test_branches_go_on_together() -> None:
    parts = (Together((Compute(50_000), Exchange("sendrecv", ALL, Terms(10)))),)
    reports = run(StepJob((0, 1), 4, parts).plan())
    alone = run(StepJob((0, 1), 4, parts[0].parts).plan())
    lasts = [max(told[-1].end_ns for told in each.values()) for each in (reports, alone)]
    assert 200_000 <= lasts[0] < lasts[1]


def test_who_waited_says_for_whom() -> None:
    plan = job("sendrecv", 3, 10, 3).plan()
    reports = run(plan, lazy=3)
    # h0 waits for h1, which is lazy, to take what it sent; h6 for what h1 sends.
    assert max(reports[6][1].waits, key=reports[6][1].waits.__getitem__) == "h3"
    assert all(set(report.waits) <= {"h3", "h6"} for report in reports[0])
    assert all(wait_ns > 0 for told in reports.values() for report in told for wait_ns in report.waits.values())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StepJob((0,), 1, (Exchange("allreduce", ALL, Terms(10)),)).plan(), "at least 2 hosts"),
        (lambda: StepJob((0, 1, 0), 1, (Exchange("allreduce", ALL, Terms(10)),)).plan(), "only once"),
        (lambda: job("allreduce", 3, 2).plan(), "allreduce over 3 ranks needs at least 3 bytes"),
        (lambda: job("all-to-all", 3, 2).plan(), "all-to-all over 3 ranks needs at least 3 bytes"),
        (lambda: job("sendrecv", 3, 0).plan(), "sendrecv over 3 ranks needs at least 1 bytes"),
        (lambda: job("sendrecv", 3, 1, steps=0), "at least 1 step"),
        (lambda: StepJob((0, 1, 2), 1, (), axes=(("data", 2),)), "do not hold 3 ranks"),
        (lambda: StepJob((0, 1), 1, (Exchange("sendrecv", "x", Terms(1)),)).plan(), "unknown axis 'x'"),
    ],
)
def test_impossible_jobs_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# Estimates


def test_a_ring_takes_its_phases_and_the_others_what_they_send() -> None:
    size = 1 << 20
    chunk = size // 8
    far = transfer_ns(QUICKSTART, chunk)
    near = far - 2 * port_ns(QUICKSTART, QUICKSTART.wire_bytes)  # one hop of eight stays below its T0
    expected = {
        "allreduce": 13 * far + near + answer_ns(QUICKSTART),
        "reduce-scatter": 7 * far + answer_ns(QUICKSTART),
        "all-gather": 7 * far + answer_ns(QUICKSTART),
        "sendrecv": transfer_ns(QUICKSTART, size) + answer_ns(QUICKSTART),
        "all-to-all": transfer_ns(QUICKSTART, 7 * chunk) + answer_ns(QUICKSTART),
        "pipeline": 7 * transfer_ns(QUICKSTART, size)
        + 2 * round(wire_ns(QUICKSTART, size))
        + 2 * answer_ns(QUICKSTART),
    }
    for kind, clean_ns in expected.items():
        made = job(kind, 8, size, 10, micro_batches=3)
        assert made.step_ns(QUICKSTART) == pytest.approx(clean_ns, rel=1e-6)
        assert made.clean_ns(QUICKSTART) == 10 * made.step_ns(QUICKSTART)


def test_each_hop_of_a_ring_has_its_own_way() -> None:
    far = transfer_ns(QUICKSTART, 1 << 17)
    near = far - 2 * port_ns(QUICKSTART, QUICKSTART.wire_bytes)
    for ranks, hops_ns in ((4, 3 * near), (8, 5 * near + 2 * far)):
        ring = Exchange("reduce-scatter", ALL, Terms(ranks << 17))
        step_ns = StepJob(tuple(range(ranks)), 1, (ring,)).step_ns(QUICKSTART)
        assert step_ns == pytest.approx(hops_ns + answer_ns(QUICKSTART), rel=1e-6)


def test_side_by_side_the_longest_decides_or_what_the_ports_can_carry() -> None:
    def step_ns(*parts: Any) -> int:
        return StepJob(tuple(range(8)), 1, parts).step_ns(QUICKSTART)

    one = Exchange("sendrecv", ALL, Terms(4 << 20))
    assert step_ns(Together((one, Compute(10**9)))) == 10**9
    assert step_ns(Together((one, Compute(1)))) == step_ns(one)
    assert step_ns(Together((one, one))) == pytest.approx(2 * wire_ns(QUICKSTART, 4 << 20), rel=1e-6)
