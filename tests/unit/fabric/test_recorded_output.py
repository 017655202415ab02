"""Everything that reads what `ip`, `tc`, tshark and /proc print, on recordings of several versions (tests/recorded)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric import capabilities, counters, readback, trials
from mrc_testbed.testbed.fabric.readback_queues import rows_wanted
from mrc_testbed.testbed.runner import fidelity
from mrc_testbed.testbed.runner.fidelity import MachineWatch
from tests.captures import every_vector, pcap
from tests.recorded import DISSECTED, ECMP_FABRICS, FABRICS, FOLDER, PLAN, Recording, named
from tests.tshark import parsed, read_fields

KINDS = ("broken", "plain", "program")
H1_QUEUE = ("p0-t0-0", "down1")
"""The port before h1 that the recording overfilled."""


@pytest.fixture(params=FABRICS, ids=named)
def recording(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Recording:
    recorded = Recording(request.param)
    for module in (readback, counters):
        monkeypatch.setattr(module, "query", recorded.query)
    _no_text(monkeypatch)
    return recorded


@pytest.fixture(params=sorted(FOLDER.glob("iproute2-*")), ids=lambda folder: folder.name)
def plain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Recording:
    recorded = Recording(request.param / "plain.json")
    monkeypatch.setattr(counters, "query", recorded.query)
    return recorded


def _no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that differs makes the reader ask for the JSON that was recorded."""
    monkeypatch.setattr(readback, "read_routes", lambda pids: dict.fromkeys(pids, "of another iproute2\n"))


def test_both_versions_of_each_tool_are_there() -> None:
    assert {named(path) for path in FABRICS} >= {
        f"iproute2-{version}/{k}" for version in ("6.1", "6.15") for k in KINDS
    }
    assert {path.parent.name for path in DISSECTED} >= {"tshark-4.0", "tshark-4.4"}


def test_what_was_recorded_is_as_planned(recording: Recording) -> None:
    readback.verify(recording.expected, recording.pids, PLAN.node_names)


Rows = Callable[[Recording], dict[str, set[tuple[str, ...]]]]


def held(recording: Recording) -> readback.Entries:
    return readback._entries_held(recording.expected, recording.pids)


@pytest.mark.parametrize(
    ("wanted", "held"),
    [
        (lambda r: readback._routes_wanted(r.expected, r.pids), lambda r: readback._routes_held(r.pids)),
        (lambda r: readback._ports_wanted(r.expected, r.pids), lambda r: readback._ports_held(held(r))),
        (lambda r: readback._neighbours_wanted(r.expected, r.pids), lambda r: readback._neighbours_held(held(r))),
        (
            lambda r: {node: set(rows_wanted(r.expected, node)) for node in r.pids},
            lambda r: readback._queues_held(r.expected, r.pids),
        ),
    ],
    ids=["routes", "ports", "neighbours", "queues"],
)
def test_the_rows_are_those_of_the_plan(recording: Recording, wanted: Rows, held: Rows) -> None:
    rows = held(recording)
    assert rows == wanted(recording)
    assert rows["h0"]


def test_a_switch_that_was_off_lost_its_table(recording: Recording) -> None:
    left = {node: readback.fib_size(PLAN, recording.pids, node) for node in ("p0-t0-0", "p1-t0-0")}
    assert left["p0-t0-0"] == 3 - sum(port.node == "p0-t0-0" for port in recording.expected.down)
    assert left["p1-t0-0"] == (0 if "p1-t0-0" in recording.expected.off else 3)


@pytest.mark.parametrize(
    ("table", "old", "new", "says"),
    [
        ("ip -6 -j route show table all", "encap.red", "encap", "h0 lacks route encap"),
        ("ip -6 -j route show table all", '"End.DT6"', '"End.DX6"', "h0 lacks route End.DT6"),
        ("ip -j link show", '"mtu":9000', '"mtu":1500', "h0 lacks port port0"),
        ("ip -6 -j neigh show nud permanent", "02:00:00", "02:00:01", "h0 lacks neighbour fe80::3e9"),
        ("tc -d -batch -", "ceil 25Mbit", "ceil 24Mbit", "h0 lacks shaper port0"),
    ],
    ids=["encapsulation", "decapsulation", "mtu", "neighbour", "rate"],
)
def test_a_drift_is_seen_in_each_form(
    plain: Recording, table: str, old: str, new: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readback, "query", plain.query)
    _no_text(monkeypatch)
    told = plain.answers[table]["h0"]
    assert old in told["stdout"]
    told["stdout"] = told["stdout"].replace(old, new)
    with pytest.raises(FabricError, match=says):
        readback.verify(plain.expected, plain.pids, ["h0"])


def test_doctor_finds_in_the_routes_what_it_looks_for(recording: Recording) -> None:
    shown = "".join(recording.query(["ip", "-6", "route", "show"], recording.pids).values())
    expects = [test.expect for test in trials.KERNEL_TESTS if test.commands[-1] == "ip -6 route show"]
    assert len(expects) == 3
    assert [expect for expect in expects if expect not in shown] == []


@pytest.fixture(params=ECMP_FABRICS, ids=named)
def ecmp(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Recording:
    recorded = Recording(request.param)
    monkeypatch.setattr(readback, "query", recorded.query)
    _no_text(monkeypatch)
    return recorded


def test_routes_with_several_next_hops_are_as_planned(ecmp: Recording) -> None:
    readback.verify(ecmp.expected, ecmp.pids, ecmp.plan.node_names)
    shown = "".join(ecmp.query(["ip", "-6", "route", "show"], ecmp.pids).values())
    (expect,) = [test.expect for test in trials.KERNEL_TESTS if test.name == capabilities.MULTIPATH]
    assert expect.rpartition(" ")[0] in shown


@pytest.mark.parametrize(
    ("table", "old", "new", "says"),
    [
        ("ip -6 -j route show table all", '"weight":1', '"weight":2', "p1-t0-1 lacks route via fd00:1:1::/48 up"),
        ("ip -6 -j route show table all", '"type":"blackhole"', '"type":"local"', "p1-t0-1 lacks route blackhole"),
        ("cat", "1\n1\n1\n", "1\n1\n0\n", "p1-t0-1 lacks setting .*hash_policy 1"),
    ],
    ids=["weight", "blackhole", "hash policy"],
)
@pytest.mark.nightly(keep=2)
def test_a_drift_of_a_choice_is_seen(ecmp: Recording, table: str, old: str, new: str, says: str) -> None:
    (told,) = [answers["p1-t0-1"] for asked, answers in ecmp.answers.items() if asked.startswith(table)]
    assert old in told["stdout"]
    told["stdout"] = told["stdout"].replace(old, new)
    with pytest.raises(FabricError, match=says):
        readback.verify(ecmp.expected, ecmp.pids, ["p1-t0-1"])


@pytest.fixture
def proc(plain: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    """What was recorded of /proc, where the readers of nodes look."""
    for node, files in plain.proc.items():
        for name, text in files.items():
            path = tmp_path / node / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    monkeypatch.setattr(counters, "open_of", lambda pid, node, name: os.open(tmp_path / node / name, os.O_RDONLY))
    machine = tmp_path / "machine" / "proc"
    # Of Linux 6.18; the recordings are older than what reads it.
    (machine / "stat").write_text(
        "cpu  17534 0 8630 113151 759 0 2716 2514 0 0\ncpu0 8800 0 4300 56600 380 0 1350 1260 0 0\n"
    )
    monkeypatch.setattr(fidelity, "_PRESSURE", machine / "pressure/cpu")
    monkeypatch.setattr(fidelity, "Path", lambda name: _placed(str(name), tmp_path))
    return plain


def _placed(name: str, root: Path) -> Path:
    return root / "h0/schedstat" if name.endswith("/schedstat") else root / "machine" / name.lstrip("/")


def test_what_queues_sent_is_what_interfaces_sent(proc: Recording) -> None:
    queues = counters.queue_counters(proc.pids)
    ports = counters.PortCounters(proc.pids)
    sent = {(node, port): packets for node, port, *_, packets, _ in ports.read()}
    ports.close()
    assert {(own.node, own.name) for pairs in PLAN.ports.values() for own, _ in pairs} == set(sent)
    assert {(node, port): row["sent_packets"] for node, rows in queues.items() for port, row in rows.items()} == sent
    assert sent["h0", "port0"] > 300


def test_what_a_queue_dropped_is_what_did_not_pass(proc: Recording) -> None:
    """300 datagrams were sent, 100 of them in the high class; a few packets of the kernel's own may be among them."""
    row = counters.queue_counters(proc.pids)[H1_QUEUE[0]][H1_QUEUE[1]]
    assert 300 <= row["sent_packets"] + row["drops"] <= 310
    assert 0 < row["control_drops"] < 100
    assert 0 < row["drops"] - row["control_drops"] < 200


def test_what_reached_a_host_reached_no_socket(proc: Recording) -> None:
    losses = counters.udp_losses(proc.pids)
    passed = counters.queue_counters(proc.pids)[H1_QUEUE[0]][H1_QUEUE[1]]["sent_packets"]
    assert passed - 10 <= losses["h1"][1] <= passed
    assert losses["h0"] == (0, 0)


def test_the_machine_watch_reads_the_kernels_files(proc: Recording) -> None:
    watch = MachineWatch({"h0": 1})
    assert watch._pressure == int(proc.proc["machine"]["/proc/pressure/cpu"].split("total=")[1].split()[0])
    assert watch._waited == {"h0": int(proc.proc["h0"]["schedstat"].split()[1])}
    assert watch._cpu_ticks == (17534 + 8630 + 2716 + 2514, 2514)
    assert watch.figures()["run_delay"] == {"h0": 0.0}


@pytest.mark.parametrize("path", DISSECTED, ids=named)
def test_each_tshark_is_read_as_wire_parses(path: Path, tmp_path: Path) -> None:
    assert read_fields(path.read_text()) == parsed(pcap(tmp_path / "vectors.pcap", every_vector()))
