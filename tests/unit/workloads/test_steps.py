"""Jobs of steps and latency: what an author writes, what it comes down to, and what he is told when it is wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import load_scenario_text, scenario_json_schema
from mrc_testbed.testbed.scenario.model.workloads import WORKLOAD_KINDS
from mrc_testbed.testbed.workloads.collective import Terms
from mrc_testbed.testbed.workloads.flows import Flow
from mrc_testbed.testbed.workloads.job import Tracks
from mrc_testbed.testbed.workloads.steps import ALL, COLLECTIVES, Compute, Exchange, Together
from mrc_testbed.topos.plan import build_plan
from tests.examples import examples
from tests.unit.scenario.test_mistakes import VALUES, mistakes

MS = 1_000_000
HEAD = """\
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload:
"""
TRAIN = """\
  - train:
      steps: 5
      warm_up: 1
      parallel: {tensor: 2, data: 2}
      step:
        - compute: 20ms
        - allreduce: {over: tensor, size: 1MiB, qps: 2, message: 4KiB}
        - pipeline: {size: 256KiB, micro_batches: 3, compute: 5ms}
        - together:
            - all-to-all: {over: data, size: 1MiB}
            - compute: 10ms
"""


def test_a_step_is_what_is_written() -> None:
    train = load_scenario_text(HEAD + TRAIN).jobs[0].entry
    assert train.parts == (
        Compute(20 * MS),
        Exchange("allreduce", "tensor", Terms(1 << 20, 2, 4096)),
        Exchange("pipeline", ALL, Terms(256 << 10, 1, 1 << 20, 3, 5 * MS)),
        Together((Exchange("all-to-all", "data", Terms(1 << 20)), Compute(10 * MS))),
    )
    assert (train.step_count, train.warm_up_count, train.total_steps) == (5, 1, 6)
    job = train.job(load_scenario_text(HEAD + TRAIN).shape())
    assert [group.ranks for group in job.groups("tensor")] == [(0, 1), (2, 3)]


def test_an_all_to_all_knows_which_ranks_are_one_node() -> None:
    text = HEAD + TRAIN.replace("over: data", "local: tensor")
    together = load_scenario_text(text).jobs[0].entry.parts[3]
    assert together == Together((Exchange("all-to-all", ALL, Terms(1 << 20), local="tensor"), Compute(10 * MS)))


@pytest.mark.parametrize("kind", sorted(COLLECTIVES))
def test_every_collective_stands_by_itself(kind: str) -> None:
    text = f"{HEAD}  - {kind}: {{hosts: [h3, h0], size: 2B, iterations: 20, warm_up: 2, qps: 3}}\n"
    train = load_scenario_text(text).jobs[0].entry
    batches = 4 if kind == "pipeline" else 1
    assert train.parts == (Exchange(kind, ALL, Terms(2, 3, micro_batches=batches)),)
    assert (train.step_count, train.total_steps) == (20, 22)
    assert load_scenario_text(text).ranks == ("h3", "h0")
    assert kind in WORKLOAD_KINDS


def test_a_collective_by_itself_warms_up_once_unless_told() -> None:
    text = HEAD + "  - sendrecv: {size: 1MiB, iterations: 3}\n"
    assert load_scenario_text(text).jobs[0].entry.total_steps == 4
    assert load_scenario_text(text.replace("iterations: 3", "iterations: 3, warm_up: 0")).jobs[0].entry.total_steps == 3


def test_the_estimate_is_of_all_steps_and_all_parts() -> None:
    scenario = load_scenario_text(HEAD + TRAIN)
    assert scenario.estimate_ns == 6 * scenario.jobs[0].steps(scenario.shape()).step_ns(scenario.shape())
    assert scenario.estimate_ns > 6 * (20 + 4 * 5 + 10) * MS


def test_flows_go_on_beside_a_job() -> None:
    text = HEAD + "  - allreduce: {hosts: [h1, h0], size: 8B, iterations: 3}\n  - write: {from: h0, to: h3, for: 4s}\n"
    scenario = load_scenario_text(text)
    assert scenario.host_names == ("h1", "h0", "h3")
    assert scenario.ranks == ("h1", "h0")
    assert scenario.estimate_ns == scenario.flows.estimate_ns(scenario.shape())
    plan = scenario.job.plan_job(build_plan(scenario.shape()))
    assert {host: len(tracks) for host, tracks in plan.programs.items()} == {0: 2, 1: 1, 3: 1}
    assert [plan.rank_of(host) for host in (1, 0, 3)] == [0, 1, 2]
    assert {qp.id for qp in plan.qps} == {"1>0/allreduce/0", "0>1/allreduce/0", "h0->h3/0"}


def test_latency_is_one_message_at_a_time() -> None:
    flows = load_scenario_text(
        HEAD + "  - latency: {pairs: [h0->h2], iterations: 100, warm_up: 7, bidirectional: true, name: ping}\n"
        "  - latency: {from: h1, to: h3, for: 1s, message: 64B}\n"
    ).flows.flows
    assert flows == (
        Flow(0, 2, 2, 1, 0, None, 214, 1, ("ping",), 0, 7, greedy=False),
        Flow(2, 0, 2, 1, 0, None, 214, 1, ("ping",), 0, 7, greedy=False),
        Flow(1, 3, 64, 1, 0, 10**9, None, 1, ("latency",), 0, 10, greedy=False),
    )
    assert flows[0].messages_of(0) == 107


def test_latency_takes_no_part_in_fair_shares_and_counts_round_trips() -> None:
    alone = load_scenario_text(HEAD + "  - write: {from: h0, to: h2, bytes: 8MiB}\n").estimate_ns
    text = HEAD + "  - write: {from: h0, to: h2, bytes: 8MiB}\n  - latency: {from: h0, to: h3, iterations: 20}\n"
    assert load_scenario_text(text).estimate_ns == alone
    long = load_scenario_text(text.replace("20}", "9990}")).estimate_ns
    assert 10_000 * 20 * MS < long < 10_000 * 25 * MS


@pytest.mark.parametrize("message", ["1B", "512MiB"])
def test_messages_may_be_short_or_long(message: str) -> None:
    text = f"{HEAD}  - write: {{from: h0, to: h2, bytes: 512MiB, message: {message}}}\n"
    assert load_scenario_text(text).flows.flows[0].message_bytes in (1, 512 << 20)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("data: 2}", "data: 3}", "s.yaml:7:17: workload.0.train.parallel: 2 x 3 is 6, and there are 4 hosts; the prod"),
        ("{tensor: 2, data: 2}", "[2, 2]", "parallel: must be a mapping of axes, innermost first, such as {tensor: 2,"),
        ("{tensor: 2, data: 2}", "{tensor: 4, data: 0}", "parallel.data: must be a whole number of at least 1"),
        ("{tensor: 2, data: 2}", "{Tensor: 4}", "'Tensor' is not the name of an axis, such as data"),
        ("{tensor: 2, data: 2}", "{tensor: 4, data: 1}", "along 'data' there is only one host; remove this entry"),
        (
            "over: data",
            "over: date",
            "step.3.together.0.all-to-all.over: unknown axis 'date'; did you mean 'data'?",
        ),
        ("over: data", "local: date", "together.0.all-to-all.local: unknown axis 'date'; did you mean 'data'?"),
        ("over: data", "over: data, local: tensor", "all-to-all.local: says which ranks of all hosts are one node;"),
        ("over: tensor", "local: tensor", "step.1.allreduce.local: unknown key 'local'"),
        (
            "{tensor: 2, data: 2}\n      step:",
            "{all: 4}\n      step:\n        - all-to-all: {local: all, size: 1MiB}",
            "step.0.all-to-all.local: along 'all' are all hosts: one node, which needs no network",
        ),
        ("over: tensor", "over: model", "step.1.allreduce.over: unknown axis 'model'; `parallel` has tensor, data"),
        ("      parallel: {tensor: 2, data: 2}\n", "", "unknown axis 'tensor'; `parallel` has none"),
        ("size: 1MiB, qps", "size: 1B, qps", "step.1.allreduce.size: 1B is less than a byte for each of 2 hosts"),
        ("size: 256KiB", "size: 0B", "s.yaml:11:28: workload.0.train.step.2.pipeline.size: 0B is less than 1B"),
        ("size: 256KiB, ", "", "s.yaml:11:11: workload.0.train.step.2.pipeline: the key 'size' is missing; write for"),
        (
            "- together:",
            "- together: []\n        - sendrecv: {size: 1B}\n        - together:",
            "together: must have at least one",
        ),
        ("message: 4KiB", "message: 0B", "step.1.allreduce.message: 0B is outside 1B to 512MiB"),
        ("qps: 2", "qps: 65", "step.1.allreduce.qps: must be at most 64"),
        ("micro_batches: 3", "micro_batches: 0", "pipeline.micro_batches: must be at least 1"),
        ("size: 256KiB, micro", "sise: 256KiB, micro", "unknown key 'sise'; did you mean 'size'?"),  # codespell:ignore
        ("- all-to-all", "- alltoall", "together.0.alltoall: unknown key 'alltoall'; did you mean 'all-to-all'?"),
        (
            "- compute: 20ms",
            "- {compute: 20ms, sendrecv: {size: 1B}}",
            "step.0.sendrecv: has two kinds, compute and se",
        ),
        ("- compute: 20ms", "- {}", "step.0: has no kind of step part; one of compute, allreduce, reduce-scatter"),
        ("- compute: 20ms", "- sendrecv:", "step.0.sendrecv: sendrecv needs its keys, such as sendrecv: {size: 64KiB}"),
        ("      steps: 5\n", "      steps: 5\n      compute: 1s\n", "has `step` and also `compute`; put that into `st"),
        ("      steps: 5\n", "", "s.yaml:4:5: workload.0.train: the key 'steps' is missing"),
        ("size: 256KiB", "size: 4GiB", "MiB of memory for data, the limit is 4096 MiB; use smaller sizes or messages"),
    ],
)
def test_a_mistake_in_a_step_has_its_place_and_plain_words(old: str, new: str, says: str) -> None:
    assert old in TRAIN
    told = mistakes(HEAD + TRAIN.replace(old, new, 1))
    assert any(says in line for line in told), told


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ("train: {steps: 3, compute: 1s}", "workload.0.train: the key 'allreduce' is missing; write for example `allr"),
        ("train: {steps: 3}", "workload.0.train: the key 'compute' is missing"),
        ("train: {steps: 3, step: []}", "workload.0.train.step: must have at least one part"),
        ("train: {steps: 3, compute: , allreduce: 4MiB}", "train.compute: has no value; write one, such as 100ms, or"),
        ("allreduce: {size: 4MiB}", "workload.0.allreduce: the key 'iterations' is missing; write for example `iter"),
        ("allreduce: {size: 3B, iterations: 3}", "workload.0.allreduce.size: 3B is less than a byte for each of 4"),
        ("allreduce: {size: 4B, iterations: 3, over: x}", "allreduce.over: unknown key 'over'"),
        ("sendrecv: {size: 4B, iterations: 3, hosts: [h0, h9]}", "sendrecv.hosts.1: there is no host 'h9'"),
        ("sendrecv: {size: 4B, iterations: 3, hosts: [h0, h0]}", "sendrecv.hosts.1: duplicate host h0"),
        ("all-to-all: {size: 1KiB, iterations: 1, qps: 64}\n  - write: {pairs: [h0->h1, h1->h0, h2->h3, h3->h2, "
         "h0->h2, h1->h3], for: 4s, qps: 64}", "workload: 1152 QPs in all are more than 1024"),
        ("pipeline: {size: 64B, micro_batches: 1024, iterations: 1, qps: 64}", "operations; the limit is 500000; use"),
        ("sendrecv: {size: 4B, iterations: 3}\n  - allreduce: {size: 4B, iterations: 3}",
         "s.yaml:5:16: workload.1.allreduce: h0 is already in the job of workload.0; give each job `hosts` of its own"),
        ("latency: {from: h0, to: h1}", "needs `for: 10s` or `iterations: 1000`, one of the two"),
        ("latency: {from: h0, to: h1, iterations: 3, qps: 2}", "latency.qps: unknown key 'qps'"),
        ("latency: {from: h0, to: h1, iterations: }", "latency.iterations: has no value; write one, such as 1000"),
        ("write: {from: h0, to: h1, for: 1s, depth: }", "write.depth: has no value; write one, such as 1, or"),
        ("write: {from: h0, to: h1, for: 1s, warm_up: 700ms}", "for: 1s is too short: the first 700ms are not"),
        ("write: {from: h0, to: h1, for: 4s, name: a}\n  - write: {from: h1, to: h0, for: 4s, name: a}",
         "s.yaml:5:46: workload.1.write.name: duplicate name 'a'; workload.0 has it"),
    ],
)  # fmt: skip
def test_a_mistake_in_an_entry_is_told(entries: str, says: str) -> None:
    told = mistakes(f"{HEAD}  - {entries}\n")
    assert any(says in line for line in told), told


def test_the_all_reduce_of_256_hosts_is_too_long_for_the_kernel_and_not_for_virtual_time() -> None:
    text = (
        "name: many\nfabric: {planes: 2, t0_groups: 16, t1: 2, hosts_per_t0: 16}\n"
        "workload:\n  - allreduce: {size: 64KiB, iterations: 1}\n"
    )
    (told,) = mistakes(text)
    assert told.startswith("s.yaml:4:16: workload.0.allreduce: the programs of all hosts would have 784384 operations")
    assert told.endswith("the limit is 500000; use fewer hosts, QPs or micro-batches, or `world: virtual`")
    assert len(load_scenario_text(f"world: virtual\n{text}").jobs) == 1


def test_programs_that_no_world_has_memory_for_are_refused_in_both() -> None:
    entry = "  - pipeline: {size: 64B, micro_batches: 1024, iterations: 1, qps: 64}\n"
    (told,) = mistakes(f"world: virtual\n{HEAD.replace('t0_groups: 2', 't0_groups: 4')}{entry}")
    assert told.endswith("the limit is 4000000; use fewer hosts, QPs or micro-batches")


def test_a_time_limit_without_a_value_is_refused() -> None:
    (told,) = mistakes(HEAD + "  - sendrecv: {size: 4B, iterations: 3}\ntime_limit:\n")
    assert "time_limit: has no value; write one, such as 2min, or leave the key out" in told


BESIDE = "  - sendrecv: {size: 4B, iterations: 3}\n  - write: {from: h0, to: h1, for: 4s}\n"
PING = "  - latency: {from: h0, to: h1, iterations: 3, name: ping}\n"


@pytest.mark.parametrize(
    ("entries", "line", "says"),
    [
        (BESIDE, "fair_share.min >= 0.9", "fair_share is not defined while a job of steps shares the ports"),
        (BESIDE, "latency.p50 <= 1s", "latency is only defined for `latency` entries"),
        (PING, "goodput >= 1 mbit", "goodput is only defined for flows that send without a pause"),
        (PING, "fair_share.min >= 0.9", "fair_share is only defined for flows that send without a pause"),
        (PING, "step_time.p50 <= 1s", "step_time is only defined for a job of steps"),
        (BESIDE, "nacks of write == 0", "nacks is not known by flow"),
    ],
)
def test_what_a_workload_does_not_have_is_refused(entries: str, line: str, says: str) -> None:
    told = mistakes(f"{HEAD}{entries}expect:\n  - {line}\n")
    assert any(says in one for one in told), told


@pytest.mark.parametrize("line", ["goodput > 0 mbit", "step_time.p50 <= 1s", "flow_goodput.min of write > 0 mbit"])
def test_side_by_side_both_kinds_have_their_metrics(line: str) -> None:
    assert load_scenario_text(f"{HEAD}{BESIDE}expect:\n  - {line}\n").expect


PATHS = st.sampled_from(
    [
        *("workload.0", "workload.0.train", "workload.1", "workload.1.latency", "workload.0.train.step.3.together"),
        *(f"workload.0.train.{key}" for key in ("steps", "warm_up", "hosts", "parallel", "parallel.data", "step")),
        *(f"workload.0.train.step.{key}" for key in ("0", "0.compute", "1", "1.allreduce", "3.together.0")),
        *(f"workload.0.train.step.1.allreduce.{key}" for key in ("over", "size", "qps", "message")),
        *(f"workload.0.train.step.2.pipeline.{key}" for key in ("micro_batches", "compute", "size")),
        *(f"workload.1.latency.{key}" for key in ("from", "to", "pairs", "iterations", "warm_up", "message", "for")),
    ]
)


@settings(deadline=None, max_examples=examples(150))
@given(PATHS, VALUES)
def test_no_value_anywhere_raises_anything_but_scenario_errors(path: str, value: object) -> None:
    text = HEAD + TRAIN + PING
    told = ""
    try:
        load_scenario_text(text, overrides=[f"{path}={json.dumps(value)}"])
    except ScenarioError as error:
        told = str(error)
    assert "Input should" not in told
    assert "is not valid here" not in told


def test_editors_are_told_that_no_key_may_be_null() -> None:
    assert "null" not in json.dumps(scenario_json_schema())


def test_programs_are_written_when_they_are_asked_for() -> None:
    written = []

    def write(host: int) -> list[list[list[object]]]:
        written.append(host)
        return [[["compute", host]]]

    tracks = Tracks([3, 1], write)
    assert (list(tracks), len(tracks), written) == ([3, 1], 2, [])
    assert tracks[1] == [[["compute", 1]]]
    assert written == [1]
    assert tracks.get(2) is None
