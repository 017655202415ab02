"""Which jobs and flows go on where a failed QP has ended another."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.runner.going_on import GoingOn
from mrc_testbed.testbed.scenario import load_scenario_text

TWO = """
name: two
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}
workload:
  - allreduce: {hosts: [h0, h2], size: 1MiB, iterations: 3, warm_up: 0, name: job-a}
  - allreduce: {hosts: [h1, h3], size: 1MiB, iterations: 3, warm_up: 0, name: job-b}
  - write: {from: h0, to: h3, for: 4s, qps: 2}
"""


@pytest.fixture
def going_on() -> GoingOn:
    return GoingOn(load_scenario_text(TWO))


def failed(qp: str, peer: str) -> dict[str, object]:
    return {"event": "qp_error", "qp": qp, "peer": peer, "reason": "retries"}


def test_a_failed_qp_ends_its_own_job_alone(going_on: GoingOn) -> None:
    assert going_on.end_by("h1", failed("1>3/allreduce/0", "h3"))
    assert not going_on.end_by("h3", failed("3>1/allreduce/0", "h1")), "the other end reports the same death"
    assert going_on.dead == {"job-b"}
    assert going_on.waiting() == ["h0", "h2", "h3"]
    assert not going_on.alone(None)


def test_the_run_is_alone_when_the_last_step_and_the_last_message_of_the_others_are_there(going_on: GoingOn) -> None:
    going_on.end_by("h1", failed("1>3/allreduce/0", "h3"))
    for host, step in (("h0", 2), ("h2", 1)):
        going_on.take(host, {"event": "step", "step": step})
    going_on.take("h3", {"event": "received", "qp": "h0->h3/0", "last": 1})
    going_on.take("h3", {"event": "received", "qp": "h0->h3/1", "last": 0})
    assert going_on.waiting() == ["h2", "h3"]
    going_on.take("h2", {"event": "step", "step": 2})
    assert not going_on.alone(None)
    going_on.take("h3", {"event": "received", "qp": "h0->h3/1", "last": 1})
    assert going_on.alone(None)


def test_a_flow_is_a_thing_of_its_own(going_on: GoingOn) -> None:
    going_on.end_by("h3", failed("h0->h3/1", "h0"))
    assert going_on.dead == {"h0->h3"}
    assert going_on.waiting() == ["h0", "h1", "h2", "h3"]


def test_a_qp_of_nobody_ends_all(going_on: GoingOn) -> None:
    assert going_on.end_by("h9", failed("own", "h8"))
    assert going_on.alone(None)
