"""Packets that no endpoint sent make a run inconclusive, whatever they did to its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks import builtin
from mrc_testbed.testbed.checks.conservation import balance
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import NOBODY_SENT, Status
from mrc_testbed.testbed.checks.senders import SENT_AND_ARRIVED, surpluses_of
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.report.summary import summary_text
from tests.unit.checks.test_folder import HOSTS, RunFolder

PASS, FAIL, OPEN = Status.PASS, Status.FAIL, Status.INCONCLUSIVE
NIC = ("p0-t0-0", "down0")
"""Where the T0 hears h0."""


def counters_of(folder: RunFolder) -> dict[str, Any]:
    assert folder.counters is not None
    return folder.counters


def forge_at_h0(folder: RunFolder, packets: int = 5) -> RunFolder:
    """The T0 of h0 hears `packets` packets from it that its endpoint did not send; a rule drops them there."""
    node, port = NIC
    seen = {"rx_packets": packets, "in_control": packets, "in_control_dropped": packets}
    counters_of(folder)["ports"][node][port] |= seen
    return folder


def with_wrong_bytes(folder: RunFolder) -> RunFolder:
    folder.completions[-1][-1] = 4096
    return folder


def intact(verdict: Verdict) -> Status:
    (check,) = [check for check in verdict.checks if check.name == builtin.INTACT]
    return check.status


def test_wrong_bytes_alone_fail_a_run(tmp_path: Path) -> None:
    assert with_wrong_bytes(RunFolder()).judge(tmp_path).status is FAIL


@pytest.mark.parametrize("prepare", [lambda folder: folder, with_wrong_bytes])
def test_packets_that_no_endpoint_sent_make_a_run_inconclusive(tmp_path: Path, prepare: Any) -> None:
    verdict = forge_at_h0(prepare(RunFolder())).judge(tmp_path)
    assert verdict.status is OPEN
    assert intact(verdict) is OPEN
    told = f"machine: {NOBODY_SENT}: observed 5 packets, expected <= 0 packets"
    assert verdict.reason == f"{told}; NIC of h0: 5 high class packets too many (and 1 more)"


def test_packets_that_were_lost_without_a_fault_leave_wrong_bytes_a_fail(tmp_path: Path) -> None:
    folder = with_wrong_bytes(RunFolder())
    counters_of(folder)["hosts"]["h0"]["counters"]["packets_out"] = 5
    verdict = folder.judge(tmp_path)
    assert (verdict.status, verdict.fidelity.ok) == (FAIL, False)


def test_endpoints_that_were_given_more_than_was_sent_show_it_without_a_port_program(tmp_path: Path) -> None:
    folder = with_wrong_bytes(RunFolder().without_port_program())
    assert folder.judge(tmp_path).status is FAIL
    counters_of(folder)["hosts"]["h1"]["counters"] |= {"packets_in": 3}
    verdict = folder.judge(tmp_path)
    assert verdict.status is OPEN
    assert "packets of all hosts: 3 arrived, 0 were sent" in verdict.reason


def test_data_are_compared_by_the_host_that_they_were_sent_to(tmp_path: Path) -> None:
    """h1 had two packets more than h0 sent it, although five of those to h2 were lost."""
    folder = RunFolder().without_port_program()
    hosts = counters_of(folder)["hosts"]
    for name in HOSTS:
        hosts[name]["counters"] |= {"data_received": 0, "duplicates": 0, "trimmed_received": 0, "data_sent": 0}
    hosts["h0"]["counters"] |= {"data_sent": 20, "packets_out": 20}
    hosts["h0"]["paths"] = {"h1": {"0/0": 4, "1/0": 6}, "h2": {"0/1": 10}}
    hosts["h1"]["counters"] |= {"data_received": 10, "duplicates": 1, "trimmed_received": 1}
    hosts["h2"]["counters"] |= {"data_received": 5}
    surpluses = surpluses_of(load_record(folder.write(tmp_path)))
    assert surpluses is not None
    assert [str(one) for one in surpluses] == ["data packets to h1: 12 arrived, 10 were sent"]


@pytest.mark.parametrize(("what", "names"), SENT_AND_ARRIVED.items())
def test_every_kind_of_packet_arrives_no_more_often_than_it_was_sent(tmp_path: Path, what: str, names: Any) -> None:
    sent, arrived = names
    folder = RunFolder().without_port_program()
    for figures in counters_of(folder)["hosts"].values():
        figures["counters"] |= {sent: 1, **dict.fromkeys(arrived, 0), arrived[0]: 1}
    assert surpluses_of(load_record(folder.write(tmp_path))) == ()
    counters_of(folder)["hosts"]["h3"]["counters"][arrived[-1]] += 1
    (surplus,) = surpluses_of(load_record(folder.write(tmp_path))) or ()
    assert str(surplus).startswith(f"{what} of all hosts")


@pytest.mark.parametrize("spoil", [lambda hosts: hosts.pop("h2"), lambda hosts: hosts["h2"]["counters"].clear()])
def test_endpoints_are_compared_only_where_all_of_them_count(tmp_path: Path, spoil: Any) -> None:
    folder = RunFolder().without_port_program()
    counters_of(folder)["hosts"]["h1"]["counters"] |= {"packets_in": 3}
    spoil(counters_of(folder)["hosts"])
    assert surpluses_of(load_record(folder.write(tmp_path))) is None, "nothing was compared, so nothing is known"


def test_a_fault_with_code_of_its_own_may_copy_packets_on_its_links(tmp_path: Path) -> None:
    folder = forge_at_h0(RunFolder())
    counters_of(folder)["hosts"]["h1"]["counters"] |= {"packets_in": 3}
    record = load_record(folder.write(tmp_path))
    assert record.books is not None
    assert balance(record.plan, record.books, (), ()).from_nowhere
    excused = balance(record.plan, record.books, (), ("h0:p0-t0-0",))
    assert {str(gap) for gap in excused.from_nowhere} == {"sockets of h1: 3 packets too many"}
    assert balance(record.plan, record.books, ("h0:p0-t0-0",), ()).from_nowhere, "a cut copies nothing"


def test_the_summary_says_who_did_not_send_them_and_what_was_refused(tmp_path: Path) -> None:
    folder = forge_at_h0(RunFolder())
    usual = summary_text(folder.judge(tmp_path), load_record(tmp_path))
    assert f"{NOBODY_SENT} 5" in " ".join(usual.split())
    assert "refused" not in usual
    for host in ("h1", "h2"):
        counters_of(folder)["hosts"][host]["counters"] |= {"unknown_port": 2, "refused_wrong_qp": 1}
    text = " ".join(summary_text(folder.judge(tmp_path), load_record(tmp_path)).split())
    assert "refused 6 packets that fit no QP that was set up: 4 from an unknown port, 2 of another QP" in text
