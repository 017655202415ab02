"""`mrc-testbed import`, and `export --to htsim`: what is written, what is told, and that both play the same flows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrc_testbed.testbed.scenario import load_scenario
from tests.unit.calls import Call
from tests.unit.interchange.foreign import (
    CHAIN_CM,
    FAILED_CM,
    GOAL,
    HPCC_FLOWS,
    INCAST_CM,
    OWN_FLOWS,
    SIZES,
    chakra,
    node,
    trace,
    written,
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_matrix_becomes_a_scenario_with_its_flows_beside_it(call: Call, here: Path) -> None:
    written(here, "incast.cm", INCAST_CM)
    ended = call("import", "incast.cm")
    assert ended.status == 0
    assert ended.out.startswith("incast.yaml: 3 flows between 4 of 8 nodes, 16384 bytes, from incast.cm (htsim).")
    assert "ms of virtual time" in ended.err
    scenario = load_scenario("incast.yaml")
    assert (scenario.name, scenario.shape().hosts, scenario.speed) == ("incast", 8, 8000)
    first, second, third = scenario.flows.flows
    assert (first.name, second.name, third.name) == ("h1->h0", "h2->h0", "h3->h0")
    assert [one.start_ns for one in second.arrivals] == [2000]


@pytest.mark.parametrize(
    ("name", "content", "first"),
    [
        ("own.csv", OWN_FLOWS, "2 flows"),
        ("flow.csv", HPCC_FLOWS, "3 flows"),
        ("g.goal", GOAL, "7 operations"),
    ],
)
def test_the_name_says_the_format(call: Call, here: Path, name: str, content: str, first: str) -> None:
    written(here, name, content)
    ended = call("import", name, "-o", "made.yaml")
    assert (ended.status, first in ended.out) == (0, True)
    assert load_scenario("made.yaml").name == "made"


def test_what_is_lost_is_told_and_in_the_scenario(call: Call, here: Path) -> None:
    written(here, "flow.txt", HPCC_FLOWS)
    ended = call("import", "flow.txt", "--from", "flows", "--json")
    told = json.loads(ended.out)
    assert (told["from"], told["flows"], told["used"], told["bytes"]) == ("flows", 3, 3, 6000)
    assert len(told["lost"]) == 2
    text = Path("flow.yaml").read_text(encoding="utf-8")
    comments = " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))
    assert all(line in comments for line in told["lost"])
    assert max(map(len, text.splitlines())) <= 120


def test_ranks_of_a_trace_are_named_by_any_of_them(call: Call, here: Path) -> None:
    chakra(here, dict.fromkeys(range(4), trace(node(1, 7, comm_type=0, comm_size=4096))))
    assert call("import", "t.2.et").status == 0
    assert load_scenario("t.yaml").jobs[0].host_names(load_scenario("t.yaml").shape()) == ("h0", "h1", "h2", "h3")


def test_a_distribution_becomes_flows_at_a_load(call: Call, here: Path) -> None:
    written(here, "web.cdf", SIZES)
    ended = call("import", "web.cdf")
    assert (ended.status, "4 points, up to 3e+07 bytes" in ended.out) == (0, True)
    assert Path("web.sizes.cdf").read_text() == SIZES
    flows = load_scenario("web.yaml").flows.flows
    sizes = [one.size for flow in flows for one in flow.arrivals]
    assert len(flows) > 20
    assert max(sizes) <= 30_000_000
    assert 0.1 < sum(size <= 20_000 for size in sizes) / len(sizes) < 0.3


def test_many_pairs_have_fewer_qps_each(call: Call, here: Path) -> None:
    pairs = [(src, dst) for src in range(24) for dst in range(24) if src != dst]
    rows = "".join(f"0,{src},{dst},100\n" for src, dst in pairs)
    written(here, "all.csv", f"start_s,src,dst,bytes\n{rows}")
    assert call("import", "all.csv").status == 0
    assert {flow.qps for flow in load_scenario("all.yaml").flows.flows} == {1}


def test_nodes_get_the_hosts_that_are_asked_for(call: Call, here: Path) -> None:
    written(here, "ring.cm", CHAIN_CM)

    def hosts(*options: str) -> list[str]:
        assert call("import", "ring.cm", "--force", *options).status == 0
        scenario = load_scenario("ring.yaml")
        return list(scenario.jobs[0].host_names(scenario.shape()))

    assert hosts() == ["h34", "h59", "h96", "h103"]
    assert hosts("--hosts", "used") == ["h0", "h1", "h2", "h3"]
    assert "4 take part" in Path("ring.yaml").read_text(encoding="utf-8")
    assert hosts("--hosts", "103=h0,34=h4,59=h1,96=h5") == ["h4", "h1", "h5", "h0"]


@pytest.mark.parametrize(
    ("hosts", "says"),
    [
        ("103=h0", "node 34 takes part and has no host"),
        ("103=h0,34=h0", "is there twice"),
        ("some", "must be same, used, or pairs"),
        ("103=h5000,34=h1,59=h2,96=h3", "is beyond h1023"),
    ],
)
def test_a_wrong_map_is_refused(call: Call, here: Path, hosts: str, says: str) -> None:
    written(here, "ring.cm", CHAIN_CM)
    ended = call("import", "ring.cm", "--hosts", hosts)
    assert (ended.status, says in ended.err) == (2, True)
    assert not Path("ring.yaml").exists()


def test_many_nodes_of_which_few_take_part_become_the_first_hosts(call: Call, here: Path) -> None:
    written(here, "big.cm", INCAST_CM.replace("Nodes 8", "Nodes 8192").replace("3->0", "8000->0"))
    ended = call("import", "big.cm")
    assert "lost: places of 8192 nodes: 4 take part, and become h0 to h3" in ended.out
    assert load_scenario("big.yaml").flows.flows[2].name == "h3->h0"


def test_failed_links_are_down_in_the_scenario(call: Call, here: Path) -> None:
    written(here, "f.cm", FAILED_CM)
    ended = call("import", "f.cm")
    assert (ended.status, "lost: 1 x failure of a link that the fat tree of 16 nodes lacks" in ended.out) == (0, True)
    scenario = load_scenario("f.yaml")
    (fault,) = scenario.occurrences
    assert (fault.fault, fault.cold, fault.targets) == ("failed-links", True, ("p0-t1-0:p0-t2-1", "p0-t1-3:p0-t2-2"))
    assert (scenario.shape().hosts, scenario.shape().family.word) == (16, "clos3")
    ended = call("import", "f.cm", "--hosts", "used", "-f")
    assert "lost: 2 x failure of a link: hosts are not where the nodes are" in ended.out
    assert not load_scenario("f.yaml").occurrences


def test_a_broken_file_writes_nothing(call: Call, here: Path) -> None:
    written(here, "incast.cm", INCAST_CM.replace("Nodes 8", "Nodes 3"))
    ended = call("import", "incast.cm")
    assert ended.status == 2
    assert "incast.cm: line 6: a node is '3'" in ended.err
    assert sorted(path.name for path in here.iterdir()) == ["incast.cm"]


def test_nothing_is_overwritten_unasked(call: Call, here: Path) -> None:
    written(here, "incast.cm", INCAST_CM)
    written(here, "incast.flows.csv", "mine")
    ended = call("import", "incast.cm")
    assert (ended.status, "incast.flows.csv: already exists" in ended.err) == (2, True)
    assert Path("incast.flows.csv").read_text() == "mine"
    assert not Path("incast.yaml").exists()
    assert call("import", "incast.cm", "-f").status == 0
    ended = call("import", "incast.cm", "-o", "incast.cm", "-f")
    assert (ended.status, "is what was read" in ended.err) == (2, True)


def test_what_cannot_run_is_said_at_once(call: Call, here: Path) -> None:
    """Four messages of 2 GiB: the hosts have no such memory."""
    text = "num_ranks 2\nrank 0 {\n" + "send 2147483648b to 1\n" * 4 + "}\nrank 1 {\n"
    written(here, "g.goal", text + "recv 2147483648b from 0\n" * 4 + "}\n")
    ended = call("import", "g.goal")
    assert (ended.status, "MiB of memory for data" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["file.bin"], "its name says no format"),
        (["fat.topo"], "is a topology of htsim, no workload"),
        (["nowhere.cm"], "there is no such file"),
        (["-"], "give the name of a file"),
        (["g.et", "--peak-ops", "-1"], "must be more than 0"),
    ],
)
def test_a_wrong_line_is_refused(call: Call, here: Path, words: list[str], says: str) -> None:
    ended = call("import", *words)
    assert (ended.status, says in ended.err) == (2, True)


def test_flows_go_there_and_back(call: Call, here: Path) -> None:
    written(here, "first.csv", "start_s,src,dst,bytes\n0,h0,h4,1000\n0.000001234,h1,h5,65536\n0.000002,h0,h4,7\n")
    assert call("import", "first.csv").status == 0
    ended = call("export", "first.yaml", "--to", "htsim", "--file", "back.cm")
    assert ended.status == 0
    assert Path("back.cm").read_text().splitlines()[2:] == [
        "0->4 id 1 start 0 size 1000",
        "1->5 id 2 start 1234000 size 65536",
        "0->4 id 3 start 2000000 size 7",
    ]
    assert call("import", "back.cm").status == 0
    assert Path("back.flows.csv").read_text() == Path("first.csv").read_text()
    assert call("export", "back.yaml", "--to", "flows", "--file", "again.csv").status == 0
    assert Path("again.csv").read_text() == Path("first.csv").read_text()


def test_names_of_flows_go_there_and_back(call: Call, here: Path) -> None:
    rows = "start_s,src,dst,bytes,name\n0,h0,h4,1000,big\n0.000001,h1,h5,65536,\n0.000002,h0,h4,7,small\n"
    written(here, "first.csv", rows)
    assert call("import", "first.csv").status == 0
    assert Path("first.flows.csv").read_text() == rows
    flows = load_scenario("first.yaml").flows
    assert {"big", "small"} <= set(flows.names)
    assert call("export", "first.yaml", "--to", "flows", "--file", "again.csv").status == 0
    assert Path("again.csv").read_text() == rows
    ended = call("export", "first.yaml", "--to", "htsim", "--file", "back.cm")
    assert "not in it: 2 x name of a flow" in ended.err


def test_flows_of_any_scenario_are_exported_and_the_rest_is_told(call: Call, here: Path) -> None:
    text = "name: mixed\nworkload:\n  - incast: {to: h4, from: [h0, h1], bytes: 1MiB, start: 1s}\n"
    text += "  - write: {from: h5, to: h6, for: 10s}\n"
    text += "  - train: {hosts: [h2, h3], steps: 2, compute: 1ms, allreduce: 1MiB}\n"
    written(here, "mixed.yaml", text + "faults:\n  - {at: 2s, link-down: 'h0:p0-t0-0', for: 1s}\n")
    ended = call("export", "mixed.yaml", "--to", "htsim", "--file", "-")
    assert ended.out.splitlines()[2:] == [
        "0->4 id 1 start 1000000000000 size 1048576",
        "1->4 id 2 start 1000000000000 size 1048576",
    ]
    assert "not in it: 1 x job of steps" in ended.err
    assert "not in it: 1 x fault" in ended.err
    assert "not in it: 1 x flow that ends after a time" in ended.err


def test_a_scenario_without_flows_has_nothing_to_export(call: Call, here: Path) -> None:
    file = written(here, "t.yaml", "name: t\nworkload:\n  - latency: {from: h0, to: h1, for: 9s}\n")
    ended = call("export", str(file), "--to", "flows")
    assert (ended.status, "has no flows with a number of bytes" in ended.err) == (2, True)
