"""Graphs of operations: read, matched, put in order, and done by real interpreters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.program import Program
from mrc_testbed.hosts.program_io import RankPrograms, StepReport
from mrc_testbed.testbed.workloads.graph import (
    COMPUTE,
    NO_STREAM,
    RECV,
    SEND,
    Graph,
    GraphError,
    GraphNode,
    graph_lines,
    read_graph,
)
from mrc_testbed.testbed.workloads.graph_job import GraphJob
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.shape import Shape
from tests.unit.workloads.wires import End, Wire

HEADER = '{"ranks": 2}'
SHAPE = Shape(2, Clos3(pods=2, t0=2, t1=2, t2=2, hosts_per_t0=2), 4_000_000, 60_000_000)


def drawn(seed: int, ranks: int = 3, size: int = 30) -> Graph:
    """A graph without circles: messages go from places above to places below."""
    rng = Random(seed)
    nodes: list[GraphNode] = []
    for _ in range(size):
        rank = rng.randrange(ranks)
        if rng.random() < 0.4:
            nodes.append(GraphNode(COMPUTE, rank, rng.randrange(3) * 1000, -1, rng.choice((NO_STREAM, 0, 1))))
        else:
            peer = rng.choice([one for one in range(ranks) if one != rank])
            amount, tag = rng.choice((0, 1, 700, 70_000)), len(nodes)
            nodes += [GraphNode(SEND, rank, amount, peer, tag), GraphNode(RECV, peer, amount, rank, tag)]
    for place, node in enumerate(nodes):
        above = [one for one in range(place) if nodes[one].rank == node.rank]
        after = sorted(rng.sample(above, min(len(above), rng.randrange(3))))
        nodes[place] = node._replace(after=tuple(after))
    return Graph(ranks, tuple(nodes))


def job_of(graph: Graph, steps: int = 1) -> GraphJob:
    return GraphJob(tuple(range(graph.ranks)), steps, (), graph=graph)


def as_read(graph: Graph) -> Graph:
    return read_graph(graph_lines(graph))


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_what_is_written_is_read_back(seed: int) -> None:
    graph = drawn(seed)
    back = as_read(graph)
    assert back.ranks == graph.ranks
    assert [node._replace(line=0) for node in back.nodes] == list(graph.nodes)
    assert [node.line for node in back.nodes] == list(range(2, 2 + len(back.nodes)))


@given(st.integers(0, 10_000), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_every_graph_is_done_and_every_byte_is_right(seed: int, steps: int) -> None:
    graph = drawn(seed)
    reports = Wire(job_of(graph, steps).plan(), seed).run()
    for rank, of_host in reports.items():
        found = [report for report in of_host if isinstance(report, StepReport)]
        assert [report.step for report in found] == list(range(steps))
        assert all(report.wrong_bytes == 0 for report in found)
        sent = sum(node.amount for node in graph.nodes if node.kind == SEND and node.rank == rank)
        assert [report.sent_bytes for report in found] == [sent] * steps


def test_a_byte_that_is_wrong_is_counted() -> None:
    graph = Graph(2, (GraphNode(SEND, 0, 9000, 1), GraphNode(RECV, 1, 9000, 0)))
    wire = Wire(job_of(graph).plan())
    wire.corrupt.add(("0>1/graph/0", 1))
    (report,) = wire.run()[1]
    assert isinstance(report, StepReport)
    assert report.wrong_bytes == 1


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_computations_end_when_the_longest_way_says(seed: int) -> None:
    """Alone on a rank, chains wait for each other by marks alone."""
    rng = Random(seed)
    nodes: list[GraphNode] = []
    ends: list[int] = []
    for place in range(12):
        after = tuple(sorted(rng.sample(range(place), min(place, rng.randrange(4)))))
        nodes.append(GraphNode(COMPUTE, 0, rng.randrange(1, 9), -1, NO_STREAM, after))
        ends.append(nodes[-1].amount + max((ends[one] for one in after), default=0))
    plan = job_of(Graph(1, tuple(nodes)), 2).plan()
    program = Program(RankPrograms(0, 7, plan.programs[0]), End(Wire(plan), 0))
    program.start(0)
    for now_ns in range(2 * max(ends) + 1):
        while (at_ns := program.advance(now_ns)) is not None and at_ns <= now_ns:
            pass
    first, second = program.poll_report(), program.poll_report()
    assert isinstance(first, StepReport)
    assert isinstance(second, StepReport)
    assert (first.begin_ns, first.end_ns, second.end_ns) == (0, max(ends), 2 * max(ends))


def test_computations_of_one_stream_follow_each_other() -> None:
    def step_ns(stream: int) -> int:
        nodes = tuple(GraphNode(COMPUTE, 0, 100, -1, stream) for _ in range(3))
        return job_of(Graph(1, nodes)).step_ns(SHAPE)

    assert (step_ns(NO_STREAM), step_ns(0)) == (100, 300)


def test_a_stream_never_makes_a_circle_with_messages() -> None:
    """Line 2 needs what rank 1 sends after it has heard of line 3, on the same stream."""
    nodes = (
        GraphNode(RECV, 0, 8, 1, 2),
        GraphNode(COMPUTE, 0, 5, -1, 0, (0,)),
        GraphNode(COMPUTE, 0, 5, -1, 0),
        GraphNode(SEND, 0, 8, 1, 1, (2,)),
        GraphNode(RECV, 1, 8, 0, 1),
        GraphNode(SEND, 1, 8, 0, 2, (4,)),
    )
    graph = as_read(Graph(2, nodes))
    assert graph.ordered.behind == {1: 2}
    Wire(job_of(graph).plan()).run()


def test_messages_of_a_pair_may_be_taken_in_any_order() -> None:
    """Rank 1 waits for the second message before it lets the first one matter."""
    nodes = (
        *(GraphNode(SEND, 0, 100 + tag, 1, tag) for tag in range(3)),
        GraphNode(RECV, 1, 102, 0, 2),
        GraphNode(RECV, 1, 100, 0, 0, (3,)),
        GraphNode(RECV, 1, 101, 0, 1, (4,)),
    )
    Wire(job_of(as_read(Graph(2, nodes)), 3).plan()).run()


def test_more_messages_than_a_qp_has_tags_take_another_qp() -> None:
    nodes = [GraphNode(SEND, 0, 1, 1) for _ in range(4096)] + [GraphNode(RECV, 1, 1, 0) for _ in range(4096)]
    sizes = {qp.id: qp.region_bytes for qp in job_of(Graph(2, tuple(nodes))).qps()}
    assert sizes == {"0>1/graph/0": 4095, "0>1/graph/1": 1}


def test_sends_share_a_chain_and_so_do_recvs_that_nobody_waits_for() -> None:
    nodes = [GraphNode(SEND, 0, 1, 1, tag) for tag in range(50)]
    nodes += [GraphNode(RECV, 1, 1, 0, tag) for tag in range(50)]
    plan = job_of(Graph(2, tuple(nodes))).plan()
    together = [next(one for one in tracks[0] if one[0] == "together") for tracks in plan.programs.values()]
    assert [len(one) - 1 for one in together] == [1, 1]


def line(**keys: Any) -> str:
    return json.dumps(keys)


A_SEND = line(id=0, rank=0, send=8, to=1)
A_RECV = '{"id": 1, "rank": 1, "recv": 8, "from": 0}'


def numbers(text: str) -> Iterator[str]:
    yield from text.split("\n")


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("", 1, 'lacks "ranks"'),
        ('{"ranks": 0}', 1, "from 1 to"),
        ('{"ranks": 2, "x": 1}', 1, "nothing else"),
        (f"{HEADER}\nnonsense", 2, "is no JSON object"),
        (f"{HEADER}\n[1]", 2, "is no JSON object"),
        (f"{HEADER}\n{'[' * 100_000}", 2, "is no JSON object"),
        (f"{HEADER}\n{line(id=0, rank=0)}", 2, "needs one of"),
        (f"{HEADER}\n{line(id=0, rank=0, send=1, compute_ns=1, to=1)}", 2, "needs one of"),
        (f"{HEADER}\n{line(id=0, rank=0, compute_ns=1, then=1)}", 2, 'unknown key "then"'),
        (f"{HEADER}\n{line(id=0, rank=2, compute_ns=1)}", 2, '"rank" must be a whole number from 0 to 1'),
        (f"{HEADER}\n{line(id=0, rank=0, compute_ns=1.5)}", 2, '"compute_ns" must be a whole number'),
        (f"{HEADER}\n{line(id=0, rank=0, compute_ns=-1)}", 2, '"compute_ns" must be'),
        (f"{HEADER}\n{line(rank=0, compute_ns=1)}", 2, 'lacks "id"'),
        (f"{HEADER}\n{A_SEND}\n{A_SEND}", 3, "the id 0 is that of line 2"),
        (f"{HEADER}\n{line(id=0, rank=0, send=8, to=0)}", 2, "sends nothing to itself"),
        (f"{HEADER}\n{line(id=0, rank=0, compute_ns=1, after=[1])}", 2, "names 1, which is no id"),
        (f"{HEADER}\n{line(id=0, rank=0, compute_ns=1, after=0)}", 2, "must be a list"),
        (f"{HEADER}\n{A_SEND}\n{line(id=2, rank=1, compute_ns=1, after=[0])}", 3, "an operation of rank 0, not of 1"),
        (f"{HEADER}\n{A_SEND}", 2, "the send from rank 0 to rank 1 with tag 0 has no recv"),
        (f"{HEADER}\n{A_RECV}", 2, "the recv from rank 0 to rank 1 with tag 0 has no send"),
        (f"{HEADER}\n{A_SEND}\n{A_RECV.replace('8', '9')}", 3, "the recv of 9 bytes meets a send of 8 in line 2"),
    ],
)
def test_a_broken_file_has_its_line_and_reason(text: str, where: int, says: str) -> None:
    with pytest.raises(GraphError, match=None) as found:
        read_graph(numbers(text))
    assert found.value.line == where
    assert says in str(found.value)


def test_operations_that_wait_for_each_other_are_named() -> None:
    lines = [
        HEADER,
        line(id=0, rank=0, compute_ns=1),
        '{"id": 1, "rank": 0, "recv": 8, "from": 1}',
        line(id=2, rank=0, send=8, to=1, after=[1]),
        '{"id": 3, "rank": 1, "recv": 8, "from": 0}',
        line(id=4, rank=1, send=8, to=0, after=[3]),
        line(id=5, rank=1, compute_ns=1, after=[4]),
    ]
    with pytest.raises(GraphError, match="lines 3, 4, 5, 6 wait for each other"):
        read_graph(lines)
