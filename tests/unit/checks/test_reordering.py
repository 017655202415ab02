"""`out_of_order`: the share of data packets that came after one of a higher PSN, where endpoints can tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Status
from tests.unit.checks.test_folder import HOSTS, SCENARIO, RunFolder

ROCE = SCENARIO.replace("workload:", "transport: roce\nroce: {recovery: %s}\nworkload:")


def folder(scenario: str = SCENARIO, **counted: int) -> RunFolder:
    """Each host sends and takes in 100 data packets, but for what `counted` says."""
    made = RunFolder(scenario=scenario)
    assert made.counters is not None
    usual = {"data_sent": 100, "data_received": 100, "duplicates": 0, "reordered": 0, "out_of_order": 0}
    for host in HOSTS:
        made.counters["hosts"][host]["counters"] |= usual | counted
    return made.without_port_program()


def record_of(place: Path, made: RunFolder) -> RunRecord:
    return load_record(made.write(place))


def test_the_share_of_late_packets_of_all_and_of_a_receiver(tmp_path: Path) -> None:
    made = folder(reordered=10)
    assert made.counters is not None
    made.counters["hosts"]["h2"]["counters"]["reordered"] = 50
    record = record_of(tmp_path, made)
    assert ask(record, "out_of_order").value == 80 / 400
    assert ask(record, "out_of_order of h2").value == 0.5


def test_without_the_counter_it_is_unknown_and_not_0(tmp_path: Path) -> None:
    made = folder()
    assert made.counters is not None
    del made.counters["hosts"]["h1"]["counters"]["reordered"]
    found = ask(record_of(tmp_path, made), "out_of_order")
    assert (found.value, found.why) == (None, "h1 did not count reordered")


def test_where_nothing_came_it_is_unknown(tmp_path: Path) -> None:
    assert ask(record_of(tmp_path, folder(data_received=0)), "out_of_order").value is None


def test_mrc_leaves_out_what_is_sent_again(tmp_path: Path) -> None:
    assert ask(record_of(tmp_path, folder(data_sent=120, reordered=10)), "out_of_order").value == 0.1


@pytest.mark.parametrize(
    ("recovery", "counted", "share"),
    [
        ("lossless", {"reordered": 25, "out_of_order": 30}, 0.25),  # nothing was lost
        ("selective", {"data_sent": 130}, 0),  # nothing came late
        ("selective", {"data_sent": 104, "duplicates": 4, "reordered": 4}, 0.04),
        ("go-back-n", {"data_sent": 140, "out_of_order": 30, "duplicates": 10, "reordered": 1}, 0.01),
    ],
)
def test_roce_that_lost_nothing_knows_its_share(
    tmp_path: Path, recovery: str, counted: dict[str, int], share: float
) -> None:
    assert ask(record_of(tmp_path, folder(ROCE % recovery, **counted)), "out_of_order").value == share


@pytest.mark.parametrize(
    ("expected", "status"),
    [
        ("out_of_order <= 0.1", Status.PASS),
        ("out_of_order >= 0.08", Status.PASS),
        ("out_of_order > 0.1", Status.FAIL),
        ("out_of_order <= 0.09", Status.INCONCLUSIVE),
    ],
)
def test_roce_that_may_have_lost_some_of_the_late_ones_knows_bounds(
    tmp_path: Path, expected: str, status: Status
) -> None:
    """Of 40 late packets 8 may be those that were lost, two at each host."""
    made = folder(ROCE % "selective", data_sent=102, reordered=10)
    made.expect = [expected]
    assert made.judge(tmp_path).checks[0].status is status


def test_tcp_has_no_such_figure(tmp_path: Path) -> None:
    made = folder(SCENARIO.replace("workload:", "transport: tcp\nworkload:"))
    made.expect = ["out_of_order == 0"]
    assert made.judge(tmp_path).checks[0].status is Status.NOT_APPLICABLE
