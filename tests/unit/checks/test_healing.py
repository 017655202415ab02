"""How faults were met: recovery.json, goodput that came back, losses by QP, waiting; hand-made and computed beside.

`cut` is on from 3.501 to 4.502 s, its window ends at 4.752 s; h0 and h3 lose one EV each by it (test_checks_folder).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mrc_testbed.testbed.app.judge import judge_folder
from mrc_testbed.testbed.checks.goodput_series import GoodputPoint, returned
from mrc_testbed.testbed.checks.healing import recovery_document
from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.windows import NoData
from tests.unit.checks.test_flows import FlowFolder
from tests.unit.checks.test_folder import HOSTS, RunFolder, at, ev, fault

PEERS = {"h0": "h2", "h1": "h3", "h2": "h1", "h3": "h0"}


def count_by_qp(folder: RunFolder) -> None:
    """Every host has a QP that sends and one that only receives; h0 lost 5 packets more than the others in the cut."""
    assert folder.counters is not None
    for host, peer in PEERS.items():
        more = 5 if host == "h0" else 0
        folder.counters["hosts"][host]["qps"] = {
            f"{host}>{peer}": {"peer": peer, "sent": 100, "lost": 14 + more},
            "back": {"peer": "h1" if peer == "h0" else "h0", "sent": 0, "lost": 0},
        }
        for event in folder.events:
            if event["event"] == "snapshot" and event["host"] == host:
                lost = event["counters"]["lost_timeout"] + (more if event["t_ns"] > at(4) else 0)
                event["lost"] = {f"{host}>{peer}": lost} if lost else {}


@pytest.fixture
def folder() -> RunFolder:
    made = RunFolder()
    count_by_qp(made)
    return made


def judged(folder: RunFolder, path: Path, line: str) -> CheckResult:
    folder.expect = [line]
    (check,) = [check for check in judge(load_record(folder.write(path))).checks if check.name == line]
    return check


def occurrences(folder: RunFolder, path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = recovery_document(load_record(folder.write(path)))["cycles"]
    return found


def test_a_fault_and_its_recovery_in_figures(folder: RunFolder, tmp_path: Path) -> None:
    folder.events[:2] = [
        ev("h0", "h2", 0, 1, 3.6, "GOOD", "ASSUMED_BAD", lost=3.551, last=3.58),
        ev("h3", "h1", 0, 1, 3.65, "SKIP", "ASSUMED_BAD", lost=3.531, last=3.6),
    ]
    (cut,) = occurrences(folder, tmp_path)
    assert (cut["fault"], cut["cycle"], cut["kind"]) == ("cut", 0, "link-down")
    assert (cut["injected_ms"], cut["healed_ms"]) == (3501, 4502)
    # 2 planes of 25 Mb/s send 50e6 / 8 / 4238 = 1475 packets a second.
    assert cut["first_loss"] == {"ms": 30, "rtt": 1.2, "packets": pytest.approx(44.2, abs=0.1)}
    assert cut["last_sent"]["ms"] == 99
    assert cut["evs_retired"]["number"] == 2
    assert (cut["evs_retired"]["p50"]["ms"], cut["evs_retired"]["p100"]["ms"]) == (84, 119)
    # Of the steps after the injection those from 3.0 and 4.2 s took too long, and the one from 5.3 s did not.
    assert cut["goodput_back"]["ms"] == pytest.approx(5300 - 3501)
    assert cut["goodput_lowest"] == pytest.approx(1 / 1.2, abs=1e-4)
    assert cut["lost"] == {"packets": 45, "qps": 4, "per_qp_max": 15, "per_qp_mean": 11.25}
    assert cut["peers_told"] == {"number": 0, "p100": unknown("no peer reported a port")}
    after = cut["after_heal"]
    assert after["goodput_back"]["ms"] == pytest.approx(5300 - 4502)
    assert after["evs_restored"]["number"] == 2
    assert (after["evs_restored"]["first"]["ms"], after["evs_restored"]["last"]["ms"]) == (198, 298)
    assert after["planes_back"]["p100"] == unknown("no peer's port came back")


def test_an_ev_that_came_back_and_was_lost_again_did_come_back(folder: RunFolder, tmp_path: Path) -> None:
    """After the heal of the first cycle both came back; the second cycle took one of them until the end."""
    again = [fault("inject", kind, 6.0, cycle=1) for kind in ("invoke", "ok")]
    folder.history[6:6] = [*again, *(fault("heal", kind, 8.2, cycle=1) for kind in ("invoke", "ok"))]
    folder.events.insert(4, ev("h0", "h2", 0, 1, 6.1, "GOOD", "ASSUMED_BAD", lost=6.05))
    first, second = (one["after_heal"]["evs_restored"] for one in occurrences(folder, tmp_path))
    assert (first["first"]["ms"], first["last"]["ms"]) == (198, 298)
    assert second["last"]["why"] == "1 of 1 EVs did not come back"


def test_an_ev_that_a_detour_brought_back_did_not_come_back_after_the_heal(folder: RunFolder, tmp_path: Path) -> None:
    """It was back before; what a later fault made of it is no matter of this one."""
    again = [fault("inject", kind, 6.0, cycle=1) for kind in ("invoke", "ok")]
    folder.history[6:6] = [*again, *(fault("heal", kind, 8.2, cycle=1) for kind in ("invoke", "ok"))]
    folder.events[:] = [
        event for event in folder.events if (event["event"], event.get("peer")) != ("ev_state", "h2")
    ] + [
        ev("h0", "h2", 0, 1, 3.6, "GOOD", "ASSUMED_BAD", lost=3.551),
        ev("h0", "h2", 0, 1, 3.8, "ASSUMED_BAD", "GOOD"),
        ev("h0", "h2", 0, 1, 6.1, "GOOD", "ASSUMED_BAD", lost=6.05),
        ev("h0", "h2", 0, 1, 8.3, "ASSUMED_BAD", "GOOD"),
    ]
    folder.events.sort(key=lambda event: event["t_ns"])
    first, second = (one["after_heal"]["evs_restored"] for one in occurrences(folder, tmp_path))
    assert (first["number"], first["last"]["ms"]) == (1, 298)  # that of h3 alone
    assert (second["number"], second["last"]["ms"]) == (1, 100)


@pytest.mark.parametrize("line", ["lost_per_qp.max of each host <= 99", "stall.p100 of each host <= 1s"])
def test_a_host_that_only_receives_does_not_count_among_each(folder: RunFolder, tmp_path: Path, line: str) -> None:
    """An incast left such a check open for ever; a host without its QPs still does."""
    assert folder.counters is not None
    for event in folder.events:
        if event["event"] == "snapshot":
            event["stalled"] = {}
    for qp in folder.counters["hosts"]["h2"]["qps"].values():
        qp["sent"] = 0
    assert judged(folder, tmp_path, line).status is Status.PASS
    del folder.counters["hosts"]["h2"]["qps"]
    assert judged(folder, tmp_path, line).status is Status.INCONCLUSIVE


def unknown(why: str) -> dict[str, Any]:
    return {"ms": None, "rtt": None, "packets": None, "why": why}


def test_what_is_not_known_is_null_with_its_reason(folder: RunFolder, tmp_path: Path) -> None:
    folder.events, folder.completions, folder.counters = [], [], None
    folder.history = [line for line in folder.history if line.get("op") != "heal"]
    (cut,) = occurrences(folder, tmp_path)
    assert cut["healed_ms"] is None
    assert cut["first_loss"] == cut["last_sent"] == unknown("no EV was retired by it")
    assert cut["goodput_back"]["why"] == "no step was finished outside all faults"
    assert cut["goodput_lowest"] is None
    assert cut["lost"]["packets"] is cut["lost"]["per_qp_max"] is None
    assert cut["lost"]["why"].startswith("no final counters")
    for figure in ("goodput_back", "evs_restored", "planes_back"):
        told = cut["after_heal"][figure]
        assert "it was not healed" in json.dumps(told)


def test_without_a_base_rtt_times_are_known_in_ms_alone(folder: RunFolder, tmp_path: Path) -> None:
    folder.environment = {}
    (cut,) = occurrences(folder, tmp_path)
    worst = cut["evs_retired"]["p100"]
    assert (worst["ms"], worst["rtt"], worst["why"]) == (149, None, "the base RTT was not measured in warm-up")


def test_each_occurrence_has_its_own_kind_target_and_figures(folder: RunFolder, tmp_path: Path) -> None:
    other = {"cycle": 1, "kind": "one-way", "target": "h0:p1-t0-0", "links": ["h0:p1-t0-0"]}
    folder.history[6:6] = [{**fault(op, "ok", t), **other} for op, t in (("inject", 6), ("heal", 6.5))]
    folder.events.append(ev("h0", "h2", 1, 0, 6.1, "GOOD", "ASSUMED_BAD", lost=6.05))
    first, second = occurrences(folder, tmp_path)
    assert (first["kind"], first["evs_retired"]["number"]) == ("link-down", 2)
    assert (second["kind"], second["target"], second["evs_retired"]["number"]) == ("one-way", "h0:p1-t0-0", 1)
    assert second["first_loss"]["ms"] == 50


def port(host: str, peer: str | None, plane: int, seconds: float, state: str) -> dict[str, Any]:
    where = {"host": host, "peer": peer, "plane": plane, "state": state}
    return {"event": "port_state", "t_ns": at(seconds), **where}


def test_peers_that_are_told_leave_and_come_back(folder: RunFolder, tmp_path: Path) -> None:
    folder.break_instead('link-down: "h3:p0-t0-1"')
    folder.events += [
        port("h3", None, 0, 3.502, "DOWN"),  # its own port, by carrier
        port("h0", "h3", 0, 3.521, "DOWN"),
        port("h1", "h3", 0, 3.551, "DOWN"),
        port("h1", "h3", 0, 3.561, "RISING"),
        port("h1", "h3", 1, 3.571, "DOWN"),  # another plane
        port("h1", "h2", 0, 3.571, "DOWN"),  # another host
        port("h0", "h3", 0, 4.552, "UP"),
    ]
    (cut,) = occurrences(folder, tmp_path)
    assert (cut["peers_told"]["number"], cut["peers_told"]["p100"]["ms"]) == (2, 50)
    back = cut["after_heal"]["planes_back"]
    assert (back["number"], back["p100"]["ms"]) == (1, 50)


def test_the_file_and_the_table_are_written_with_the_verdict(folder: RunFolder, tmp_path: Path) -> None:
    console = Console(quiet=True)
    judge_folder(folder.write(tmp_path), console, quiet=True)
    written = json.loads((tmp_path / "recovery.json").read_text())
    assert written["goodput_grain"] == "job steps"
    assert written["base_rtt_ns"] == 25_000_000
    assert [one["fault"] for one in written["cycles"]] == ["cut"]
    text = " ".join((tmp_path / "summary.txt").read_text().split())
    assert "cut 0 ms 0 ms 1.8 s 15 - 298 ms" in text


SPAN = Interval(100, 1000)


def points(shares: list[float]) -> list[GoodputPoint]:
    """Stretches of 100; the first one began 50 before SPAN."""
    return [GoodputPoint(Interval(50 + 100 * n, 150 + 100 * n), share) for n, share in enumerate(shares)]


@pytest.mark.parametrize(
    ("shares", "after", "lowest"),
    [
        ([1, 1, 1, 1], 0, 1),
        ([0.96, 0.95, 1, 1], 0, 0.95),
        ([0.5, 0.9, 0.95, 1, 1], 150, 0.5),
        ([1, 1, 1, 1, 0.57, 1, 1, 1], 450, 0.57),  # three good ones before it are no return
        ([0.5, 1, 1, 1, 0.57, 1, 1, 1], 450, 0.5),
        ([0.5, 1, 0.5, 1, 1, 1], 250, 0.5),
        ([1, 1, 1, 1, 1, 1, 0.5, 1], 0, 1),  # began when the fault's window was over
        ([1, 1, 1, 1, 0.5, 1, 0.5, 1, 1], 650, 0.5),  # after the window, but before three in a row were good
        ([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1], 650, 0.5),
        ([0.5, 1, 1, 1, 0.2], None, 0.2),
        ([0.5], None, 0.5),
    ],
)
def test_goodput_is_back_after_the_last_low_stretch_of_the_window(
    shares: list[float], after: float | None, lowest: float
) -> None:
    found = returned(points(shares), SPAN, watched_until_ns=600)
    assert (found.after_ns, found.lowest) == (after, lowest)


def test_points_outside_the_span_are_no_evidence() -> None:
    with pytest.raises(NoData, match="no whole step or stretch"):
        returned(
            [
                GoodputPoint(Interval(0, 100), 1),
                GoodputPoint(Interval(1000, 1100), 1),
                GoodputPoint(Interval(950, 1050), 0.5),
            ],
            SPAN,
            SPAN.end,
        )
    assert returned([GoodputPoint(Interval(950, 1050), 1)], SPAN, SPAN.end).after_ns == 0, (
        "good although the next fault lies in it"
    )


def test_a_low_step_is_not_passed_over_because_the_next_fault_begins_before_its_end() -> None:
    """No step lies between the two faults, and the one that fills most of that time was slow: not back, not 0."""
    good, low = GoodputPoint(Interval(-800, 200), 1), GoodputPoint(Interval(200, 1200), 0.9)
    found = returned([good, low], SPAN, SPAN.end)
    assert (found.after_ns, found.known_ns, found.lowest) == (None, 900, 0.9)
    short = [GoodputPoint(Interval(100, 900), 1), GoodputPoint(Interval(900, 1050), 0.5)]
    assert returned(short, SPAN, SPAN.end).after_ns == 0, "a stretch between the faults was good: the next one's"


@pytest.mark.parametrize("first", [1, 0.9])
def test_unknown_time_is_refused_whether_goodput_fell_before_it_or_not(first: float) -> None:
    known = points([first, 1, 1, 1, 1])
    with pytest.raises(NoData, match="not known for"):
        returned(known, SPAN, SPAN.end, longest_gap_ns=200)
    until = known[-1].time.end
    assert returned(known, SPAN, until, longest_gap_ns=200).after_ns is not None


@pytest.mark.parametrize("longer", [RunFolder(), RunFolder(durations=[1.0] * 8), FlowFolder()])
def test_a_fault_that_outlasts_what_is_measured_leaves_nothing_unknown(longer: RunFolder, tmp_path: Path) -> None:
    """Something else keeps the workload going; what the figure is about has ended."""
    longer.history = [line for line in longer.history if line.get("op") != "heal"]
    longer.history[-2]["t_ns"] = at(20.1)
    check = judged(longer, tmp_path, "goodput_back.p100 <= 2 s during cut")
    assert (check.status, check.why) == (Status.PASS, "")


@pytest.mark.parametrize(
    ("line", "status", "observed"),
    [
        ("goodput_back.p100 <= 2 s during cut", Status.PASS, 1.799),
        ("goodput_back.p100 <= 1 s during faults", Status.FAIL, 1.799),
        ("goodput_back.p100 <= 1 s after cut heals", Status.PASS, 0.798),
        ("goodput_back.p50 of h1 <= 1 s after cut heals + 100ms", Status.PASS, 0.697),
    ],
)
def test_when_goodput_was_back(folder: RunFolder, tmp_path: Path, line: str, status: Status, observed: float) -> None:
    check = judged(folder, tmp_path, line)
    assert (check.status, check.observed) == (status, pytest.approx(observed, abs=2e-3))


def test_goodput_that_was_not_seen_to_come_back_is_a_fail_only_if_it_took_too_long(tmp_path: Path) -> None:
    folder = RunFolder(durations=[1.0, 1.0, 1.0, 1.2, 1.1, 1.0, 2.0, 2.0])
    late = judged(folder, tmp_path, "goodput_back.p100 <= 3 s during cut")
    assert late.status is Status.FAIL
    assert late.observed == pytest.approx(8.3 - 3.501), "at least"
    early = judged(folder, tmp_path, "goodput_back.p100 <= 30 s during cut")
    assert early.status is Status.INCONCLUSIVE
    assert early.why.startswith("goodput did not return in the")
    assert judged(folder, tmp_path, "goodput_back.p100 >= 1 s during cut").status is Status.PASS, "it took longer"
    assert judged(folder, tmp_path, "goodput_back.p100 >= 30 s during cut").status is Status.INCONCLUSIVE


def test_goodput_of_flows_comes_back_with_a_grain_of_100_ms(tmp_path: Path) -> None:
    folder = FlowFolder()
    (cut,) = occurrences(folder, tmp_path)
    assert cut["goodput_back"]["ms"] == pytest.approx(500), "the five stretches from 3.0 to 3.5 s had half"
    assert cut["goodput_lowest"] == pytest.approx(0.5, abs=1e-3)
    assert cut["after_heal"]["goodput_back"]["ms"] == 0
    assert judged(folder, tmp_path, "goodput_back.p100 of each flow <= 500ms during cut").status is Status.PASS
    assert judged(folder, tmp_path, "goodput_back.p100 of each flow <= 499ms during cut").status is Status.FAIL


class FallsLate(FlowFolder):
    """For four stretches nothing is to be seen of the fault; then goodput falls to 57 %."""

    def row(self, name: str, begin: float) -> list[Any]:
        row = super().row(name, begin)
        usual = super().row(name, 1.0)[5]
        row[5] = 0 if begin < 0.35 else round(0.57 * usual) if 3.35 < begin < 3.45 else usual
        return row


def test_goodput_that_falls_a_while_after_the_injection_was_not_back_at_once(tmp_path: Path) -> None:
    (cut,) = occurrences(FallsLate(), tmp_path)
    assert cut["goodput_back"]["ms"] == pytest.approx(500)
    assert cut["goodput_lowest"] == pytest.approx(0.57, abs=1e-3)
    assert cut["goodput_fell"] is True
    assert judged(FallsLate(), tmp_path, "goodput_back.p100 <= 400ms during cut").status is Status.FAIL


def test_goodput_that_never_fell_is_said_in_words(tmp_path: Path) -> None:
    folder = RunFolder(durations=[1.0] * 8, expect=["goodput_back.p100 <= 1 s during cut"])
    (cut,) = occurrences(folder, tmp_path)
    assert (cut["goodput_back"]["ms"], cut["goodput_fell"]) == (0, False)
    verdict = judge_folder(tmp_path, Console(quiet=True), quiet=True).verdict
    assert verdict is not None
    assert (verdict.checks[0].status, verdict.checks[0].observed) == (Status.PASS, 0)
    text = (tmp_path / "summary.txt").read_text()
    (check,) = [row for row in text.splitlines() if "goodput_back.p100" in row]
    assert check.split()[-3:] == ["never", "fell", "100%"]
    assert text.count("never fell") == 2, "in the check and in the table of recovery"


def test_the_worst_of_several_cycles_is_at_least_what_is_known_of_them(tmp_path: Path) -> None:
    folder = RunFolder(durations=[1.0, 1.0, 1.0, 1.2, 1.1, 1.2, 1.2, 1.2])
    count_by_qp(folder)
    folder.history[6:6] = [{**fault(op, "ok", t), "cycle": 1} for op, t in (("inject", 5.9), ("heal", 6.5))]
    first, second = occurrences(folder, tmp_path)
    assert (first["goodput_back"]["ms"], second["goodput_back"]["ms"]) == (None, None)
    assert (first["goodput_fell"], second["goodput_fell"]) == (True, True)
    judge_folder(tmp_path, Console(quiet=True), quiet=True)
    text = " ".join((tmp_path / "summary.txt").read_text().split())
    assert "cut 0 ms 0 ms ? 15" in text


@pytest.mark.parametrize(
    ("line", "observed"),
    [
        ("lost_per_qp.max <= 99", 19),
        ("lost_per_qp.min <= 99", 14),  # ends that only receive are no QPs that lost nothing
        ("lost_per_qp.mean <= 99 during cut", 11.25),
        ("lost_per_qp.max of h1 <= 99 during cut", 10),
        ("lost_per_qp.max of h0->h2 <= 99 during cut", 15),
        ("packets_lost of h0->h2 <= 99", 19),
        ("packets_lost of h1->h3 <= 99 during cut", 10),
    ],
)
def test_losses_by_qp(folder: RunFolder, tmp_path: Path, line: str, observed: float) -> None:
    folder.scenario = folder.scenario.replace("{steps", "{hosts: [h0, h2, h1, h3], steps")  # the ring that PEERS says
    check = judged(folder, tmp_path, line)
    assert (check.status, check.observed) == (Status.PASS, observed)


def test_losses_by_qp_that_nobody_counted_are_not_zero(tmp_path: Path) -> None:
    for line in ("lost_per_qp.max <= 99", "lost_per_qp.max <= 99 during cut", "packets_lost of h0->h1 <= 99"):
        check = judged(RunFolder(), tmp_path, line)
        assert (check.status, check.why) == (Status.INCONCLUSIVE, "h0 did not count packets by QP")


WAITS = [("h1", 3, "h0", 30), ("h1", 4, "h0", 20), ("h1", 0, "h0", 99), ("h2", 3, "h1", 5), ("h2", 3, "h0", 6)]


@pytest.mark.parametrize(
    ("line", "observed"),
    [
        ("wait_time.max <= 1 s", 99),
        ("wait_time.max <= 1 s during cut", 30),
        ("wait_time.min <= 1 s during cut", 0),  # a step without a row is one without waiting
        ("wait_time.max of h2 <= 1 s", 11),
        ("wait_time.mean of h1->h0 <= 1 s during cut", 25),
        ("wait_time.max of each host <= 1 s during cut", 30),
    ],
)
def test_waiting(tmp_path: Path, line: str, observed: float) -> None:
    folder = RunFolder()
    rows = [f"{host},{step},{peer},{ms * 1_000_000}" for host, step, peer, ms in WAITS]
    rows += [f"{host},3,h0,1000000" for host in ("h0", "h3")]
    folder.expect = [line]
    folder.write(tmp_path)
    (tmp_path / "waits.csv").write_text("\n".join(["host,step,peer,wait_ns", *rows]) + "\n")
    (check, *_) = judge(load_record(tmp_path)).checks
    assert check.observed == pytest.approx(observed / 1000)


def test_waiting_that_was_not_recorded_is_not_none_at_all(tmp_path: Path) -> None:
    check = judged(RunFolder(), tmp_path, "wait_time.max <= 1 s during cut")
    assert (check.status, check.why) == (Status.INCONCLUSIVE, "no waiting was recorded during cut")


def warned(folder: RunFolder, path: Path, *lines: str) -> Any:
    text = "".join(f"  - {line}\n" for line in lines)
    folder.write(path)
    scenario = path / "scenario.yaml"
    scenario.write_text(scenario.read_text().replace("  []\n", text))
    return judge(load_record(path))


@pytest.mark.parametrize(
    ("line", "status"), [("steps_done == 9", Status.FAIL), ("recovery.p50 of h1 <= 1 ms", Status.INCONCLUSIVE)]
)
def test_a_warning_decides_nothing_but_is_shown(tmp_path: Path, line: str, status: Status) -> None:
    verdict = warned(RunFolder(), tmp_path, f"warning: {line}", "qp_errors == 0")
    assert verdict.checks[0].status is status
    assert (verdict.checks[0].level, verdict.checks[0].line) == ("warning", 9)
    assert (verdict.status, verdict.exit_code) == (Status.PASS, 0)
    judge_folder(tmp_path, Console(quiet=True), quiet=True)
    text = (tmp_path / "summary.txt").read_text()
    assert text.splitlines()[-1] == f"warning: {line}"
    assert any(row.startswith("warn") and line in row for row in text.splitlines())


def test_a_fail_is_shown_with_its_place(tmp_path: Path) -> None:
    verdict = warned(RunFolder(), tmp_path, "qp_errors == 0", "steps_done == 9", "warning: steps_done == 8")
    assert (verdict.status, verdict.warnings) == (Status.FAIL, ())
    judge_folder(tmp_path, Console(quiet=True), quiet=True)
    assert "scenario.yaml:10" in (tmp_path / "summary.txt").read_text()
    assert len(HOSTS) == 4
