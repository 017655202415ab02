"""Figures and checks of flows, of hand-made run folders and computed by hand beside.

Two planes of 25 Mb/s: a line of 2 x 25e6/8 x 4096/4238 bytes/s. h0 and h1 send to h2 (half a line each), h3 to h1.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks import flows
from mrc_testbed.testbed.checks.builtin import ENDED
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.metrics import measure
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.checks.windows import NoData
from mrc_testbed.testbed.expect import parse_figure
from mrc_testbed.testbed.report.summary import summary_text
from mrc_testbed.testbed.rundir.tables import PLACED_BYTES
from tests.unit.checks.test_folder import RTT_NS, RunFolder, at, phase

LINE = 2 * 25e6 / 8 * 4096 / 4238
HOSTS = ("h0", "h1", "h2", "h3")
LINK = "p0-t0-0:p0-t1-1"
SCENARIO = f"""\
name: incast
fabric: {{planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}}
workload:
  - incast: {{to: h2, from: [h0, h1], victims: [h3->h1], for: 6s}}
faults:
  - {{at: 3s, link-down: "{LINK}", for: 500ms, name: cut}}
expect:
"""
GRAIN = 0.1


@dataclass
class FlowFolder(RunFolder):
    """Every flow has its fair share, but half of it during the fault, and nothing in the first 0.4 s."""

    scenario: str = SCENARIO
    rates: dict[str, float] = field(default_factory=lambda: {"h0->h2": 0.5, "h1->h2": 0.5, "h3->h1": 1.0})
    rows: list[list[Any]] = field(default_factory=list)
    messages: list[list[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.environment["flow_bytes"] = PLACED_BYTES
        self.completions, self.events = [], []
        self.history = [
            phase("verify", -2),
            {"t_ns": at(0), "op": "workload", "type": "invoke"},
            *(
                {"t_ns": at(t), "op": op, "type": kind, "fault": "cut", "cycle": 0, "links": [LINK], "target": LINK}
                for op, kind, t in (("inject", "invoke", 3), ("inject", "ok", 3), ("heal", "ok", 3.5))
            ),
            {"t_ns": at(6.1), "op": "workload", "type": "ok"},
            phase("settle", 7),
        ]
        for name in self.rates:
            self.rows += [self.row(name, tenth * GRAIN) for tenth in range(60)]
            self.rows.append(["h2", name, 0, at(6), at(6.03), 0, 0, 0, 1])
            self.messages += [["h0", name, 0, at(tenth / 10), 50_000_000 + tenth] for tenth in range(1, 60)]

    def row(self, name: str, begin: float) -> list[Any]:
        share = 0.0 if begin < 0.35 else 0.5 if 2.95 < begin < 3.45 else 1.0
        moved = round(self.rates[name] * LINE * GRAIN * share)
        return ["h2", name, 0, at(begin), at(begin + GRAIN), moved, 1 if moved else 0, 0, 0]

    def write(self, folder: Path) -> Path:
        super().write(folder)
        tables = {
            "flows.csv": ["host,flow,qp,begin_ns,end_ns,bytes,messages,bytes_wrong,last", self.rows],
            "messages.csv": ["host,flow,qp,end_ns,duration_ns", self.messages],
        }
        for name, (header, rows) in tables.items():
            lines = "".join(",".join(map(str, row)) + "\n" for row in rows)
            (folder / name).write_text(f"{header}\n{lines}")
        return folder


@pytest.fixture
def folder() -> FlowFolder:
    return FlowFolder()


def figure(folder: RunFolder, path: Path, words: str) -> float:
    """In base units, by its words with a stroke before the window: `fair_share.min of victims | during cut`."""
    return measure(load_record(folder.write(path)), parse_figure(words.replace("|", " ")))


# The fault's window is 3.0 to 3.75 s: the stretches 2.9 (it ends there) to 3.7; 3.0 to 3.4 have half.
IN_FAULT = (4 * 1 + 5 * 0.5) / 9


@pytest.mark.parametrize(
    ("words", "value"),
    [
        # The first 0.4 s are not steady and do not count anywhere; 56 stretches do, 5 of them at half.
        ("flow_goodput.max", LINE * (51 + 2.5) / 56),
        ("flow_goodput.min", LINE / 2 * (51 + 2.5) / 56),
        ("flow_goodput.median | clean", LINE / 2),
        ("flow_goodput.mean of h3->h1 | clean", LINE),
        ("goodput | clean", 2 * LINE),
        ("goodput | during cut", 2 * LINE * IN_FAULT),
        ("balance", 1),
        ("balance of incast | during cut", 1),
        ("goodput | from 2900ms to 3500ms", 2 * LINE * (1 + 5 * 0.5) / 6),
        ("goodput | from 2850ms to 3599ms", 2 * LINE * (1 + 5 * 0.5) / 6),
        ("fair_share.min | clean", 1.0),
        ("fair_share.max", (51 + 2.5) / 56),
        ("fair_share.min of incast | during cut", IN_FAULT),
        ("message_time.min", 50_000_001),
        ("message_time.max | during cut", 50_000_038),
        ("bytes_wrong", 0),
    ],
)
def test_a_figure_by_hand(folder: FlowFolder, tmp_path: Path, words: str, value: float) -> None:
    assert figure(folder, tmp_path, words) == pytest.approx(value, rel=1e-4)


def test_of_chooses_flows_in_the_base_of_a_comparison_too(tmp_path: Path) -> None:
    folder = FlowFolder(rates={"h0->h2": 0.25, "h1->h2": 0.5, "h3->h1": 1.0})
    folder.expect = ["fair_share.min of h0->h2 >= 0.7 x clean during cut", "fair_share.min of victims >= 0.7 x clean"]
    checks = {check.name: check for check in folder.judge(tmp_path).checks}
    assert checks[folder.expect[0]].observed == pytest.approx(0.5 * IN_FAULT, rel=1e-3)
    assert checks[folder.expect[0]].status is Status.PASS
    assert "clean.min is 0.5" in checks[folder.expect[0]].why
    assert "clean.min is 1" in checks[folder.expect[1]].why


def test_a_bound_in_lines_is_shown_in_lines(folder: FlowFolder, tmp_path: Path) -> None:
    folder.expect = ["flow_goodput.min >= 0.45 line clean"]
    check = folder.judge(tmp_path).checks[0]
    assert (check.status, check.unit, check.expected) == (Status.PASS, "line", ">= 0.45")
    assert check.observed == pytest.approx(0.5, rel=1e-3)


def test_shares_change_with_the_flows_that_go_on(tmp_path: Path) -> None:
    """From 4 s on h0 sends to h2 alone: all it gets then is fair, and the first 0.4 s after the change do not count."""
    folder = FlowFolder()
    folder.scenario = SCENARIO.replace(
        "- incast: {to: h2, from: [h0, h1], victims: [h3->h1], for: 6s}",
        "- write: {from: h0, to: h2, for: 6s}\n  - write: {from: h1, to: h2, for: 4s}\n"
        "  - write: {from: h3, to: h1, for: 6s}",
    )
    folder.rows = [row for row in folder.rows if row[1] != "h1->h2" or row[3] < at(4)]
    folder.rows.append(["h2", "h1->h2", 0, at(4), at(4.02), 0, 0, 0, 1])
    for row in folder.rows:
        if row[1] == "h0->h2" and at(4.35) < row[3] < at(5.95):
            row[5] = round(LINE * GRAIN)
    assert figure(folder, tmp_path, "fair_share.min of h0->h2 | clean") == pytest.approx(1, rel=1e-3)


def test_balance_compares_the_worst_flow_with_the_best(tmp_path: Path) -> None:
    folder = FlowFolder(rates={"h0->h2": 0.55, "h1->h2": 0.4, "h3->h1": 1.0})
    assert figure(folder, tmp_path, "balance") == pytest.approx(0.8 / 1.1, rel=1e-3)
    assert figure(folder, tmp_path, "balance of incast") == pytest.approx(0.4 / 0.55, rel=1e-3)


def test_qps_of_a_flow_add_up(tmp_path: Path) -> None:
    folder = FlowFolder()
    folder.scenario = SCENARIO.replace("for: 6s", "for: 6s, qps: 2")
    halves = [[*row[:5], row[5] // 2, *row[6:]] for row in folder.rows]
    folder.rows = halves + [[*row[:2], 1, *row[3:]] for row in halves]
    assert figure(folder, tmp_path, "flow_goodput.max | clean") == pytest.approx(LINE, rel=1e-3)
    assert figure(folder, tmp_path, "fair_share.min | clean") == pytest.approx(1, rel=1e-3)
    assert folder.judge(tmp_path).status is Status.PASS


def test_a_flow_of_bytes_counts_until_its_first_qp_ended(tmp_path: Path) -> None:
    folder = FlowFolder()
    folder.scenario = SCENARIO.replace("for: 6s", "bytes: 64MiB")
    assert figure(folder, tmp_path, "fair_share.min | clean") == pytest.approx(1, rel=1e-3)


def test_a_stalled_flow_has_a_goodput_of_nothing(folder: FlowFolder, tmp_path: Path) -> None:
    for row in folder.rows:
        if row[1] == "h3->h1":
            row[5] = row[6] = 0
    assert figure(folder, tmp_path, "fair_share.min | clean") == figure(folder, tmp_path, "balance") == 0
    assert lacking(folder, tmp_path, "balance of victims") == "no flow delivered anything"
    check = next(check for check in folder.judge(tmp_path).checks if check.name == ENDED)
    assert (check.status, check.observed, check.why) == (Status.FAIL, 2, "h3->h1 did not")


def lacking(folder: FlowFolder, path: Path, words: str) -> str:
    with pytest.raises(NoData) as caught:
        figure(folder, path, words)
    return str(caught.value)


def test_a_flow_that_nothing_is_known_of_is_no_flow_that_is_slow(folder: FlowFolder, tmp_path: Path) -> None:
    folder.rows = [row for row in folder.rows if row[1] != "h3->h1" or row[3] < at(0.4)]
    assert lacking(folder, tmp_path, "fair_share.min") == "nothing is known of h3->h1"
    assert lacking(folder, tmp_path, "fair_share.min of victims") == "nothing is known of h3->h1"
    assert figure(folder, tmp_path, "fair_share.min of incast | clean") == pytest.approx(1, rel=1e-3)


def test_no_data_is_told_as_such(folder: FlowFolder, tmp_path: Path) -> None:
    folder.rows = [row for row in folder.rows if row[3] < at(0.4)]
    folder.messages = []
    assert lacking(folder, tmp_path, "fair_share.min") == "no flow was steady"
    assert lacking(folder, tmp_path, "goodput | during cut") == "no flow was steady during cut"
    assert lacking(folder, tmp_path, "goodput | from 1s to 2s") == "no flow was steady from 1 s to 2 s"
    assert lacking(folder, tmp_path, "message_time.p50 | clean") == "no message was completed outside all faults"
    assert lacking(folder, tmp_path, "bytes_wrong") == "no message arrived"
    folder.history = []
    folder.rows = []
    assert lacking(folder, tmp_path, "fair_share.min") == "the workload did not begin"


def test_wrong_bytes_are_found_wherever_they_are(folder: FlowFolder, tmp_path: Path) -> None:
    folder.rows[0][7] = 3  # in the first stretch, which is not steady
    assert figure(folder, tmp_path, "bytes_wrong") == 3
    assert figure(folder, tmp_path, "bytes_wrong | during cut") == 0
    check = next(check for check in folder.judge(tmp_path).checks if check.name == "all data arrived as sent")
    assert check.status is Status.FAIL


def ended(verdict: Verdict) -> tuple[Status, str]:
    return next((check.status, check.why) for check in verdict.checks if check.name == ENDED)


def test_a_good_run_passes_every_check(folder: FlowFolder, tmp_path: Path) -> None:
    folder.expect = ["fair_share.min of victims >= 0.95 clean"]
    verdict = folder.judge(tmp_path)
    assert verdict.status is Status.PASS
    assert [check.name for check in verdict.checks][1] == ENDED


def test_a_flow_that_did_not_end_is_named_with_the_reason(folder: FlowFolder, tmp_path: Path) -> None:
    folder.rows = [row for row in folder.rows if (row[1], row[8]) != ("h1->h2", 1)]
    folder.history = [line for line in folder.history if (line["op"], line["type"]) != ("workload", "ok")]
    folder.events.append({"event": "qp_error", "t_ns": at(5), "host": "h1", "qp": "h1->h2/0", "reason": "gone"})
    assert ended(folder.judge(tmp_path)) == (Status.FAIL, "h1->h2 did not (h1: gone)")


def test_a_sender_that_is_not_done_in_the_written_time_is_a_fail(folder: FlowFolder, tmp_path: Path) -> None:
    folder.stop_at_limit()
    status, why = ended(folder.judge(tmp_path))
    assert status is Status.INCONCLUSIVE
    assert why == "senders were not done: the testbed stopped them (not finished within the time limit)"
    folder.scenario = f"time_limit: 60s\n{folder.scenario}"
    status, why = ended(folder.judge(tmp_path))
    assert (status, why) == (Status.FAIL, "senders were not done (not finished within the time limit)")


def test_the_summary_speaks_of_flows(folder: FlowFolder, tmp_path: Path) -> None:
    verdict = folder.judge(tmp_path)
    text = summary_text(verdict, load_record(tmp_path))
    assert "PASS  incast  3 flows, clean fair share 1\n" in text
    assert "clean goodput of each 24.2 Mb/s to 48.3 Mb/s, message median 50 ms, P100 50 ms; during faults" in " ".join(
        text.split()
    )
    assert "step" not in text


def test_a_run_of_flows_that_did_nothing_can_still_be_shown(folder: FlowFolder, tmp_path: Path) -> None:
    folder.rows, folder.messages, folder.history = [], [], []
    text = summary_text(folder.judge(tmp_path), load_record(tmp_path))
    assert "3 flows, the workload did not begin" in text


def test_counters_have_plain_names(folder: FlowFolder, tmp_path: Path) -> None:
    assert folder.counters is not None
    names = {"timeouts": "timeouts", "nacks": "nacks_received", "trims": "trimmed_received", "ecn_skips": "evs_skipped"}
    for number, host in enumerate(HOSTS):
        folder.counters["hosts"][host]["counters"] |= {counter: number for counter in names.values()}
    assert [figure(folder, tmp_path, name) for name in names] == [6] * 4
    folder.counters["hosts"]["h0"]["counters"].pop("timeouts")
    assert lacking(folder, tmp_path, "timeouts") == "h0 did not count timeouts"


def test_torn_rows_are_left_out(folder: FlowFolder, tmp_path: Path) -> None:
    record = load_record(folder.write(tmp_path))
    for name in ("flows.csv", "messages.csv"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-3])
    torn = load_record(tmp_path)
    assert len(torn.received) == len(record.received) - 1
    assert len(torn.messages) == len(record.messages) - 1
    assert json.loads((tmp_path / "environment.json").read_text())["base_rtt_ns"] == RTT_NS
    assert judge(torn).status is Status.FAIL


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ("", "3 flows, clean fair share 1  "),
        # One message of 32 KiB under way cannot fill ports whose window is 125 KB: its share says nothing.
        (", depth: 1", "3 flows, clean message median 50 ms, P100 50 ms  "),
        (", depth: 4", "3 flows, clean fair share 1  "),
    ],
)
def test_the_headline_speaks_of_fair_shares_where_flows_can_have_them(
    folder: FlowFolder, tmp_path: Path, changed: str, says: str
) -> None:
    folder.scenario = folder.scenario.replace("for: 6s}", f"for: 6s{changed}}}")
    assert says in summary_text(folder.judge(tmp_path), load_record(tmp_path), 200)


def test_one_flow_alone_has_no_balance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others had ended: least over greatest of a single share is 1, whatever it is."""
    record = load_record(FlowFolder().write(tmp_path))
    for shares, known in (([0.2], False), ([0.2, 0.4], True)):
        monkeypatch.setattr(flows, "fair_shares", lambda *_, shares=shares: shares)
        assert (ask(record, "balance").value == 0.5) is known
