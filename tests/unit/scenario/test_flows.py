"""Workloads of flows: what an author writes, what it comes down to, and what he is told when it is wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import load_scenario_text, scenario_json_schema
from mrc_testbed.testbed.workloads.flows import Flow
from mrc_testbed.topos.plan import build_plan
from tests.examples import examples
from tests.unit.scenario.test_mistakes import VALUES, mistakes

S = 10**9
HEAD = """\
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload:
"""
INCAST = "  - incast: {to: h2, from: [h0, h1], victims: [h3->h1], for: 4s}\n"


def flows(*entries: str) -> tuple[Flow, ...]:
    return load_scenario_text(HEAD + "".join(f"  - {entry}\n" for entry in entries)).flows.flows


def names(*entries: str) -> list[str]:
    return [flow.name for flow in flows(*entries)]


def test_a_write_is_one_flow_with_everything_usual() -> None:
    (only,) = flows("write: {from: h0, to: h2, for: 4s}")
    assert only == Flow(0, 2, 32 << 10, 1, 0, 4 * S, None, None, ("write",))


def test_every_key_of_a_flow_counts() -> None:
    (only,) = flows("write: {pairs: h0->h2, bytes: 1MiB, message: 4KiB, qps: 2, start: 1s, depth: 3, name: mine}")
    assert only == Flow(0, 2, 4096, 2, S, None, 1 << 20, 3, ("mine",))


def test_pairs_and_ways_back() -> None:
    assert names("write: {pairs: [h0->h2, h1 -> h3], for: 4s, bidirectional: true}") == [
        *("h0->h2", "h2->h0", "h1->h3", "h3->h1")
    ]


def test_a_permutation_goes_from_group_to_group() -> None:
    assert names("permutation: {for: 4s}") == ["h0->h2", "h1->h3", "h2->h0", "h3->h1"]
    one_group = HEAD.replace("t0_groups: 2", "t0_groups: 1") + "  - permutation: {for: 4s}\n"
    assert [flow.name for flow in load_scenario_text(one_group).flows.flows] == ["h0->h1", "h1->h0"]


def test_an_incast_has_senders_and_victims() -> None:
    scenario = load_scenario_text(HEAD + INCAST)
    assert [flow.name for flow in scenario.flows.named("incast")] == ["h0->h2", "h1->h2"]
    assert [flow.name for flow in scenario.flows.named("victims")] == ["h3->h1"]
    assert [flow.name for flow in scenario.flows.named("h3->h1")] == ["h3->h1"]
    assert scenario.flows.names == ("incast", "victims", "h0->h2", "h1->h2", "h3->h1")


def test_all_entries_are_one_job_and_hosts_that_do_nothing_take_no_part() -> None:
    text = HEAD + "  - write: {from: h0, to: h2, for: 4s}\n  - write: {from: h2, to: h3, for: 4s, start: 2s}\n"
    scenario = load_scenario_text(text)
    assert scenario.host_names == ("h0", "h2", "h3")
    assert scenario.estimate_ns == 6 * S + 80_000_000
    job = scenario.job.plan_job(build_plan(scenario.shape()))
    assert [qp.id for qp in job.qps] == ["h0->h2/0", "h2->h3/0"]


def test_a_training_job_has_no_flows_and_the_other_way_round() -> None:
    assert load_scenario_text(HEAD + INCAST).jobs == ()
    train = load_scenario_text("name: a\nworkload:\n  - train: {steps: 1, compute: 1s, allreduce: 1MiB}\n")
    with pytest.raises(ValueError, match="has no flows"):
        _ = train.flows


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("write: {from: h0, to: h9, for: 4s}", "s.yaml:4:27: workload.0.write.to: there is no host 'h9'; there are h0"),
        ("write: {from: gpu, to: h1, for: 4s}", "s.yaml:4:19: workload.0.write.from: there is no host 'gpu'"),
        ("write: {pairs: [h0->h2, h0->h9], for: 4s}", "s.yaml:4:29: workload.0.write.pairs.1: there is no host 'h9'"),
        ("write: {from: h0, to: h0, for: 4s}", "s.yaml:4:19: workload.0.write.from: h0 cannot send to itself"),
        ("write: {pairs: [h0->h1, h0 -> h1], for: 4s}", "pairs.1: h0->h1 is already in this entry; for more QPs"),
        ("write: {from: h0, for: 4s}", "workload.0.write: needs `from: h0, to: h4`, or `pairs:"),
        ("write: {from: h0, pairs: [h0->h1], for: 4s}", "has `pairs` and also `from` or `to`"),
        ("write: {pairs: [h0-h1], for: 4s}", "workload.0.write.pairs: 'h0-h1' is not a pair of hosts; write for exam"),
        ("write: {pairs: [h0->h1->h2], for: 4s}", "is not a pair of hosts"),
        ("write: {pairs: [], for: 4s}", "must be a list of pairs"),
        ("write: {from: h0, to: h1}", "workload.0.write: needs `for: 10s` or `bytes: 64MiB`, one of the two"),
        ("write: {from: h0, to: h1, for: 4s, bytes: 1MiB}", "one of the two"),
        ("write: {from: h0, to: h1, bytes: 0B}", "bytes: must be more than 0"),
        ("write: {from: h0, to: h1, for: 700ms}", "for: 700ms is too short: the first 400ms are not measured; at lea"),
        ("write: {from: h0, to: h1, for: 4s, message: 1GiB}", "message: 1GiB is outside 1B to 512MiB"),
        ("write: {from: h0, to: h1, for: 4s, message: 0B}", "message: 0B is outside"),
        ("write: {from: h0, to: h1, for: 4s, qps: 65}", "workload.0.write.qps: must be at most 64"),
        ("write: {from: h0, to: h1, for: 4s, depth: 0}", "workload.0.write.depth: must be at least 1"),
        ("write: {from: h0, to: h1, for: 4s, name: faults}", "'faults' is reserved in expectations"),
        ("write: {from: h0, to: h1, fro: 4s}", "unknown key 'fro'; did you mean 'from'?"),
        (
            "write: {pairs: [h0->h1, h2->h3], for: 4s, message: 16MiB, qps: 64}",
            "MiB of memory for data, the limit",
        ),
        ("incast: {to: h1, for: 4s}", "workload.0.incast: the key 'from' is missing; write for example `from: [h0,"),
        ("incast: {to: h1, from: [], for: 4s}", "from: must be one host or a list of hosts"),
        ("incast: {to: h1, from: [h0, h1], for: 4s}", "workload.0.incast.from.1: h1 cannot send to itself"),
        ("incast: {to: h1, from: [h0, h9], for: 4s}", "s.yaml:4:33: workload.0.incast.from.1: there is no host 'h9'"),
        ("incast: {to: h1, from: [h0], victims: [h2->h1], for: 4s}", "victims.0: goes to h1 itself, so it is no vict"),
        ("write: {from: h0, to: h1, for: 4s, name: victims}", "name: 'victims' are the victims of an incast; choose"),
        ("permutation:", "s.yaml:4:5: workload.0.permutation: permutation needs its keys, such as permutation: {for"),
        ("permutation: 3", "workload.0.permutation: must be a mapping of keys"),
        ("permuation: {for: 4s}", "unknown key 'permuation'; did you mean 'permutation'?"),  # codespell:ignore
        ("{write: {from: h0, to: h1, for: 4s}, permutation: {for: 4s}}", "has two kinds, write and permutation; write"),
        ("{}", "workload.0: has no workload kind; one of train, allreduce, reduce-"),
    ],
)
def test_a_mistake_has_its_place_and_plain_words(entry: str, says: str) -> None:
    told = mistakes(f"{HEAD}  - {entry}\n")
    assert any(says in line for line in told), told


def test_a_pair_in_two_entries_is_told_where_the_other_is() -> None:
    text = HEAD + "  - permutation: {for: 4s}\n  - write: {from: h0, to: h2, for: 4s}\n"
    (told,) = mistakes(text)
    assert told.startswith("s.yaml:5:19: workload.1.write.from: h0->h2 is already in workload.0")


def test_too_many_qps_are_refused() -> None:
    fabric = "fabric: {hosts_per_t0: 16, t1: 1, planes: 1, port_rate: 1mbit, rtt: 1ms}"
    text = f"name: a\n{fabric}\nworkload:\n  - permutation: {{for: 4s, message: 1KiB, qps: 33}}\n"
    (told,) = mistakes(text)
    assert "1056 QPs in all are more than 1024" in told


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("fair_share.min of victms >= 0.9", "s.yaml:6:23: expect.0: there are no flows named 'victms'; did you mean"),
        ("fair_share.min of h1->h0 >= 0.9", "there are no flows named 'h1->h0'; did you mean"),
        ("fair_share.min of >= 0.9", "expected h0->h4, the name of some flows, or each flow after `of`"),
        ("queue_drops of victims == 0", "queue_drops is only defined for the whole run; leave `of` out"),
        ("nacks of victims == 0", "nacks is not known by flow or job; write of h3 or each host"),
        ("nacks of h9 == 0", "s.yaml:6:14: expect.0: there is no host named 'h9'"),
        ("nacks of each flow == 0", "nacks is not known by flow"),
        ("fair_share.min of h2 == 0", "fair_share is not known by host; write of h0->h4"),
        ("goodput of h0 >= 1 mbit", "h0 receives nothing in this workload"),
        ("evs_retired of h1->h0 == 0", "there are no data 'h1->h0'; did you mean"),
        ("balance of each flow >= 0.9", "balance needs at least two flows"),
        ("wait_time.p50 of each host <= 1s", "wait_time is only defined for a job of steps"),
        ("balance of victims >= 0.9", "balance needs at least two flows, and this is one"),
        (
            "step_time.p50 <= 1s",
            "expect.0: step_time is only defined for a job of steps; this workload has",
        ),
        ("steps_done == 3", "steps_done is only defined for a job of steps"),
        ("flow_goodput.min >= 3", "give the bound a unit, such as 40 MiB/s, 300mbit or 0.95 line"),
        ("fair_share.p99 >= 0.9", "unknown statistic 'p99' of fair_share"),
    ],
)
def test_a_wrong_expectation_of_flows_is_told(line: str, says: str) -> None:
    told = mistakes(f"{HEAD}{INCAST}expect:\n  - {line}\n")
    assert any(says in one for one in told), told


@pytest.mark.parametrize("line", ["fair_share.min >= 0.9", "message_time.p50 <= 1s"])
def test_a_training_job_has_no_metrics_of_flows(line: str) -> None:
    text = f"name: a\nworkload:\n  - train: {{steps: 9, compute: 1s, allreduce: 1MiB}}\nexpect:\n  - {line}\n"
    assert "is only defined for flows; this workload has steps_done, step_time" in mistakes(text)[0]


def test_a_late_fault_is_held_against_the_duration_of_the_flows() -> None:
    text = HEAD + INCAST + 'faults:\n  - {at: 7s, link-down: "p0-t0-0:p0-t1-0", for: 1s}\n'
    (told,) = mistakes(text)
    assert "begins at 7s, but the workload takes about 4.1s in all" in told


def test_a_window_after_the_end_of_the_workload_is_refused_with_its_place() -> None:
    text = HEAD + INCAST + "expect:\n  - goodput > 0.5 line from 2s to 7s\n  - goodput > 0.5 line from 7s to 9s\n"
    late, later = mistakes(text)
    assert "expect.0: ends at 7s, but the workload takes about 4.1s in all" in late
    assert "expect.1: begins at 7s, but the workload takes about 4.1s in all" in later


def test_denials_are_held_against_the_hosts_that_send_and_receive() -> None:
    text = HEAD + "  - write: {from: h0, to: h2, for: 4s}\nendpoint: {denylist: [{path: p1, hosts: [h1]}]}\n"
    (told,) = mistakes(text)
    assert "h1" in told
    assert load_scenario_text(text.replace("[h1]", "[h0]")).flows.names == ("write", "h0->h2")


def test_every_kind_stands_in_the_json_schema() -> None:
    defined = scenario_json_schema()["$defs"]
    kinds = defined["WorkloadItem"]["properties"]
    assert {kind: schema["$ref"].rpartition("/")[2] for kind, schema in kinds.items()} == {
        **{kind: kind.capitalize() for kind in ("train", "programs", "write", "latency", "permutation", "incast")},
        **{"allreduce": "AllreduceEntry", "reduce-scatter": "ReduceScatterEntry", "all-gather": "AllGatherEntry"},
        **{"sendrecv": "SendRecvEntry", "poisson": "PoissonEntry"},
        **{"all-to-all": "AllToAllEntry", "pipeline": "PipelineEntry", "trace": "TraceEntry", "graph": "GraphEntry"},
    }
    assert defined["WorkloadItem"]["minProperties"] == defined["WorkloadItem"]["maxProperties"] == 1
    assert set(defined["Write"]["properties"]) == {
        *("from", "to", "pairs", "for", "bytes", "start", "message", "qps", "depth", "bidirectional", "warm_up", "name")
    }


PATHS = st.sampled_from(
    [
        *("workload", "workload.0", "workload.0.incast", "workload.1.write", "workload.1", "expect.0"),
        *(f"workload.0.incast.{key}" for key in ("to", "from", "from.0", "victims", "for", "message", "qps", "bytes")),
        *(f"workload.1.write.{key}" for key in ("from", "to", "pairs", "start", "bidirectional", "name")),
    ]
)


@settings(deadline=None, max_examples=examples(150))
@given(PATHS, VALUES)
def test_no_value_anywhere_raises_anything_but_scenario_errors(path: str, value: object) -> None:
    text = HEAD + INCAST + "  - write: {from: h1, to: h3, for: 4s}\nexpect: [fair_share.min >= 0.9]\n"
    told = ""
    try:
        load_scenario_text(text, overrides=[f"{path}={json.dumps(value)}"])
    except ScenarioError as error:
        told = str(error)
    assert "Input should" not in told
    assert "is not valid here" not in told
