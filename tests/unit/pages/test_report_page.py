"""What report.html says and draws, without a browser: the texts and data made of a run folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import CheckResult, Fidelity, Status
from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.checks.windows import outages
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.pages.report.clock import Clock, clock_of
from mrc_testbed.testbed.pages.report.data import drawn, texts
from mrc_testbed.testbed.pages.report.faults import fault_bands, touched
from mrc_testbed.testbed.pages.report.samples import PortSamples, read_samples
from mrc_testbed.testbed.pages.report.steps import step_charts, worst_words
from mrc_testbed.testbed.pages.report.story import story
from mrc_testbed.testbed.pages.report.tables import occurrence_table
from mrc_testbed.testbed.pages.report.timelines import timelines
from mrc_testbed.testbed.pages.report.topology import drawing
from mrc_testbed.testbed.report.facts import headline, measured_words
from tests.unit.checks.test_folder import HOSTS, LINK, SCENARIO, THREE_TIERS, RunFolder, at, ev, phase

SAMPLES_HEAD = "t_ns,node,port,rx_bytes,rx_packets,rx_drops,tx_bytes,tx_packets,tx_drops\n"


def read(folder: RunFolder, tmp_path: Path) -> RunRecord:
    return load_record(folder.write(tmp_path))


def told(folder: RunFolder, tmp_path: Path) -> dict[str, str]:
    record = read(folder, tmp_path)
    return story(judge(record), record)


def clock(record: RunRecord) -> Clock:
    found = clock_of(record)
    assert found
    return found


def without_faults() -> RunFolder:
    folder = RunFolder()
    folder.scenario = folder.scenario[: folder.scenario.index("faults:")] + "expect:\n"
    folder.history = [line for line in folder.history if "fault" not in line]
    folder.events = [event for event in folder.events if event["event"] != "ev_state"]
    return folder


def test_occurrences_are_timed_as_finely_as_the_network_is_fast(tmp_path: Path) -> None:
    record = read(RunFolder(), tmp_path)
    usual = clock(record)
    (row,) = occurrence_table(record, usual)
    assert (usual.unit, row["begin"], row["end"]) == ("s", "3.501", "4.502")
    fast = Clock(at(3.501) - 41_250, usual.end_ns, 1000)
    assert (fast.unit, occurrence_table(record, fast)[0]["begin"]) == ("us", "41.250")
    assert texts(record, judge(record))["unit"] == "s"


def test_the_reason_is_that_of_a_check_that_decides(tmp_path: Path) -> None:
    """Missed expectations of a baseline decide nothing, though they come first."""
    missed = CheckResult("step_time.p100 <= 1s", Status.FAIL, why="step 3 took 1.2 s", place="a.yaml:9")
    wrong = CheckResult("bytes_wrong == 0", Status.FAIL, why="h2 got 7 wrong bytes", hard=True)
    verdict = Verdict(Status.FAIL, "small", (missed, wrong), Fidelity(()), judged=False)
    said = story(verdict, read(RunFolder(), tmp_path))["why"]
    assert said == "network: bytes_wrong == 0: h2 got 7 wrong bytes"


def test_how_long_was_measured_is_not_told_where_it_is_not_known() -> None:
    assert [measured_words(Fidelity((), seconds)) for seconds in (None, 8.3, 0.0021)] == ["", "8 s", "2.1 ms"]


def test_a_run_is_told_in_sentences(tmp_path: Path) -> None:
    said = told(RunFolder(expect=["qp_errors == 0"]), tmp_path)
    assert said["asked"] == "A link goes down: 8 steps by 4 hosts, 1 fault, 1 expectation."
    assert said["happened"] == (
        "All 8 steps were finished, the slowest (step 3) in 1.2 s, 1.20 times the clean median, during cut; no QP "
        "broke; no data packet was dropped; 56 packets were taken for lost; EVs were given up twice, the slowest "
        "after 149 ms (5.96 rtt), and all came back."
    )
    assert (
        said["fidelity"] == "The machine kept time: the figure nearest to its limit, CPU pressure, came to 27% of it."
    )
    assert said["why"] == ""


def test_an_inconclusive_run_says_why_and_what_to_try(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.fidelity is not None
    folder.fidelity["udp_rcvbuf_errors"] = 12
    said = told(folder, tmp_path)
    assert said["why"] == "machine: socket drops: observed 12 packets, expected <= 0 packets"
    assert "half the load" in said["hint"]
    assert said["fidelity"].startswith("The machine did not keep time: socket drops: observed 12")


def test_an_open_check_says_what_it_lacks(tmp_path: Path) -> None:
    folder = RunFolder(expect=["packets_lost == 0 from 2s to 8600ms"], durations=[1.1] * 8)
    folder.scenario = folder.scenario.replace("compute: 100ms", "compute: 500ms")
    assert "the workload ended" in told(folder, tmp_path)["why"]


def test_broken_qps_and_paths_that_stayed_away_are_told(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.events = [event for event in folder.events if event.get("to") not in ("GOOD", "SKIP")]
    folder.events.append({"event": "qp_error", "t_ns": at(4), "host": "h1", "peer": "h2", "reason": "timeouts"})
    said = told(folder, tmp_path)["happened"]
    assert "1 QP broke" in said
    assert "2 EVs did not come back" in said


def test_paths_that_were_given_up_without_a_fault_are_told(tmp_path: Path) -> None:
    folder = without_faults()
    assert told(folder, tmp_path)["happened"].endswith("no EV was given up.")
    folder.events.append(ev("h0", "h2", 0, 1, 3.6, "GOOD", "ASSUMED_BAD", lost=3.55))
    assert told(folder, tmp_path)["happened"].endswith("EVs were given up once, not because of a fault.")


def test_a_killed_run_tells_how_far_it_came_however_late_it_is_looked_at(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.completions = folder.completions[: 2 * len(HOSTS)]
    folder.counters = folder.fidelity = None
    noted = {"t_ns": at(4_000), "op": "interrupt", "type": "fail", "error": "killed"}
    folder.history = [*folder.history[:4], noted]
    said = told(folder, tmp_path)
    assert said["happened"].startswith("It ended after 7 s: 2 of 8 steps were finished")
    assert "at least" in said["happened"]
    assert said["why"] == "machine: the run was interrupted: killed"
    assert clock(load_record(tmp_path)).length_s < 10


def test_a_run_that_failed_before_its_workload_says_so_and_draws_nothing(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.completions, folder.events = [], []
    folder.history = [phase("warm up", -2, "fail", error="no path to h3")]
    folder.counters = folder.fidelity = None
    record = read(folder, tmp_path)
    assert story(judge(record), record)["happened"] == "The workload never began (warm up: no path to h3)."
    assert drawn(record, PortSamples()) == {"length": None}
    assert texts(record, judge(record))["broken"] == []


def test_the_slowest_step_is_explained_by_what_the_files_say(tmp_path: Path) -> None:
    folder = RunFolder()
    rows = [(host, step, "h1", 10**8) for step in range(8) for host in ("h0", "h2")]
    rows[3 * 2 + 1] = ("h2", 3, "h1", 3 * 10**8)
    record = read(folder, tmp_path)
    (tmp_path / "waits.csv").write_text(
        "host,step,peer,wait_ns\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    )
    record = load_record(tmp_path)
    assert " ".join(worst_words(record)) == (
        "Step 3 was the slowest: 1.2 s, 1.20 times the clean median. Last to end: h0, 1 ms after h1. "
        "Waited most beyond what is usual: h2 for h1, 200 ms longer than usual. "
        f"On during it: cut; EVs retired in it: 2 by cut ({LINK})."
    )


def test_no_cause_is_made_up(tmp_path: Path) -> None:
    record = read(without_faults(), tmp_path)
    words = " ".join(worst_words(record))
    assert words.endswith("Waited most beyond what is usual: not known. No fault was on.")


def test_the_only_step_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    folder = RunFolder(durations=[8.0])
    folder.scenario = folder.scenario.replace("steps: 8, compute: 100ms", "steps: 1, compute: 7s")
    record = read(folder, tmp_path)
    (chart,) = step_charts(record, clock(record))
    assert (chart["number"], chart["s"], chart["median"], chart["p100"]) == ([0], [8.003], None, 8.003)
    assert told(folder, tmp_path)["happened"].startswith("The only step was finished in 8 s, during cut;")


def test_the_chart_rounds_a_step_time_once_as_the_summary_does(tmp_path: Path) -> None:
    """1.0249 s is 1.02 s; of four digits of it, 1.025, a second rounding made 1.02 s here and 1.03 s there."""
    record = read(RunFolder(durations=[1.02496, 1.02496, 1.02496, 1.2, 1.1, 1.02496, 1.02496, 1.02496]), tmp_path)
    (chart,) = step_charts(record, clock(record))
    assert chart["median"] == pytest.approx(1.02496, abs=1e-9)
    assert f"clean median {amount(Dimension.TIME, chart['median'] * 1e9)}" in headline(record)


@pytest.mark.parametrize(
    ("written", "kind", "target", "links", "nodes"),
    [
        ("transceiver-flap: p0-t0-1, period: 1s, count: 1", "transceiver-flap", "p0-t0-1", ["h2:p0-t0-1"], ()),
        ("ev-loss: p0-t1-1, from: h0, loss: 10%, for: 1s", "ev-loss", "p0-t1-1", [LINK], ()),
        ("switch-silent: p0-t1-1, for: 1s", "switch-silent", "p0-t1-1", [LINK], ("p0-t1-1",)),
    ],
)
def test_a_switch_is_drawn_broken_only_if_it_is(
    tmp_path: Path, written: str, kind: str, target: str, links: list[str], nodes: tuple[str, ...]
) -> None:
    folder = RunFolder()
    folder.scenario = folder.scenario.replace(f'link-down: "{LINK}", for: 1s', written)
    for line in folder.history:
        if "fault" in line:
            line |= {"kind": kind, "target": target, "links": links}
    record = load_record(folder.write(tmp_path))
    (outage,) = outages(record)
    state, found, _ = touched(record, outage)
    assert found == nodes
    marked = re.findall(rf'data-node="{target}" class="{state}"', drawing(record))
    assert len(marked) == len(nodes)


def test_bands_hold_the_parts_that_a_fault_touched(tmp_path: Path) -> None:
    record = read(RunFolder(), tmp_path)
    bands = fault_bands(record, clock(record))
    (occurrence,) = bands["occurrences"]
    assert (occurrence["name"], occurrence["from"], occurrence["to"]) == ("cut", 3.501, 4.502)
    assert bands["parts"][occurrence["part"]] == ["broken", (), (LINK,)]


def test_a_fault_that_never_healed_has_no_end(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.history = [line for line in folder.history if line["op"] != "heal"]
    record = read(folder, tmp_path)
    assert fault_bands(record, clock(record))["occurrences"][0]["to"] is None
    assert texts(record, judge(record))["broken"][0]["when"] == "3.5\u2013? s"


def test_the_drawing_marks_what_was_broken(tmp_path: Path) -> None:
    record = read(RunFolder(), tmp_path)
    words = texts(record, judge(record))
    assert f'data-link="{LINK}" class="broken"' in words["drawing"]
    assert words["drawing"].count('class="broken"') == 1
    assert words["not_drawn"] == 0
    assert words["broken"] == [
        {"fault": "cut", "what": f"link-down {LINK}", "state": "broken", "word": "broken", "when": "3.5\u20134.5 s"}
    ]


def test_timelines_show_the_paths_that_left_good_by_fault(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.events += [ev("h1", "h0", 1, 0, 6, "GOOD", "SKIP"), ev("h1", "h0", 1, 0, 6.5, "SKIP", "GOOD")]
    folder.events += [
        {"event": "port_state", "t_ns": at(7), "host": "h2", "peer": peer, "plane": 1, "state": "DOWN"}
        for peer in (None, "h0")
    ]
    record = read(folder, tmp_path)
    shown = timelines(record, clock(record))
    assert [group["title"] for group in shown["groups"]] == ["cut", "no fault", "NIC ports, as hosts saw them"]
    cut, calm, ports = (group["rows"] for group in shown["groups"])
    assert cut[0] == {"label": "h0\u2192h2 p0 t1-1", "first": "G", "t": [3.6, 4.7], "s": "BG"}
    assert calm == [{"label": "h1\u2192h0 p1", "first": "G", "t": [6.0, 6.5], "s": "SG"}]
    assert [row["label"] for row in ports] == ["h0 port 1, told to h2", "h2 port 1"]
    # A ring of 4 hosts, 2 planes: both ways to one neighbour in the group, one path a plane, and to one across, two.
    assert shown["all"] == 4 * 2 * (1 + 2)


def test_a_path_over_three_tiers_names_the_switches_between_its_t0s(tmp_path: Path) -> None:
    folder = RunFolder(scenario=THREE_TIERS)
    folder.events += [ev("h1", "h0", 1, 0, 6, "GOOD", "SKIP"), ev("h1", "h0", 1, 0, 6.5, "SKIP", "GOOD")]
    record = read(folder, tmp_path)
    shown = timelines(record, clock(record))
    labels = [row["label"] for group in shown["groups"] for row in group["rows"]]
    assert labels == ["h0\u2192h2 p0 t1-1 t2-1 t1-3", "h3\u2192h1 p0 t1-3 t2-1 t1-1", "h1\u2192h0 p1"]
    assert shown["named"] == "plane and switches between T0s"
    assert shown["all"] == 4 * 2 * (1 + 2), "two T2s, so two ways to the other pod"
    assert "2 planes of 2 T0 + 4 T1 + 2 T2" in texts(record, judge(record))["story"]["setup"]


def test_evs_that_switches_hash_are_named_by_their_number(tmp_path: Path) -> None:
    folder = RunFolder(scenario=SCENARIO.replace("rtt: 20ms}", "rtt: 20ms}\ntransport: mrc-hashed"))
    record = read(folder, tmp_path)
    shown = timelines(record, clock(record))
    assert [row["label"] for row in shown["groups"][0]["rows"]] == ["h0\u2192h2 p0 EV 1", "h3\u2192h1 p0 EV 1"]
    assert shown["named"] == "plane and EV"


@pytest.mark.parametrize("torn", [False, True])
def test_samples_are_what_nic_ports_received_and_what_was_dropped(tmp_path: Path, torn: bool) -> None:
    rows = [
        (1, "h0", "port0", 100, 0, 0, 0, 0, 0),
        (1, "p0-t0-0", "up0", 7, 0, 0, 0, 0, 2),
        (2, "h0", "port0", 300, 0, 1, 0, 0, 0),
        (2, "p0-t0-0", "up0", 9, 0, 0, 0, 0, 2),
    ]
    text = SAMPLES_HEAD + "".join(",".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "samples.csv").write_text(text + ("3,h0,port0,40" if torn else ""))
    samples = read_samples(tmp_path)
    assert samples.times_ns == [1, 2]
    assert {key: list(line) for key, line in samples.received.items()} == {("h0", "port0"): [100, 300]}
    assert samples.drops == [(1, "p0-t0-0", "up0", 2), (2, "h0", "port0", 1)]


def test_without_samples_there_are_none(tmp_path: Path) -> None:
    assert read_samples(tmp_path) == PortSamples()


def test_a_reading_that_lacks_ports_is_left_out(tmp_path: Path) -> None:
    rows = [(t, host, "port0", 1, 0, 0, 0, 0, 0) for t, host in ((1, "h0"), (1, "h1"), (2, "h0"))]
    (tmp_path / "samples.csv").write_text(SAMPLES_HEAD + "".join(",".join(map(str, row)) + "\n" for row in rows))
    samples = read_samples(tmp_path)
    assert samples.times_ns == [1]
    assert all(len(line) == 1 for line in samples.received.values())


def test_tables_say_which_checks_failed_first_and_where(tmp_path: Path) -> None:
    RunFolder(expect=["qp_errors == 0", "steps_done == 9"]).write(tmp_path)
    with (tmp_path / "scenario.yaml").open("a") as file:
        file.write("  - {warning: steps_done == 10}\n")
    record = load_record(tmp_path)
    rows: list[dict[str, Any]] = texts(record, judge(record))["checks"]
    assert [(row["sign"], row["word"], row["name"]) for row in rows[:3]] == [
        ("\u2717", "fail", "steps_done == 9"),
        ("!", "warning", "steps_done == 10"),
        ("\u2713", "pass", "qp_errors == 0"),
    ]
    assert rows[0]["place"].startswith("scenario.yaml:")
    assert rows[0]["observed"] == "8"


def test_bars_of_fidelity_end_at_a_quarter_beyond_the_limit(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.fidelity is not None
    folder.fidelity |= {"cpu_pressure_some": 0.375, "shaped_rate_error": 0.5, "udp_rcvbuf_errors": 3}
    record = read(folder, tmp_path)
    bars = {bar["name"]: bar for bar in texts(record, judge(record))["fidelity"]}
    assert (bars["CPU pressure"]["share"], bars["CPU pressure"]["limit_at"]) == (40, 80)
    assert (bars["port rate error"]["share"], bars["port rate error"]["ok"]) == (100, False)
    assert (bars["socket drops"]["share"], bars["socket drops"]["limit"]) == (100, "must be 0")
    assert bars["kernel input drops"]["share"] == 0


def test_recovery_has_a_row_a_fault_and_a_row_a_occurrence(tmp_path: Path) -> None:
    record = read(RunFolder(), tmp_path)
    words = texts(record, judge(record))
    (fault,) = words["faults"]
    assert (fault["retired"], fault["recovery"], fault["dropped"]) == ("2", "5.96 rtt, 149 ms", "0")
    (row,) = words["occurrences"]
    assert row["lost"] == "?", "nobody counted by QP in this folder: not known is not none"
    assert (row["begin"], row["end"], row["worst"], row["restored"]) == (
        "3.501",
        "4.502",
        "149 ms",
        "2",
    )


def test_the_page_says_how_to_run_it_again_and_what_the_folder_holds(tmp_path: Path) -> None:
    from mrc_testbed.testbed.pages.report.write import write_report

    folder = tmp_path / "a run"
    folder.mkdir()
    record = read(RunFolder(), folder)
    text = write_report(record, judge(record)).read_text(encoding="utf-8")
    assert f"mrc-testbed replay &#39;{folder}&#39;" in text
    assert f"mrc-testbed run &#39;{folder}&#39;/scenario.yaml" in text
    assert '<a href="events.jsonl">' in text
    assert "name: small" in text
