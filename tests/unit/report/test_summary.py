from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from mrc_testbed.testbed.app.judge import judge_folder
from mrc_testbed.testbed.checks.fault_drops import FaultDrops, drops_of
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.pages.report.story import story
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.facts import fault_rows
from mrc_testbed.testbed.report.packet_facts import packet_lines
from mrc_testbed.testbed.report.summary import _title, render_summary, summary_text, verdict_line
from tests.unit.checks.test_folder import HOSTS, LINK, PLAN, SECOND, RunFolder, fault
from tests.unit.checks.test_metrics import cold


def shown(folder: RunFolder, tmp_path: Path, width: int = 100) -> str:
    verdict = folder.judge(tmp_path)
    return summary_text(verdict, load_record(tmp_path), width)


def test_a_pass_says_what_a_reader_wants_to_know(tmp_path: Path) -> None:
    text = shown(RunFolder(expect=["recovery.p100 <= 6 rtt"]), tmp_path)
    lines, joined = text.splitlines(), " ".join(text.split())
    assert lines[0] == "small  seed 1  4 hosts, 2 planes of 2 T0 + 2 T1, ports of 25 Mb/s"
    assert lines[1] == "A link goes down."
    cells = ["pass", "recovery.p100", "<=", "6", "rtt", "<=", "6", "rtt", "5.96", "rtt", "1%"]
    assert any(line.split() == cells for line in lines)
    assert any(line.split() == ["cut", "3.5", "s,", "1", "s", "2", "0", "5.96", "rtt,", "149", "ms"] for line in lines)
    assert f"link-down {LINK}" in text
    assert "clean median 1 s, P100 1 s (5 steps); during faults median 1.15 s, P100 1.2 s (2 steps)" in text
    assert "T 20 ms made by endpoint delay line; base RTT 25 ms in warm-up; switch ports: plain shapers" in joined
    assert "kept time: timers late (p99) 0.3 ms (max 5), timers late (worst) 3 ms (max 100)" in text
    assert "PASS  small  8 steps, P100 1.2 s, clean median 1 s" in text
    assert text.endswith("\n")


def test_a_number_and_its_unit_are_on_one_line_at_any_width(tmp_path: Path) -> None:
    folder = RunFolder(expect=["recovery.p100 <= 6 rtt"])
    torn = re.compile(r"\d\n *(?:ms|us|s|T|rtt|%|Mb/s|MB/s|MiB)\b")
    for width in range(80, 121):
        text = shown(folder, tmp_path, width)
        assert not torn.search(text), (width, torn.search(text))
        assert "\ue000" not in text


def test_the_first_and_the_last_line_keep_them_together_too(tmp_path: Path) -> None:
    """They have no cell: they end where the screen does."""
    folder = RunFolder()
    verdict = folder.judge(tmp_path)
    record = load_record(tmp_path)
    for width in range(20, 100):
        out = io.StringIO()
        console = PatientConsole(file=out, width=width, color_system=None, highlight=False)
        console.print(_title(record), verdict_line(verdict, record), sep="\n")
        text = out.getvalue()
        assert not re.search(r"\d\s*\n *(?:ms|s|Mb/s)\b", text), (width, text)
        assert "clean median 1 s" in " ".join(text.split())


def test_a_fail_names_the_check_last(tmp_path: Path) -> None:
    text = shown(RunFolder(expect=["steps_done == 9", "qp_errors > 0"]), tmp_path)
    assert "FAIL  steps_done == 9" in text
    assert text.splitlines()[-1] == "network: steps_done == 9: observed 8, expected == 9 (scenario.yaml:9, and 1 more)"


def test_a_slow_machine_is_said_once_and_each_check_keeps_what_it_saw(tmp_path: Path) -> None:
    folder = RunFolder(expect=["steps_done == 9"])
    assert folder.fidelity is not None
    folder.fidelity["udp_rcvbuf_errors"] = 12
    text = shown(folder, tmp_path)
    assert "? FAIL  steps_done == 9" in text
    assert "? pass  data were moved" in text
    assert "did NOT keep time:" in text
    assert "!! socket drops 12" in " ".join(text.split())
    assert text.count("expected <= 0 packets") == 1
    assert text.splitlines()[-2:] == [
        "machine: socket drops: observed 12 packets, expected <= 0 packets",
        "try a calmer machine, or half the load: --set fabric.port_rate=12.5mbit --set fabric.rtt=40ms",
    ]


@pytest.mark.parametrize(("stolen", "said"), [(0.002, False), (0.03, False), (0.21, True), (None, False)])
def test_other_virtual_machines_are_named_where_they_had_much(tmp_path: Path, stolen: float | None, said: bool) -> None:
    folder = RunFolder()
    assert folder.fidelity is not None
    folder.fidelity |= {"udp_rcvbuf_errors": 12, "cpu_stolen": stolen}
    text = " ".join(shown(folder, tmp_path).split())
    words = "other virtual machines had 21% of the CPU time that this one wanted; try a calmer machine"
    assert (words in text) == said
    assert ("other virtual machines had 3%" in text) == (stolen == 0.03)


def test_half_the_load_is_no_help_where_the_machine_was_quick_enough(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.fidelity is not None
    folder.fidelity["shaped_rate_error"] = 0.2
    text = shown(folder, tmp_path)
    assert "did NOT keep time:" in text
    assert "half the load" not in text


def test_an_open_check_says_what_is_lacking(tmp_path: Path) -> None:
    folder = RunFolder(expect=["recovery.p100 <= 6 rtt"])
    folder.events = [event for event in folder.events if event["event"] != "ev_state"]
    text = shown(folder, tmp_path)
    assert "no EV was retired by a fault" in text
    assert text.splitlines()[-1] == "scenario: recovery.p100 <= 6 rtt: no EV was retired by a fault (scenario.yaml:9)"


def test_a_killed_run_can_still_be_shown(tmp_path: Path) -> None:
    folder = RunFolder(expect=["qp_errors == 0"])
    folder.completions = folder.completions[: len(HOSTS) + 1]
    folder.counters = folder.fidelity = None
    folder.environment = {}
    folder.history = folder.history[:4]
    text = shown(folder, tmp_path)
    assert "1 of 8 steps" in text
    assert "3.5 s, never healed" in text
    assert "149 ms" in text
    assert "T 20 ms made by unknown means; base RTT not measured" in text
    assert "INCONCLUSIVE  small" in text


def test_a_run_that_did_nothing_can_still_be_shown(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.completions, folder.history, folder.events = [], [], []
    text = shown(folder, tmp_path)
    assert "not injected" in text
    assert "0 of 8 steps" in text
    assert "no finished step" in text


def test_many_targets_and_occurrences_stay_short(tmp_path: Path) -> None:
    folder = RunFolder()
    links = "[h0:p0-t0-0, h1:p0-t0-0, h2:p0-t0-1]"
    folder.scenario = folder.scenario.replace(
        f'link-down: "{LINK}", for: 1s', f"link-flap: {links}, period: 1s, count: 2"
    )
    folder.history += [{**line, "cycle": 1, "t_ns": line["t_ns"] + 10**9} for line in folder.history if "fault" in line]
    text = shown(folder, tmp_path, 120)
    assert "link-flap h0:p0-t0-0, h1:p0-t0-0 and 1 more" in text
    assert "3.5 s, 2 x 1 s" in text


def test_without_faults_there_is_no_table_of_them(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.scenario = folder.scenario[: folder.scenario.index("faults:")].replace("about: A link goes down.\n", "")
    folder.scenario += "expect:\n"
    folder.history = [line for line in folder.history if "fault" not in line]
    text = shown(folder, tmp_path)
    assert "recovery" not in text
    assert "during faults" not in text


@pytest.mark.parametrize("width", [80, 100, 120])
def test_it_fits(tmp_path: Path, width: int) -> None:
    expect = ["step_time.p100 <= 1.5 x clean.median during faults", "goodput >= 97% of clean during cut"]
    text = shown(RunFolder(expect=expect), tmp_path, width)
    assert max(map(len, text.splitlines())) <= width
    assert f"link-down {LINK}" in text
    assert "5.96 rtt, 149 ms" in text


def test_colour_is_for_the_terminal_only(tmp_path: Path) -> None:
    verdict = RunFolder().judge(tmp_path)
    record = load_record(tmp_path)
    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system="standard", width=100).print(render_summary(verdict, record))
    assert "\x1b[" in out.getvalue()
    assert "\x1b[" not in summary_text(verdict, record)


def test_names_are_not_read_as_markup(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.scenario = folder.scenario.replace("A link goes down.", "'[red]not markup[/red]'")
    assert "[red]not markup[/red]" in shown(folder, tmp_path)


def test_cells_of_tables_are_not_read_as_markup_or_emoji() -> None:
    out = io.StringIO()
    table = Table("plugin", "fault")
    table.add_row("cc[v2].py", "[/x] h0:on:h1")
    PatientConsole(file=out, width=100).print(table)
    assert "cc[v2].py" in out.getvalue()
    assert "[/x] h0:on:h1" in out.getvalue()


def test_a_narrow_terminal_breaks_lines_and_loses_no_column(tmp_path: Path) -> None:
    folder = RunFolder(expect=["step_time.p100 <= 1.5 x clean.median during faults"]).write(tmp_path)
    out = io.StringIO()
    judge_folder(folder, Console(file=out, width=40), quiet=False)
    assert "every fault was injected and healed" in out.getvalue()
    assert "recovery" in out.getvalue()


def test_a_fault_that_was_there_before_the_start_is_said_to_be_so(tmp_path: Path) -> None:
    folder = RunFolder()
    cold(folder)
    text = " ".join(shown(folder, tmp_path).split())
    assert "cut cold start, 1 s" in text
    assert "pass every fault was injected and healed" in text


def test_what_the_endpoints_were_told_is_shown(tmp_path: Path) -> None:
    folder = RunFolder()
    assert "endpoint congestion control nscc\n" in shown(folder, tmp_path).replace("   ", " ").replace("  ", " ")
    folder.scenario = (
        "endpoint: {congestion_control: fixed, denylist: [p1, {path: p0-t1-0, hosts: [h0, h2]}]}\n" + folder.scenario
    )
    text = " ".join(shown(folder, tmp_path).split())
    assert "endpoint congestion control fixed; denied from the start: p1, p0-t1-0 for h0 h2" in text


@pytest.mark.parametrize(
    ("lasted_ns", "told"),
    [(500_000, "500 us"), (5_860_000, "5.86 ms"), (150_000_000, "0.15 s"), (804_000_000, "0.8 s"), (SECOND, "1 s")],
)
def test_a_short_fault_is_not_shown_as_none(tmp_path: Path, lasted_ns: int, told: str) -> None:
    folder = RunFolder()
    begun = next(line["t_ns"] for line in folder.history if line["op"] == "inject" and line["type"] == "ok")
    folder.history = [
        {**line, "t_ns": begun + lasted_ns} if line["op"] == "heal" and line["type"] == "ok" else line
        for line in folder.history
    ]
    (row,) = fault_rows(load_record(folder.write(tmp_path)))
    assert row.when == f"3.5 s, {told}"


def test_corrupted_packets_are_not_passed_over_in_silence(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.counters is not None
    port = folder.counters["ports"]["p0-t0-0"]["down0"]
    port |= {"in_corrupted": 6, "in_data": 9, "rx_packets": 9, "out_data": 9, "out_dropped": 9}
    folder.counters["hosts"]["h0"]["counters"] |= {"data_sent": 9, "packets_out": 9}
    (_, text), _ = packet_lines(load_record(folder.write(tmp_path)))
    assert text.startswith("9 data sent: 0 arrived whole (6 corrupted on the way), 0 trimmed, 9 dropped")


def test_a_line_of_packets_that_does_not_add_up_is_not_told(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.counters is not None
    folder.counters["hosts"]["h0"]["counters"] |= {"data_sent": 1, "packets_out": 1}
    verdict, record = folder.judge(tmp_path), load_record(tmp_path)
    told = "not known: the books do not balance: NIC of h0: 1 data packets lost"
    assert list(packet_lines(record)) == [("packets", told)]
    assert not [words for words in story(verdict, record).values() if "dropped" in words]


def take_data(folder: RunFolder, link: str, count: int, high: int = 0) -> None:
    """Let the far end of a link of T0 and T1 see fewer packets than the near end let go."""
    assert folder.counters is not None
    near, far = link.split(":")
    (out,) = [own.name for own, peer in PLAN.ports[near] if peer.node == far]
    for name, value in (("out_data", count), ("out_passed", count), ("out_control", high)):
        folder.counters["ports"][near][out][name] += value
    (into, _) = PLAN.ports[near][0]
    folder.counters["ports"][near][into.name]["in_data"] += count
    folder.counters["ports"][near][into.name]["in_control"] += high


def test_data_and_control_are_told_apart_and_each_line_adds_up(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.counters is not None
    take_data(folder, LINK, 32, high=6)
    folder.counters["hosts"]["h0"]["counters"] |= {"data_sent": 32, "packets_out": 38}
    record = load_record(folder.write(tmp_path))
    assert list(packet_lines(record)) == [
        (
            "packets",
            "32 data sent: 0 arrived whole, 0 trimmed, 32 dropped (32 at dead links); senders took 56 for lost",
        ),
        ("control", "6 sent: 0 arrived, 6 dropped (6 at dead links)"),
    ]
    (row,) = fault_rows(record)
    assert row.packets_dropped == "32"


def test_a_packet_that_several_faults_can_have_taken_is_counted_once(tmp_path: Path) -> None:
    folder = RunFolder()
    other = "p1-t0-0:p1-t1-0"
    folder.scenario = folder.scenario.replace(
        "expect:\n", f'  - {{at: 5s, link-down: ["{LINK}", "{other}"], for: 1s, name: again}}\nexpect:\n'
    )
    more = {"fault": "again", "target": f"{LINK}, {other}", "links": [LINK, other]}
    folder.history[6:6] = [
        fault(op, kind, t, **more) for op, t in (("inject", 5), ("heal", 6)) for kind in ("invoke", "ok")
    ]
    take_data(folder, LINK, 20)
    take_data(folder, other, 7)
    record = load_record(folder.write(tmp_path))
    assert [row.packets_dropped for row in fault_rows(record)] == ["0 + 20 shared", "7 + 20 shared"]
    drops = drops_of(record, "again")
    assert drops == FaultDrops(7, ((("cut",), 20),))


def test_a_run_that_ended_before_its_packets_were_counted_does_not_blame_the_switch_ports(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.counters = None
    folder.environment["switch_ports"] = "port program"
    assert list(packet_lines(load_record(folder.write(tmp_path)))) == [("packets", "not known: the run ended early")]
    folder.environment["switch_ports"] = "plain shaper"
    record = load_record(folder.write(tmp_path))
    ((_, told),) = packet_lines(record)
    assert "plain shapers" in told
    assert [row.packets_dropped for row in fault_rows(record)] == ["?"], "not known is not none"
