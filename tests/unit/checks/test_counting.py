"""Counters of a part of a run: snapshots come five times a second, and faults follow each other faster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.healing import healings
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.report.healing_facts import healing_rows
from tests.unit.checks.test_folder import HOSTS, LINK, SCENARIO, RunFolder, at, phase, snapshot

SECOND_LINK = "p1-t0-0:p1-t1-1"
TWO_FAULTS = SCENARIO.replace(
    f'  - {{at: 3500ms, link-down: "{LINK}", for: 1s, name: cut}}\n',
    f'  - {{at: 3s, link-down: "{LINK}", for: 500ms, name: first}}\n'
    f'  - {{at: 3800ms, link-down: "{SECOND_LINK}", for: 500ms, name: second}}\n',
)
"""With a base RTT of 25 ms their windows are 3 to 3.75 s and 3.8 to 4.55 s."""


def two_faults(lost: dict[float, int]) -> RunFolder:
    """`lost`: packets that h0 counted as lost up to a snapshot at this time."""
    folder = RunFolder(scenario=TWO_FAULTS)
    folder.history = [phase("verify", -2), {"t_ns": at(0), "op": "workload", "type": "invoke"}]
    for name, link, begin in (("first", LINK, 3.0), ("second", SECOND_LINK, 3.8)):
        same: dict[str, Any] = {"fault": name, "kind": "link-down", "target": link, "cycle": 0, "links": [link]}
        folder.history += [
            {"t_ns": at(when), "op": op, "type": kind, **same}
            for op, kind, when in (("inject", "invoke", begin), ("inject", "ok", begin), ("heal", "ok", begin + 0.5))
        ]
    folder.history += [{"t_ns": at(8.3), "op": "workload", "type": "ok"}, phase("settle", 9)]
    folder.events = [snapshot("h0", when, count) | {"lost": {"a": count}} for when, count in lost.items()]
    folder.events += [snapshot(host, when, 0) | {"lost": {}} for host in HOSTS[1:] for when in lost]
    assert folder.counters is not None
    for host in HOSTS:
        last = max(lost.values()) if host == "h0" else 0
        counters = {"lost_timeout": last, "lost_overtaken": 0, "retransmitted": last, "data_sent": 1000 + last}
        folder.counters["hosts"][host]["counters"] |= counters
        qp = {"peer": "h2", "sent": 900 if host == "h0" else 0, "lost": last}
        folder.counters["hosts"][host]["qps"] = {"a": qp}
    return folder.without_port_program()


def test_losses_that_may_be_those_of_the_fault_before_are_not_known(tmp_path: Path) -> None:
    """Nine packets were lost between 3.7 and 3.9 s: in the window of the first fault, or in that of the second."""
    folder = two_faults({2.9: 0, 3.1: 5, 3.7: 5, 3.9: 14, 4.5: 14, 4.7: 14, 7: 14})
    record = load_record(folder.write(tmp_path))
    asked = ask(record, "packets_lost during second")
    assert asked.value is None
    assert "between 0 and 9" in asked.why
    assert ask(record, "packets_lost").value == 14
    assert [one.losses.packets for one in healings(record)] == [None, None]
    assert [row.lost_per_qp for row in healing_rows(record)] == ["≤ 14", "≤ 9"]


@pytest.mark.parametrize(
    ("expected", "status"),
    [
        ("packets_lost <= 9 during second", Status.PASS),
        ("packets_lost >= 10 during second", Status.FAIL),
        ("packets_lost <= 8 during second", Status.INCONCLUSIVE),
        ("packets_lost == 4 during second", Status.INCONCLUSIVE),
        ("packets_lost != 4 during second", Status.INCONCLUSIVE),
        ("packets_lost == 10 during second", Status.FAIL),
        ("packets_lost >= 5 during first", Status.PASS),
        ("packets_lost <= 5 during first", Status.INCONCLUSIVE),
    ],
)
def test_a_bound_is_decided_where_both_ends_agree(tmp_path: Path, expected: str, status: Status) -> None:
    folder = two_faults({2.9: 0, 3.1: 5, 3.7: 5, 3.9: 14, 4.5: 14, 4.7: 14, 7: 14})
    folder.expect = [expected]
    assert folder.judge(tmp_path).checks[0].status is status


def test_snapshots_that_reach_into_another_fault_and_show_no_growth_leave_nothing_open(tmp_path: Path) -> None:
    folder = two_faults({2.9: 0, 3.1: 5, 3.7: 5, 3.9: 5, 4.1: 9, 4.5: 9, 4.7: 9, 7: 9})
    record = load_record(folder.write(tmp_path))
    assert ask(record, "packets_lost during second").value == 4
    assert ask(record, "packets_lost during first").value == 5
    assert [one.losses.packets for one in healings(record)] == [5, 4]
    assert [row.lost_per_qp for row in healing_rows(record)] == ["5", "4"]


def lost_at_edges() -> RunFolder:
    """Five packets are lost as the first fault begins, nine as the second one does, and four as that heals."""
    none = dict.fromkeys((3.1, 3.4, 3.6, 3.7, 3.76, 3.79), 5)
    return two_faults({2.9: 0, **none, 3.9: 14, 4.1: 14, 4.4: 18, 4.7: 18, 7: 18})


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("from second for 700ms", "between 4 and 13"),
        ("from second - 5ms to second + 800ms", "between 4 and 13"),
        ("from 3795ms to 4500ms", "between 4 and 13"),
        ("from first - 50ms to first + 800ms", "between 0 and 14"),
        ("before second", "between 0 and 9"),
        ("after first heals", "between 0 and 9"),
        ("after second heals", "between 0 and 4"),
        ("from 3600ms to 4300ms", "between 9 and 13"),
    ],
)
def test_losses_at_an_edge_of_a_window_of_times_may_be_of_a_fault(tmp_path: Path, words: str, known: str) -> None:
    asked = ask(load_record(lost_at_edges().write(tmp_path)), f"packets_lost {words}")
    assert asked.value is None
    assert known in asked.why


@pytest.mark.parametrize(
    ("words", "lost"),
    [
        ("from 3700ms to 3900ms", 9),  # snapshots on the edges
        ("from 4600ms to 7s", 0),
    ],
)
def test_losses_that_no_edge_of_a_window_of_times_cuts_are_known(tmp_path: Path, words: str, lost: int) -> None:
    assert ask(load_record(lost_at_edges().write(tmp_path)), f"packets_lost {words}").value == lost


@pytest.mark.parametrize(
    ("expected", "status"),
    [
        ("packets_lost == 0 before second", Status.INCONCLUSIVE),
        ("packets_lost <= 9 before second", Status.PASS),
        ("packets_lost >= 10 before second", Status.FAIL),
        ("packets_lost >= 4 from second for 700ms", Status.PASS),
        ("packets_lost >= 9 from second for 700ms", Status.INCONCLUSIVE),
        ("packets_lost == 0 after second heals", Status.INCONCLUSIVE),
    ],
)
def test_a_bound_of_a_window_of_times_is_decided_where_both_ends_agree(
    tmp_path: Path, expected: str, status: Status
) -> None:
    folder = lost_at_edges()
    folder.expect = [expected]
    assert folder.judge(tmp_path).checks[0].status is status


def test_losses_of_two_faults_together_are_known(tmp_path: Path) -> None:
    folder = two_faults({2.9: 0, 3.1: 5, 3.7: 5, 3.9: 14, 4.5: 14, 4.7: 14, 7: 14})
    assert ask(load_record(folder.write(tmp_path)), "packets_lost during faults").value == 14


def open_above() -> RunFolder:
    """All but four of the packets that h0 sent in the second window, and some of those it sent again, may be of the
    time before: perhaps it sent none for the first time."""
    lost = {2.9: 0, 3.1: 5, 3.7: 5, 3.9: 14, 4.1: 18, 4.5: 18, 4.7: 18, 7: 18}
    folder = two_faults(lost)
    for event in folder.events:
        since_ns = event["t_ns"] - at(3.9)
        sent = 0 if event["host"] != "h0" or since_ns < 0 else 104 if since_ns else 100
        event["counters"]["data_sent"] = sent
    return folder


def test_a_figure_without_an_upper_end_is_at_least_its_lower_one(tmp_path: Path) -> None:
    asked = ask(load_record(open_above().write(tmp_path)), "wasted during second")
    assert asked.value is None
    assert asked.why.endswith(": at least 0.04")


@pytest.mark.parametrize(
    ("expected", "status"),
    [
        ("wasted >= 0.04 during second", Status.PASS),
        ("wasted <= 0.03 during second", Status.FAIL),
        ("wasted >= 0.25 during second", Status.INCONCLUSIVE),
    ],
)
def test_a_bound_is_decided_without_an_upper_end(tmp_path: Path, expected: str, status: Status) -> None:
    folder = open_above()
    folder.expect = [expected]
    check = folder.judge(tmp_path).checks[0]
    assert check.status is status
    assert "itself failed" not in check.why
