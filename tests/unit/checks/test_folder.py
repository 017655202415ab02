"""Hand-made run folders: a clean run of a small scenario, to be spoiled by each test; and the record they read as."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.rundir.files import RecordError
from mrc_testbed.testbed.rundir.tables import PortSample
from mrc_testbed.testbed.switching.port_counts import PortCounts
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan

SECOND = 10**9
RTT_NS = 25_000_000
START_NS = 1_000 * SECOND
HOSTS = ("h0", "h1", "h2", "h3")
SNAPSHOT = '{"event": "snapshot", "t_ns": 1, "host": "h0", "counters": {}, %s}\n'
LINK = "p0-t0-0:p0-t1-1"
SCENARIO = f"""\
name: small
about: A link goes down.
fabric: {{planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}}
workload:
  - train: {{steps: 8, compute: 100ms, allreduce: 2MiB}}
faults:
  - {{at: 3500ms, link-down: "{LINK}", for: 1s, name: cut}}
expect:
"""
THREE_TIERS = SCENARIO.replace(
    "t0_groups: 2, t1: 2, hosts_per_t0: 2", "family: {clos3: {pods: 2, t0: 1, t1: 2, t2: 2, hosts_per_t0: 2}}"
)
"""The same hosts on T0s of two pods."""
PLAN = build_plan(clos2_shape(2, 2, 2, 2, 25_000_000, 20_000_000))


def no_packets(node: str) -> dict[str, int]:
    """The books of a port that saw none."""
    counted = [each.name for each in fields(PortCounts) if node not in HOSTS or each.name.startswith("in_")]
    return dict.fromkeys((*counted, "rx_packets", "tx_packets", "queue_drops_high", "queue_drops_data"), 0)


def at(seconds: float) -> int:
    """A time counted from the start of the workload, on the machine's clock."""
    return START_NS + round(seconds * SECOND)


@dataclass
class RunFolder:
    """The files of a run as Python data; `write` puts them on disk. The slowest steps are those under the fault."""

    expect: list[str] = field(default_factory=list)
    scenario: str = SCENARIO
    durations: list[float] = field(default_factory=lambda: [1.0, 1.0, 1.0, 1.2, 1.1, 1.0, 1.0, 1.0])
    environment: dict[str, Any] = field(
        default_factory=lambda: {
            "base_rtt_ns": RTT_NS,
            "delay_by": "endpoint delay line",
            "switch_ports_by": "plain shapers",
        }
    )
    history: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    completions: list[list[Any]] = field(default_factory=list)
    counters: dict[str, Any] | None = None
    fidelity: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.history = [
            phase("verify", -2),
            {"t_ns": at(0), "op": "workload", "type": "invoke"},
            fault("inject", "invoke", 3.5),
            fault("inject", "ok", 3.501),
            fault("heal", "invoke", 4.5),
            fault("heal", "ok", 4.502),
            {"t_ns": at(8.3), "op": "workload", "type": "ok"},
            phase("settle", 9),
        ]
        self.events = [
            ev("h0", "h2", 0, 1, 3.6, "GOOD", "ASSUMED_BAD", lost=3.55),
            ev("h3", "h1", 0, 1, 3.65, "SKIP", "ASSUMED_BAD", lost=3.45),
            ev("h0", "h2", 0, 1, 4.7, "ASSUMED_BAD", "GOOD"),
            ev("h3", "h1", 0, 1, 4.8, "ASSUMED_BAD", "SKIP"),
            *(snapshot(host, t, lost=lost) for host in HOSTS for t, lost in ((1, 0), (3, 2), (5, 12), (7, 13))),
        ]
        ends = [sum(self.durations[: n + 1]) for n in range(len(self.durations))]
        for step, end in enumerate(ends):
            for rank, host in enumerate(HOSTS):
                # Rank 0 is the slowest, so the step's end is `end` to the nanosecond.
                begin = (ends[step - 1] if step else 0) - 0.001 * rank
                self.completions.append([host, step, at(begin), at(end - 0.001 * rank), 1 << 20, 0])
        final = {"lost_timeout": 13, "lost_overtaken": 1, "retransmitted": 15, "data_on_bad_ev": 0}
        queues = {"p0-t0-0": {"up0": {"sent_packets": 10, "drops": 3}, "up1": {"sent_packets": 10, "drops": 1}}}
        final |= dict.fromkeys(("data_sent", "packets_out", "packets_in", "unknown_source"), 0)
        self.counters = {
            "hosts": {host: {"counters": dict(final)} for host in HOSTS},
            "queues": queues,
            "ports": {node: {own.name: no_packets(node) for own, _ in ends} for node, ends in PLAN.ports.items()},
            "socket_losses": dict.fromkeys(HOSTS, 0),
        }
        self.fidelity = {
            "measured_s": 8.3,
            "cpu_pressure_some": 0.2,
            "run_delay": dict.fromkeys(HOSTS, 0.02),
            "udp_rcvbuf_errors": 0,
            "softnet_drops": 0,
            "wall_clock_step_ns": 0,
            "lateness_p99_ns": dict.fromkeys(HOSTS, 300_000),
            "lateness_max_ns": dict.fromkeys(HOSTS, 3_000_000),
            "shaped_rate_error": 0.01,
        }

    def write(self, folder: Path) -> Path:
        expect = "".join(f"  - {_entry(line)}\n" for line in self.expect) or "  []\n"
        (folder / "scenario.yaml").write_text(self.scenario + expect)
        (folder / "environment.json").write_text(json.dumps(self.environment))
        (folder / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in self.history))
        (folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in self.events))
        rows = [["host", "step", "begin_ns", "end_ns", "bytes", "bytes_wrong"], *self.completions]
        (folder / "completions.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
        for name, value in (("counters.json", self.counters), ("fidelity.json", self.fidelity)):
            if value is not None:
                (folder / name).write_text(json.dumps(value))
        return folder

    def break_instead(self, written: str) -> None:
        """Another fault than the cut of LINK, under the same name and at the same time."""
        self.scenario = self.scenario.replace(f'link-down: "{LINK}"', written)

    def stop_at_limit(self) -> None:
        """The run ended what still went on, or so its history says."""
        self.history = [line for line in self.history if (line["op"], line["type"]) != ("workload", "ok")]
        why = "not finished within the time limit"
        self.history.append({"t_ns": at(9.5), "op": "workload", "type": "fail", "error": why})

    def without_port_program(self) -> RunFolder:
        """The ports have no books, so what its hosts counted need not agree with them."""
        assert self.counters is not None
        assert self.fidelity is not None
        del self.counters["ports"]
        self.fidelity["unavailable"] = {"unexplained_packets": "plain shapers"}
        return self

    def judge(self, folder: Path) -> Verdict:
        from mrc_testbed.testbed.checks.judge import judge

        return judge(load_record(self.write(folder)))


def _entry(line: str) -> str:
    """An expectation as YAML."""
    return line if line.startswith(("warning: ", "{")) else json.dumps(line)


def phase(name: str, seconds: float, kind: str = "ok", **more: Any) -> dict[str, Any]:
    return {"t_ns": at(seconds), "op": "phase", "type": kind, "phase": name, **more}


def fault(op: str, kind: str, seconds: float, **more: Any) -> dict[str, Any]:
    line = {"t_ns": at(seconds), "op": op, "type": kind, "fault": "cut", "kind": "link-down", "target": LINK}
    return {**line, "cycle": 0, "links": [LINK], **more}


def ev(
    host: str,
    peer: str,
    plane: int,
    uplink: int,
    seconds: float,
    old: str,
    new: str,
    lost: float | None = None,
    last: float | None = None,
) -> dict[str, Any]:
    sent = {"first_lost_tx_ns": 0 if lost is None else at(lost), "last_tx_ns": 0 if last is None else at(last)}
    where = {"host": host, "peer": peer, "plane": plane, "uplink": uplink}
    return {"event": "ev_state", "t_ns": at(seconds), **where, "from": old, "to": new, **sent}


def snapshot(host: str, seconds: float, lost: int) -> dict[str, Any]:
    counters = {"lost_timeout": lost, "lost_overtaken": 0, "retransmitted": lost + 1, "data_on_bad_ev": 0}
    return {"event": "snapshot", "t_ns": at(seconds), "host": host, "counters": counters}


def test_a_written_folder_reads_back(tmp_path: Path) -> None:
    record = load_record(RunFolder(expect=["qp_errors == 0"]).write(tmp_path))
    assert record.scenario.name == "small"
    assert record.base_rtt_ns == RTT_NS
    assert record.start_ns == START_NS
    assert len(record.completions) == 8 * len(HOSTS)
    assert len(record.ev_changes) == 4
    assert record.ev_changes[0].first_lost_tx_ns == at(3.55)
    assert record.queue_drops == 4
    assert record.missing == ()
    assert record.plan.shape.hosts == 4


def test_a_full_queue_drops_in_the_port_program_as_well_as_behind_it(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.counters is not None
    port = {"out_dropped": 5, "out_other_dropped": 2, "in_data_dropped": 100, "out_trimmed": 50}
    folder.counters["ports"] = {"p0-t0-0": {"up0": port, "up1": {**port, "out_dropped": 0}}}
    assert load_record(folder.write(tmp_path)).queue_drops == 4 + 5 + 2 + 2


def test_ports_read_back_and_are_not_missed_without_the_port_program(tmp_path: Path) -> None:
    folder = RunFolder().write(tmp_path)
    assert list(load_record(folder).ports) == []
    (folder / "ports.csv").write_text(
        "t_ns,node,port,marked,trimmed,dropped,lost,corrupted\n7,p0-t0-0,up1,1,2,3,4,5\n8,"
    )
    assert list(load_record(folder).ports) == [PortSample(7, "p0-t0-0", "up1", 1, 2, 3, 4, 5)]
    assert load_record(folder).missing == ()


def test_torn_last_lines_are_left_out(tmp_path: Path) -> None:
    folder = RunFolder().write(tmp_path)
    for name in ("history.jsonl", "events.jsonl", "completions.csv"):
        text = (folder / name).read_text()
        (folder / name).write_text(text[:-7])
    record = load_record(folder)
    assert len(record.completions) == 8 * len(HOSTS) - 1
    assert len(record.snapshots) == 15
    assert len(record.history) == 7


def test_a_whole_last_line_without_newline_counts(tmp_path: Path) -> None:
    folder = RunFolder().write(tmp_path)
    (folder / "history.jsonl").write_text((folder / "history.jsonl").read_text().rstrip("\n"))
    assert len(load_record(folder).history) == 8


def test_a_run_killed_at_once_reads_as_empty(tmp_path: Path) -> None:
    folder = RunFolder().write(tmp_path)
    for name in ("environment.json", "events.jsonl", "completions.csv", "counters.json", "fidelity.json"):
        (folder / name).unlink()
    (folder / "history.jsonl").write_text("")
    record = load_record(folder)
    assert record.start_ns is None
    assert record.missing == ("environment.json", "events.jsonl", "completions.csv", "counters.json", "fidelity.json")
    assert record.fidelity is None


@pytest.mark.parametrize("name", ["fidelity.json", "counters.json", "environment.json"])
def test_a_torn_json_file_is_refused_as_none_is_written_in_parts(tmp_path: Path, name: str) -> None:
    folder = RunFolder().write(tmp_path)
    (folder / name).write_text('{"measured_s": 8')
    with pytest.raises(RecordError, match=f"{name}: is no JSON object: the folder is damaged"):
        load_record(folder)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("events.jsonl", "not json\n{}\n", "line 1 is not JSON"),
        ("events.jsonl", "{}\n\n{}\n\n", "line 2 is not JSON"),
        ("events.jsonl", "[]\n{}\n", "line 1 is not an object"),
        ("events.jsonl", '{"event": "snapshot", "t_ns": 1, "host": "h0", "counters": {"data_sent": 0.5}}\n', "0.5"),
        ("events.jsonl", '{"event": "ev_state", "t_ns": 1}\n', "lacks or misspells 'peer'"),
        ("events.jsonl", SNAPSHOT % '"stalled": [1]', "lacks or misspells 'stalled'"),
        ("events.jsonl", SNAPSHOT % '"stalled": {"0>1": "x"}', "lacks or misspells 'stalled'"),
        ("events.jsonl", SNAPSHOT % '"lost": "none"', "lacks or misspells 'lost'"),
        ("events.jsonl", '{"event": "stall", "host": [1], "peer": "h1", "qp": "q", "begin_ns": 1}\n', "'host'"),
        ("events.jsonl", '{"event": "stall", "host": "h0", "peer": "h1", "qp": "q", "begin_ns": "x"}\n', "'x'"),
        ("history.jsonl", '{"t_ns": "soon", "op": "phase", "type": "ok"}\n', "invalid literal"),
        ("completions.csv", "host,step\nh0,1\n", "lacks or misspells 'begin_ns'"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, text: str, says: str) -> None:
    folder = RunFolder().write(tmp_path)
    (folder / name).write_text(text)
    with pytest.raises(RecordError) as caught:
        load_record(folder)
    assert caught.value.path == folder / name
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("counters", "says"),
    [
        ({"hosts": []}, "hosts is not an object"),
        ({"hosts": {"h0": 1}}, "hosts.h0 is not an object"),
        ({"hosts": {"h0": {"paths": {}}}}, "hosts.h0 has no counters"),
        ({"hosts": {"h0": {"counters": {"data_sent": "7"}}}}, "hosts.h0.counters.data_sent is not a count: '7'"),
        ({"queues": {"h0": 3}}, "queues.h0 is not an object"),
        ({"queues": {"h0": {"port0": {"drops": None}}}}, "queues.h0.port0.drops is not a count: None"),
        ({"ports": {"h0": {"port0": {"in_data": -1}}}}, "ports.h0.port0.in_data is not a count: -1"),
        ({"ports": {"h0": {"port0": {"in_data": True}}}}, "ports.h0.port0.in_data is not a count: True"),
        ({"frames": {"h0": {"port0": {"rx_packets": -2}}}}, "frames.h0.port0.rx_packets is not a count: -2"),
        ({"icmp_in": {"h0": "6"}}, "icmp_in.h0 is not a count: '6'"),
        ({"socket_losses": {"h0": 0.5}}, "socket_losses.h0 is not a count: 0.5"),
    ],
)
def test_what_is_no_count_is_named(tmp_path: Path, counters: dict[str, Any], says: str) -> None:
    folder = RunFolder()
    folder.counters = counters
    with pytest.raises(RecordError) as refusal:
        load_record(folder.write(tmp_path))
    assert refusal.value.detail == says


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no such run folder"):
        load_record(tmp_path / "nothing")
