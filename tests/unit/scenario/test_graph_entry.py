"""The workload `graph`: its file beside the scenario, its hosts, and every mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import Scenario, load_scenario
from mrc_testbed.testbed.workloads.graph_job import GraphJob

PAIR = """\
{"ranks": 2}
{"id": 0, "rank": 0, "compute_ns": 5000000}
{"id": 1, "rank": 0, "send": 65536, "to": 1, "after": [0]}
{"id": 2, "rank": 1, "recv": 65536, "from": 0}
"""
SCENARIO = """\
name: graphed
world: virtual
workload:
  - graph: {file: pair.jsonl, hosts: [h4, h0]}
"""


def loaded(folder: Path, *changes: str, graph: str = PAIR) -> Scenario:
    (folder / "pair.jsonl").write_text(graph, encoding="utf-8")
    (folder / "my.yaml").write_text(SCENARIO, encoding="utf-8")
    return load_scenario(folder / "my.yaml", changes)


def mistake(folder: Path, *changes: str, graph: str = PAIR) -> str:
    with pytest.raises(ScenarioError) as caught:
        loaded(folder, *changes, graph=graph)
    (only,) = caught.value.problems
    return f"{only.line}: {only.path}: {only.message}"


def job_of(scenario: Scenario) -> GraphJob:
    job = scenario.jobs[0].steps(scenario.shape())
    assert isinstance(job, GraphJob)
    return job


def test_ranks_are_the_hosts_in_their_order(tmp_path: Path) -> None:
    scenario = loaded(tmp_path)
    assert [(qp.src, qp.dst, qp.region_bytes) for qp in job_of(scenario).qps()] == [(4, 0, 65536)]
    assert scenario.jobs[0].host_names(scenario.shape()) == ("h4", "h0")


def test_without_hosts_ranks_are_the_first_ones(tmp_path: Path) -> None:
    text = SCENARIO.replace(", hosts: [h4, h0]", "")
    (tmp_path / "pair.jsonl").write_text(PAIR)
    (tmp_path / "my.yaml").write_text(text)
    assert job_of(load_scenario(tmp_path / "my.yaml")).hosts == (0, 1)


def test_computations_are_stretched_and_scaled(tmp_path: Path) -> None:
    def compute_ns(*changes: str) -> int:
        program = job_of(loaded(tmp_path, *changes)).plan().programs[4][0]
        together = next(one for one in program if one[0] == "together")
        return int(next(one[1] for branch in together[1:] for one in branch if one[0] == "compute"))

    assert compute_ns() == 5_000_000
    assert compute_ns("workload.0.graph.stretch=4") == 20_000_000
    assert compute_ns("workload.0.graph.stretch=8", "scale=1000") == 40_000


def test_the_file_is_copied_and_known_by_its_hash(tmp_path: Path) -> None:
    assert loaded(tmp_path).data_files["pair.jsonl"].content == PAIR.encode()


@pytest.mark.parametrize(
    ("changes", "graph", "says"),
    [
        ([], PAIR.replace('"to": 1', '"to": 5'), 'file: pair.jsonl:3: "to" must be a whole number from 0 to 1'),
        ([], PAIR.replace("65536}", "1}").replace('"from": 0', '"from": 0, "tag": 3'), "tag 0 has no recv"),
        (["workload.0.graph.file=../pair.jsonl"], PAIR, "is outside the folder"),
        (["workload.0.graph.file=pairs.jsonl"], PAIR, "there is no file"),
        (["workload.0.graph.hosts=[h0, h1, h2]"], PAIR, "hosts: pair.jsonl has 2 ranks, and there are 3 hosts"),
        (["workload.0.graph.hosts=[h0, h99]"], PAIR, "h99"),
        (["workload.0.graph.iterations=0"], PAIR, "iterations"),
        (["workload.0.graph.stretch=0"], PAIR, "stretch: must be a number from 1e-9 to 1e9"),
        ([], PAIR.replace("65536", str(1 << 33)), "MiB of memory for data"),
    ],
)
def test_a_mistake_has_its_place(tmp_path: Path, changes: list[str], graph: str, says: str) -> None:
    assert says in mistake(tmp_path, *changes, graph=graph)
