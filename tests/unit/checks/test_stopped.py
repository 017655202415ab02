"""What the testbed stopped might have lasted longer: figures of what had ended by then alone are no figures."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.compare import check_expectation
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.metrics import measure
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.windows import KnownBetween
from mrc_testbed.testbed.expect import parse_expectation, parse_figure
from tests.unit.checks.test_ends import one_dies, stopped
from tests.unit.checks.test_flows import FlowFolder
from tests.unit.checks.test_folder import RunFolder, at
from tests.unit.checks.test_outage import watched

PASS, FAIL, OPEN = Status.PASS, Status.FAIL, Status.INCONCLUSIVE
TRACE = """\
name: trace
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload:
  - trace: {file: trace.csv}
expect:
"""


def status_of(record: RunRecord, text: str) -> Status:
    try:
        return check_expectation(record, parse_expectation(text)).status
    except KnownBetween:
        return OPEN


def stopped_flows() -> FlowFolder:
    """The last message of `h3->h1` is still under way at 9.5 s."""
    folder = FlowFolder()
    folder.rows = [row for row in folder.rows if row[1] != "h3->h1" or not row[-1]]
    folder.stop_at_limit()
    return folder


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("step_time.p100 of job-2 <= 3s", FAIL),  # its second step had lasted for 7.5 s
        ("step_time.p100 of job-2 <= 30s", OPEN),
        ("step_time.p100 of job-2 >= 3s", PASS),
        ("step_time.p100 of quick <= 3s", PASS),
        ("step_time.p100 of h3 <= 30s", OPEN),
        ("step_time.p100 of job-2 <= 3s from 0s to 3s", PASS),  # the first step alone
        ("goodput of job-2 >= 1B/s", OPEN),
        ("goodput of quick >= 1B/s", PASS),
    ],
)
def test_a_step_that_the_testbed_stopped_had_lasted_at_least_so_long(tmp_path: Path, text: str, status: Status) -> None:
    assert status_of(load_record(stopped().write(tmp_path)), text) is status


def test_the_step_of_a_job_that_died_is_no_step(tmp_path: Path) -> None:
    assert status_of(load_record(one_dies().write(tmp_path)), "step_time.p100 of job-2 <= 3s") is PASS


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("message_time.p100 of h3->h1 <= 1s", OPEN),
        ("message_time.p100 of h3->h1 >= 1ms", PASS),
        ("message_time.p100 of h0->h2 <= 1s", PASS),
        ("message_time.p100 of h3->h1 <= 1s before cut", PASS),
    ],
)
def test_messages_under_way_may_take_longer_than_all_that_were_done(tmp_path: Path, text: str, status: Status) -> None:
    assert status_of(load_record(stopped_flows().write(tmp_path)), text) is status


def test_bytes_under_way_are_not_yet_wasted(tmp_path: Path) -> None:
    folder = stopped_flows()
    assert folder.counters is not None
    for figures in folder.counters["hosts"].values():
        figures["counters"] |= {"bytes_sent": 110, "bytes_delivered": 100}
    record = load_record(folder.write(tmp_path))
    assert [status_of(record, f"wasted {bound}") for bound in ("<= 0.2", ">= 0.05", ">= 0.11")] == [PASS, OPEN, FAIL]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("stall.p100 >= 5s", PASS),
        ("stall.p100 <= 1s", FAIL),
        ("stall.p100 <= 30s", OPEN),
        ("stall.p100 of h2 <= 30s", PASS),
        ("stall.p100 <= 30s from 4s to 5s", PASS),
    ],
)
def test_a_stall_in_which_the_testbed_stopped_a_qp_lasted_at_least_so_long(
    tmp_path: Path, text: str, status: Status
) -> None:
    folder: RunFolder = watched(stalled={"a": at(3.6)})
    folder.completions = [row for row in folder.completions if row[1] < 3]
    folder.stop_at_limit()
    assert status_of(load_record(folder.write(tmp_path)), text) is status


def test_flows_that_had_begun_may_be_the_slowest(tmp_path: Path) -> None:
    """Of three flows one ended after 1 s, one had begun 8.5 s before the run was stopped, and one had not."""
    folder = FlowFolder(scenario=TRACE)
    (tmp_path / "trace.csv").write_text("start_s,src,dst,bytes\n0,h0,h2,1000000\n1,h0,h2,1000000\n9.9,h0,h2,1000000\n")
    folder.rows, folder.messages = [folder.row("h0->h2", 0.5)], []
    folder.history = [line for line in folder.history if "fault" not in line]
    folder.stop_at_limit()
    folder.write(tmp_path)
    row = f"h0,h0->h2,0,,1000000,{at(0)},{at(1)},{10**9},{10**8},10.0\n"
    header = "host,flow,number,name,bytes,begin_ns,end_ns,duration_ns,alone_ns,slowdown\n"
    (tmp_path / "flow_times.csv").write_text(header + row)
    record = load_record(tmp_path)
    texts = ("flow_time.max <= 5s", "flow_time.max <= 60s", "flow_time.min <= 2s", "slowdown.max <= 20")
    assert [status_of(record, text) for text in texts] == [FAIL, OPEN, PASS, OPEN]
    assert ask(record, "flow_time.max").why == "the testbed stopped 1 flow that had begun"
    assert judge(record).status is OPEN


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("job_died", [0], [1]), ("job_died of job-2", [0], [1]), ("unfinished", [0], [2]), ("unfinished of h1", [0], [1])],
)
def test_what_may_have_ended_well_counts_for_nothing_or_for_all(
    tmp_path: Path, text: str, least: list[float], most: list[float]
) -> None:
    with pytest.raises(KnownBetween, match="not finished within the time limit") as found:
        measure(load_record(stopped().write(tmp_path)), parse_figure(text))
    assert (found.value.least, found.value.most) == (least, most)


def test_messages_under_way_took_no_time_or_any(tmp_path: Path) -> None:
    record = load_record(stopped_flows().write(tmp_path))
    with pytest.raises(KnownBetween) as found:
        measure(record, parse_figure("message_time.p100 of h3->h1"))
    more = len(found.value.least) - 59
    assert more > 0
    assert (found.value.least[59:], found.value.most[59:]) == ([0] * more, [inf] * more)
    assert found.value.least[:59] == found.value.most[:59]
