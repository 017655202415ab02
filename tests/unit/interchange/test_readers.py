"""Files of others become flows, graphs and sizes; what they lose is told."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.program_io import StepReport
from mrc_testbed.testbed.interchange.chakra_graph import ChakraOptions, read_chakra
from mrc_testbed.testbed.interchange.collectives import NAMES
from mrc_testbed.testbed.interchange.distributions import read_sizes, size_lines
from mrc_testbed.testbed.interchange.fat_tree import FailedLink, FatTree, ports_of
from mrc_testbed.testbed.interchange.flow_lists import flow_lines, htsim_lines, read_flows
from mrc_testbed.testbed.interchange.found import FlowLine, Found
from mrc_testbed.testbed.interchange.goal import read_goal
from mrc_testbed.testbed.interchange.htsim import read_htsim
from mrc_testbed.testbed.interchange.text import FormatError
from mrc_testbed.testbed.workloads.graph import COMPUTE, SEND, Graph
from mrc_testbed.testbed.workloads.graph_job import GraphJob
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.names import host_name, link_name, switch_name
from tests.unit.interchange.foreign import (
    CHAIN_CM,
    FAILED_CM,
    GOAL,
    HPCC_FLOWS,
    INCAST_CM,
    OWN_FLOWS,
    RING_CM,
    SIZES,
    chakra,
    node,
    trace,
    written,
)
from tests.unit.workloads.wires import Wire


def graph_of(found: Found) -> Graph:
    assert found.graph is not None
    return found.graph


def ends_ns(graph: Graph) -> dict[int, int]:
    """When each operation ends where messages take no time, by position."""
    ends: dict[int, int] = {}
    for place in graph.ordered.order:
        one = graph.nodes[place]
        needed = [*one.after, *([graph.ordered.send_of[place]] if place in graph.ordered.send_of else [])]
        needed += [graph.ordered.behind[place]] if place in graph.ordered.behind else []
        ends[place] = max((ends[each] for each in needed), default=0) + (one.amount if one.kind == COMPUTE else 0)
    return ends


def runs(graph: Graph) -> list[list[int]]:
    """Bytes sent by each rank, by real interpreters; none is wrong."""
    reports = Wire(GraphJob(tuple(range(graph.ranks)), 1, (), graph=graph).plan()).run()
    found = [[one for one in reports[rank] if isinstance(one, StepReport)] for rank in range(graph.ranks)]
    assert all(not one.wrong_bytes for of_rank in found for one in of_rank)
    return [[one.sent_bytes for one in of_rank] for of_rank in found]


def test_a_matrix_without_triggers_is_a_list_of_flows(tmp_path: Path) -> None:
    found = read_htsim(written(tmp_path, "incast.cm", INCAST_CM))
    assert (found.nodes, found.used, found.total_bytes) == (8, (0, 1, 2, 3), 16384)
    assert found.flows[1] == FlowLine(2_000_000, 2, 0, 4096)
    assert found.lost == ()


def test_starts_may_be_in_microseconds_and_small_ones_are_doubted(tmp_path: Path) -> None:
    file = written(tmp_path, "incast.cm", INCAST_CM.replace("2000000", "2"))
    assert read_htsim(file, 10**6).flows[1].start_ps == 2_000_000
    assert any("starts at 2 ps" in line for line in read_htsim(file).lost)


def test_triggers_are_dependencies(tmp_path: Path) -> None:
    text = CHAIN_CM.replace("start 0 size 2000 send_done_trigger 1", "start 0 size 2000 send_done_trigger 1 msg 9")
    found = read_htsim(written(tmp_path, "ring.cm", text))
    graph = graph_of(found)
    assert [line.split(":")[0] for line in found.lost] == ["1 x size of messages", "1 x priority"]
    sends = {one.amount: (place, one) for place, one in enumerate(graph.nodes) if one.kind == SEND}
    assert (found.nodes, found.used) == (128, (34, 59, 96, 103))
    assert ends_ns(graph)[sends[500][0]] == 7000
    assert sum(one.kind == COMPUTE for one in graph.nodes) == 1


def test_a_trigger_of_another_node_comes_by_an_empty_message(tmp_path: Path) -> None:
    text = RING_CM.replace("59->34 id 6 trigger 4", "96->34 id 6 trigger 4")
    text = text.replace("size 2000\n", "size 2000 send_done_trigger 4\n")
    found = read_htsim(written(tmp_path, "ring.cm", text))
    assert any("trigger of another node" in line for line in found.lost)
    assert sum(one.kind == SEND and not one.amount for one in graph_of(found).nodes) == 1


def test_a_barrier_waits_for_all(tmp_path: Path) -> None:
    text = (
        "Nodes 4\nConnections 3\nTriggers 1\n0->2 id 1 start 1000000 size 5 recv_done_trigger 9\n"
        "1->2 id 2 start 3000000 size 5 recv_done_trigger 9\n2->3 id 3 trigger 9 size 7\n"
        "trigger id 9 barrier count 2\n"
    )
    graph = graph_of(read_htsim(written(tmp_path, "b.cm", text)))
    (last,) = [place for place, one in enumerate(graph.nodes) if one.kind == SEND and one.amount == 7]
    assert ends_ns(graph)[last] == 3000


def test_failed_links_are_those_of_a_fat_tree(tmp_path: Path) -> None:
    found = read_htsim(written(tmp_path, "f.cm", FAILED_CM))
    assert found.fat_tree
    assert found.fat_tree.links == ("p0-t1-0:p0-t2-1", "p0-t1-3:p0-t2-2")
    assert found.fat_tree.fabric == {"family": {"clos3": {"pods": 4, "t0": 2, "t1": 2, "t2": 4, "hosts_per_t0": 2}}}
    assert [line.partition(":")[0] for line in found.lost] == [
        "1 x failure of a link that the fat tree of 16 nodes lacks, or of a TOR or CORE"
    ]


@pytest.mark.parametrize("ports", [4, 6, 8, 16])
def test_every_link_of_the_fat_tree_is_one_of_ours(ports: int) -> None:
    half = ports // 2
    every = tuple(FailedLink(switch, link) for switch in range(ports * half) for link in range(half))
    tree = FatTree(ports_of(ports**3 // 4), every)
    ours = {
        link_name(switch_name(0, *one.lower), switch_name(0, *one.upper))
        for one in Clos3(ports, half, half, half * half, half).cables()
        if one.lower.tier == 1
    }
    assert tree.ports == ports
    assert len(set(tree.links)) == len(every)
    assert set(tree.links) == ours
    assert not tree.has(FailedLink(ports * half, 0))
    assert not tree.has(FailedLink(0, half))


@pytest.mark.parametrize("nodes", [15, 17, 128])
def test_failures_of_another_network_are_lost(tmp_path: Path, nodes: int) -> None:
    """With 15 and 17 nodes there is no fat tree; that of 128 has no link 9 of a switch."""
    text = FAILED_CM.replace("Nodes 16", f"Nodes {nodes}").replace("0->15", "0->14").replace("link_id 1", "link_id 9")
    found = read_htsim(written(tmp_path, "f.cm", text.replace("switch_id 3", "switch_id 99")))
    assert found.fat_tree is None
    assert found.lost[0].startswith("3 x failure of a link")


def test_flows_of_hpcc_begin_with_the_first(tmp_path: Path) -> None:
    found = read_flows(written(tmp_path, "flow.txt", HPCC_FLOWS))
    assert found.flows == (FlowLine(0, 0, 1, 1000), FlowLine(1_500_000, 1, 2, 2000), FlowLine(500 * 10**9, 2, 0, 3000))
    assert any("2 s before the first flow" in line for line in found.lost)


def test_own_flows_have_hosts_or_numbers(tmp_path: Path) -> None:
    found = read_flows(written(tmp_path, "flows.csv", OWN_FLOWS))
    assert found.flows == (FlowLine(1_500_000, 0, 2, 64), FlowLine(500 * 10**9, 1, 2, 4096, "a"))
    assert found.lost == ()


@pytest.mark.parametrize("name", ["Big One", "p99", "h4", "4s", "run", "trace", "a\u2028b", "x" * 64, "-"])
def test_a_name_that_expectations_cannot_use_is_lost(tmp_path: Path, name: str) -> None:
    found = read_flows(written(tmp_path, "flows.csv", OWN_FLOWS.replace(",a", f",{name}")))
    assert [flow.name for flow in found.flows] == ["", ""]
    assert found.lost[0].startswith("1 x name of a flow: names have lower-case letters")


def test_sizes_are_points(tmp_path: Path) -> None:
    found = read_sizes(written(tmp_path, "w.txt", SIZES))
    assert [tuple(point) for point in found.sizes] == [(0, 0), (10000, 15), (20000, 20), (30000000, 100)]
    assert list(size_lines(found.sizes)) == SIZES.splitlines()


_FLOWS = st.lists(
    st.builds(
        FlowLine,
        st.integers(0, 10**15),
        st.integers(0, 40),
        st.integers(0, 40),
        st.integers(1, 1 << 40),
        st.sampled_from(["", "", "small", "job-7"]),
    ).filter(lambda one: one.src != one.dst),
    min_size=1,
    max_size=20,
)


@given(_FLOWS)
@settings(max_examples=50, deadline=None)
def test_flows_come_back_from_both_forms(tmp_path_factory: pytest.TempPathFactory, raw: list[FlowLine]) -> None:
    folder = tmp_path_factory.mktemp("flows")
    flows = sorted(raw, key=lambda one: one.start_ps)
    csv = written(folder, "f.csv", "\n".join(flow_lines(flows, host_name)))
    assert list(read_flows(csv).flows) == flows
    matrix = written(folder, "f.cm", "\n".join(htsim_lines(flows, 41)))
    assert list(read_htsim(matrix).flows) == [flow._replace(name="") for flow in flows]


def test_goal_keeps_dependencies_and_cpus(tmp_path: Path) -> None:
    found = read_goal(written(tmp_path, "g.goal", GOAL))
    graph = graph_of(found)
    assert (found.nodes, found.used) == (3, (0, 1))
    assert sorted(ends_ns(graph).values()) == [0, 0, 1000, 2000, 2000, 2000, 2050]
    assert runs(graph) == [[4096], [8], [0]]


@pytest.mark.parametrize("said", ["from -1 tag 9", "from 1 tag -1", "from -1 tag -1"])
def test_a_recv_from_any_rank_is_read_where_one_alone_can_send(tmp_path: Path, said: str) -> None:
    exact = read_goal(written(tmp_path, "g.goal", GOAL))
    loose = read_goal(written(tmp_path, "any.goal", GOAL.replace("from 1 tag 9", said)))
    assert graph_of(loose).nodes == graph_of(exact).nodes


def test_recvs_from_any_rank_meet_the_sends_of_one_rank_in_order(tmp_path: Path) -> None:
    text = "num_ranks 2\nrank 0 {\na: recv 8b from -1\nb: recv 9b from 1\nc: recv 10b from -1\n}\n"
    text += "rank 1 {\nsend 8b to 0\nsend 9b to 0\nsend 10b to 0\n}\n"
    assert runs(graph_of(read_goal(written(tmp_path, "g.goal", text)))) == [[0], [27]]


def test_begin_of_a_begin_is_heeded(tmp_path: Path) -> None:
    text = "num_ranks 1\nrank 0 {\na: calc 5\nb: calc 5 cpu 1\nc: calc 5 cpu 2\nd: calc 1 cpu 3\n"
    text += "d irequires c\nc irequires b\nb requires a\n}\n"
    assert sorted(ends_ns(graph_of(read_goal(written(tmp_path, "g.goal", text)))).values()) == [5, 6, 10, 10]


def two_ranks(**second: bytes) -> dict[int, bytes]:
    first = trace(
        node(1, 4, us=5),
        node(2, 5, [1], comm_dst=1, comm_size=(7, 100), comm_tag=3),
        node(3, 4, [2], us=1, is_cpu_op=True),
    )
    return {0: first, 1: trace(node(1, 6, comm_src=0, comm_size=100, comm_tag=3), node(2, 4, [1], us=7, packed=False))}


def test_chakra_sends_and_recvs(tmp_path: Path) -> None:
    found = read_chakra(chakra(tmp_path, two_ranks()))
    assert sorted(ends_ns(graph_of(found)).values()) == [5000, 5000, 5000, 6000, 12000]
    assert runs(graph_of(found)) == [[100], [0]]


def test_chakra_may_be_packed(tmp_path: Path) -> None:
    for rank, content in two_ranks().items():
        (tmp_path / f"z.{rank}.et.gz").write_bytes(gzip.compress(content))
    assert graph_of(read_chakra(tmp_path / "z.1.et.gz")).ranks == 2


@pytest.mark.parametrize("kind", range(len(NAMES)))
@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
def test_every_collective_sends_what_it_must(tmp_path: Path, kind: int, ranks: int) -> None:
    content = trace(node(1, 4, us=1), node(2, 7, [1], comm_type=kind, comm_size=1000, root=1), node(3, 4, [2], us=1))
    graph = graph_of(read_chakra(chakra(tmp_path, dict.fromkeys(range(ranks), content))))
    sent = [one for (one,) in runs(graph)]
    name, total = NAMES[kind], sum(sent)
    if name == "all-reduce":
        assert total == 2 * (ranks - 1) * 1000
    elif name in ("all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"):
        assert total == (ranks - 1) * 1000
    elif name == "barrier":
        assert total == 2 * (ranks - 1) * ranks
    else:
        share = 1000 - 1000 // ranks
        assert abs(total - share) <= ranks
        assert bool(sent[1]) == (name == "scatter")


@pytest.mark.parametrize("kind", range(len(NAMES)))
def test_nobody_ends_a_collective_before_its_own_begin(tmp_path: Path, kind: int) -> None:
    late = 3
    content = {
        rank: trace(
            node(1, 4, us=100 if rank == late else 1), node(2, 7, [1], comm_type=kind, comm_size=64), node(3, 4, [2])
        )
        for rank in range(4)
    }
    graph = graph_of(read_chakra(chakra(tmp_path, content)))
    ends = ends_ns(graph)
    own = [place for place, one in enumerate(graph.nodes) if one.rank == late and one.line == 3]
    assert ends[own[0]] >= 100_000
    if NAMES[kind] in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "barrier"):
        assert all(ends[place] == 100_000 for place, one in enumerate(graph.nodes) if one.line == 3)


def test_the_size_of_an_all_gather_may_be_that_of_each_part(tmp_path: Path) -> None:
    file = chakra(tmp_path, dict.fromkeys(range(4), trace(node(2, 7, comm_type=2, comm_size=100))))
    assert read_chakra(file).total_bytes == 300
    assert read_chakra(file, ChakraOptions(each_gathers=True)).total_bytes == 1200


def test_groups_are_those_of_the_file(tmp_path: Path) -> None:
    contents = dict.fromkeys(range(4), trace(node(2, 7, comm_type=0, comm_size=100, pg_name="7")))
    file = chakra(tmp_path, contents | {2: trace(node(1, 4)), 3: trace(node(1, 4))})
    groups = written(tmp_path, "groups.json", '{"7": [1, 0]}')
    graph = graph_of(read_chakra(file, ChakraOptions(groups=groups)))
    assert {one.rank for one in graph.nodes if one.kind == SEND} == {0, 1}


def test_operations_take_what_the_peak_says(tmp_path: Path) -> None:
    file = chakra(tmp_path, {0: trace(node(1, 4, num_ops=3_000_000))})
    assert graph_of(read_chakra(file, ChakraOptions(ops_per_s=1e12))).nodes[0].amount == 3000
    with pytest.raises(FormatError, match="--peak-ops"):
        read_chakra(file)


def test_messages_of_one_tag_belong_together_as_the_file_has_them(tmp_path: Path) -> None:
    """The first send waits for the second: each has its own size."""
    text = "num_ranks 2\nrank 0 {\na: send 8b to 1\nb: send 9b to 1\na requires b\n}\n"
    text += "rank 1 {\nrecv 8b from 0\nrecv 9b from 0\n}\n"
    assert runs(graph_of(read_goal(written(tmp_path, "g.goal", text)))) == [[17], [0]]


@pytest.mark.parametrize(
    ("start", "unit_ps", "ps"), [("2.5", 10**6, 2_500_000), ("2e6", None, 2_000_000), ("0.0", None, 0)]
)
def test_starts_may_have_decimals_and_exponents(tmp_path: Path, start: str, unit_ps: int | None, ps: int) -> None:
    file = written(tmp_path, "incast.cm", INCAST_CM.replace("2000000", start))
    assert read_htsim(file, unit_ps).flows[1].start_ps == ps


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("0 0\n10000 0.15\n1000000 1\n", ("fractions up to 1: written as percent",)),
        ("0,0\n10000,15\n1000000,100\n", ()),
        ("0 1 0\n10000 2 15\n1000000 3 100\n", ()),
        ("430000\n0 0\n10000 15\n1000000 100\n", ()),
        ("5\n0 0\n10000 15\n1000000 100\n", ("mean of 5 bytes in the first line: that of the points is 430000",)),
    ],
)
def test_sizes_in_words_of_others(tmp_path: Path, text: str, lost: tuple[str, ...]) -> None:
    found = read_sizes(written(tmp_path, "x.cdf", text))
    assert list(size_lines(found.sizes)) == ["0 0", "10000 15", "1000000 100"]
    assert found.lost == lost


@pytest.mark.parametrize("between", [",", ";", "\t"])
def test_cells_may_have_quotes_and_other_signs_between(tmp_path: Path, between: str) -> None:
    rows = [["start_s", "src", "dst", "bytes", "name"], ["0.5", "h1", "h2", "4096", "a"], ["1", "h0", "h2", "64", ""]]
    text = "\n".join(between.join(f'"{cell}"' if cell else "" for cell in row) for row in rows)
    found = read_flows(written(tmp_path, "f.csv", text))
    assert [(flow.src, flow.bytes, flow.name) for flow in found.flows] == [(1, 4096, "a"), (0, 64, "")]
