"""What was measured on the emulator at the scale of a plan: which runs count, and what grows with a round trip."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.app.comparison import compare_folders
from mrc_testbed.testbed.app.measured import measured_waits
from mrc_testbed.testbed.compare.runs import load_runs
from mrc_testbed.testbed.compare.waits import waits_of
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.planner.arithmetic.bridge import FaultWait, MeasuredWaits, priced
from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, Provenance
from mrc_testbed.testbed.planner.arithmetic.recovery import PathRecovery
from tests.unit.checks.test_folder import RTT_NS, SCENARIO, RunFolder, at, ev, fault
from tests.unit.checks.test_judge import break_off
from tests.unit.checks.test_outage import stall, watched
from tests.unit.compare.test_transports import TCP, three, variant
from tests.unit.recorded import record_run

RTT_S = 10e-6
RTT = MarkedNumber(10, "us", Provenance.GIVEN, "--rtt", 10, 10)
SOME = st.floats(1e-6, 100)
NO_FAULTS = SCENARIO.partition("faults:")[0] + "expect:\n"


def prices(*names: Path) -> dict[str, PathRecovery]:
    return {one.name: one for each in measured_waits(names)[0] for one in priced(each, RTT)}


def test_mrc_is_priced_by_its_round_trips(tmp_path: Path) -> None:
    """Two EVs were retired 0.05 s after their first lost packet, and 0.149 s after the cut."""
    run = record_run(tmp_path / "20261122T000000Z-small", watched(stall("h0", "h1", 3.55, 3.65)))
    found = prices(run)
    assert list(found) == ["MRC: recovery, in round trips", "MRC: stall, in round trips"]
    recovery = found["MRC: recovery, in round trips"].stall
    assert recovery.mark is Provenance.MEASURED
    assert recovery.value == pytest.approx(0.149 / (RTT_NS / 1e9) * RTT_S)
    assert (recovery.low, recovery.high) == pytest.approx(((0.05 + 0.149) / 2 / 0.025 * RTT_S, recovery.value))
    for told in (run.name, "recovery.p100 in 1 of 1 occurrence,", "5.96 base RTTs of 25 ms", "over srv6", "x 10 us"):
        assert told in recovery.source
    assert found["MRC: stall, in round trips"].stall.value == pytest.approx(0.1 / 0.025 * RTT_S)


def test_timers_of_software_stay_in_seconds_and_say_what_they_would_be(tmp_path: Path) -> None:
    found = prices(record_run(tmp_path / "tcp", variant(TCP, stall("h0", "h1", 3.55, 8.1))))
    seconds, trips = found["TCP, cubic: stall, in seconds"].stall, found["TCP, cubic: stall, in round trips"].stall
    assert seconds.value == pytest.approx(4.55)
    assert trips.value == pytest.approx(4.55 / 0.025 * RTT_S)
    assert "TCP's least retransmission timeout of 200 ms, and how long faults last, 1 s here" in seconds.source
    assert "what sets it does not shrink so" in trips.source


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("endpoint: {timeout: 60ms}\n", "endpoint.timeout of 60 ms"),
        ("endpoint: {reorder_time: 30ms}\n", "endpoint.reorder_time of 30 ms"),
    ],
)
def test_mrc_with_timers_in_seconds_is_priced_both_ways(tmp_path: Path, keys: str, told: str) -> None:
    found = prices(record_run(tmp_path / "set", variant(keys)))
    assert told in found["MRC: recovery, in seconds"].stall.source


def test_timers_of_mrc_do_not_shrink_with_a_short_t(tmp_path: Path) -> None:
    folder = watched()
    folder.scenario = SCENARIO.replace("rtt: 20ms", "rtt: 2ms")
    folder.environment["base_rtt_ns"] = 2_500_000
    found = prices(record_run(tmp_path / "short", folder))
    assert "MRC's least timeout of 10 ms" in found["MRC: recovery, in seconds"].stall.source


def test_a_stall_of_mrc_that_only_the_heal_ended_lasts_as_long_as_the_fault(tmp_path: Path) -> None:
    found = prices(record_run(tmp_path / "waited", watched(stall("h0", "h1", 3.55, 4.6))))
    assert found["MRC: stall, in seconds"].stall.value == pytest.approx(1.05)
    assert "how long faults last, 1 s here" in found["MRC: stall, in seconds"].stall.source
    assert "MRC: recovery, in seconds" not in found


def flapped(*stalls: dict[str, Any]) -> RunFolder:
    """The link fell twice, for 1 s; an EV was retired 0.149 s after the first time, and 0.05 s after the second."""
    folder = watched(*stalls)
    once, twice = "at: 3500ms, link-down: ", "at: 3500ms, link-flap: "
    folder.scenario = SCENARIO.replace(once, twice).replace("for: 1s", "period: 2500ms, count: 2, duty: 0.4")
    again = [("inject", "invoke", 6), ("inject", "ok", 6.001), ("heal", "invoke", 7), ("heal", "ok", 7.002)]
    folder.history[6:6] = [fault(op, kind, seconds, cycle=1) for op, kind, seconds in again]
    for line in folder.history:
        line |= {"kind": "link-flap"} if "fault" in line else {}
    folder.events.append(ev("h0", "h2", 0, 1, 6.1, "GOOD", "ASSUMED_BAD", lost=6.05))
    return folder


def test_each_time_that_a_link_falls_counts_by_itself(tmp_path: Path) -> None:
    """A rate of single flaps is multiplied by it, so the worst of all must not be taken for each."""
    stalls = stall("h0", "h1", 3.55, 3.65), stall("h0", "h1", 6.05, 6.35)
    found = prices(record_run(tmp_path / "run", flapped(*stalls)))
    recovery, stood = (found[f"MRC: {what}, in round trips"].stall for what in ("recovery", "stall"))
    assert recovery.value == pytest.approx((0.149 + 0.05) / 2 / 0.025 * RTT_S)
    assert (recovery.low, recovery.high) == pytest.approx((0.05 / 0.025 * RTT_S, 0.149 / 0.025 * RTT_S))
    assert "recovery.p100 in 2 of 2 occurrences, 2-5.96 base RTTs" in recovery.source
    assert stood.value == pytest.approx((0.1 + 0.3) / 2 / 0.025 * RTT_S)
    assert "stall.p100 in 2 of 2 occurrences, 4-12 base RTTs" in stood.source


def test_a_stall_counts_whole_in_each_occurrence_that_may_have_caused_it(tmp_path: Path) -> None:
    long = prices(record_run(tmp_path / "both", flapped(stall("h0", "h1", 4.6, 6.1))))
    assert "stall.p100 in 2 of 2 occurrences, 60 base" in long["MRC: stall, in round trips"].stall.source
    short = prices(record_run(tmp_path / "one", flapped(stall("h0", "h1", 6.05, 6.35))))
    assert "stall.p100 in 1 of 2 occurrences, 12 base" in short["MRC: stall, in round trips"].stall.source


def test_a_stall_is_held_against_the_occurrence_that_it_was_in(tmp_path: Path) -> None:
    """As a comparison does: a short flap may have held it up, whatever others of the same fault lasted."""
    folder = flapped(stall("h0", "h1", 6.02, 6.12))
    for line in folder.history:
        if line.get("cycle") == 1 and line.get("fault") and line["op"] == "heal":
            line["t_ns"] -= 900_000_000
    found = prices(record_run(tmp_path / "short", folder))
    assert "how long faults last, 101 ms to 1 s here" in found["MRC: stall, in seconds"].stall.source


def test_seconds_of_a_scaled_run_are_those_of_the_scenario_as_written(tmp_path: Path) -> None:
    keys = "world: virtual\nscale: 1000\ntransport: roce\n"
    (run,) = load_runs([record_run(tmp_path / "scaled", variant(keys, stall("h0", "h1", 3.55, 3.5584)))])
    (waits,) = waits_of([run])
    waited = next(priced(waits, RTT)).stall
    assert waited.value == pytest.approx(8.4)
    assert "in seconds as written, 1000 times those measured" in waited.source


def test_a_stall_no_longer_than_without_faults_is_not_the_faults(tmp_path: Path) -> None:
    found = prices(record_run(tmp_path / "usual", watched(stall("h0", "h1", 3.55, 3.65), stall("h2", "h3", 1, 1.1))))
    assert list(found) == ["MRC: recovery, in round trips"]


def test_a_comparison_stands_for_its_runs_and_one_that_died_is_left_out(tmp_path: Path) -> None:
    folder = compare_folders(three(tmp_path), tmp_path).folder
    waits, left_out = measured_waits([folder])
    assert [(each.name, each.what) for each in waits] == [
        *(("MRC", "recovery"), ("MRC", "stall"), ("TCP, cubic", "stall"))
    ]
    assert len(left_out) == 1
    assert "job died at 4.4 s: QP h0->h2: retries: that costs a restart" in left_out[0]


def test_repeats_count_together_and_settings_tell_others_apart(tmp_path: Path) -> None:
    pace = "endpoint: {ev_active: 2}\n"
    folders = [record_run(tmp_path / name, variant(keys)) for name, keys in (("a", ""), ("b", ""), ("c", pace))]
    waits, _ = measured_waits([*folders, folders[0]])
    assert [(each.name, each.runs) for each in waits] == [
        ("MRC (ev_active=2)", ("c",)),
        ("MRC (ev_active=128)", ("a", "b")),
    ]
    assert [each.occurrences for each in waits] == [1, 2]


def test_variants_and_scenarios_tell_runs_over_one_transport_apart(tmp_path: Path) -> None:
    each = (f"{TCP}variant: tcp\n", f"{TCP}variant: tcp-4\ntcp: {{connections: 4}}\n")
    runs = [variant(keys, stall("h0", "h1", 3.55, 8.1)) for keys in each]
    folders = [record_run(tmp_path / str(number), run) for number, run in enumerate(runs)]
    assert [found.name for found in measured_waits(folders)[0]] == ["TCP, cubic (tcp)", "TCP, cubic (tcp-4)"]
    other = variant(each[0], stall("h0", "h1", 3.55, 8.1))
    other.scenario = other.scenario.replace("name: small", "name: other").replace("steps: 8", "steps: 7")
    folders.append(record_run(tmp_path / "other", other))
    found = {waits.name for waits in measured_waits(folders)[0]}
    assert found == {"TCP, cubic (small, tcp)", "TCP, cubic (small, tcp-4)", "TCP, cubic (other, tcp)"}


def test_a_folder_of_runs_stands_for_all_of_them(tmp_path: Path) -> None:
    for name in ("20261122T000000Z-small", "20261122T000001Z-small"):
        record_run(tmp_path / name, watched())
    (waits,) = measured_waits([tmp_path])[0]
    assert len(waits.runs) == 2


def test_a_run_in_which_nobody_waited_is_left_out(tmp_path: Path) -> None:
    folders = [record_run(tmp_path / name, run) for name, run in (("mrc", watched()), ("tcp", variant(TCP)))]
    waits, left_out = measured_waits(folders)
    assert [each.name for each in waits] == ["MRC"]
    assert left_out == [f"--measured {tmp_path}/tcp: no path was left and no QP stalled because of a fault; left out"]


def late(folder: RunFolder) -> RunFolder:
    assert folder.fidelity is not None
    folder.fidelity["lateness_p99_ns"]["h0"] = 900_000_000
    return folder


def killed(folder: RunFolder) -> RunFolder:
    folder.history = folder.history[:4]
    folder.history.append({"t_ns": at(5), "op": "interrupt", "type": "info", "error": "killed"})
    folder.counters, folder.fidelity = {"hosts": {}}, None
    return folder


def calm(folder: RunFolder) -> RunFolder:
    folder.scenario = NO_FAULTS
    folder.history = [line for line in folder.history if line.get("fault") is None]
    folder.events = [event for event in folder.events if event["event"] != "ev_state"]
    return folder


def unhurt(folder: RunFolder) -> RunFolder:
    folder.events = [event for event in folder.events if event["event"] != "ev_state"]
    return folder


def written(folder: Path, run: RunFolder) -> Path:
    """Not judged."""
    folder.mkdir()
    return run.write(folder)


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (late(watched()), "the machine did not keep time: timers"),
        (killed(watched()), "it did not end by itself: killed"),
        (break_off(watched()), "job died at 4.4 s"),
        (calm(watched()), "nothing broke in it, so there is nothing to recover from"),
        (unhurt(watched()), "no path was left and no QP stalled because of a fault"),
    ],
    ids=["late", "killed", "died", "calm", "unhurt"],
)
def test_a_run_that_says_nothing_is_refused_in_one_line(tmp_path: Path, run: RunFolder, says: str) -> None:
    folder = written(tmp_path / "run", run)
    with pytest.raises(UsageError) as refusal:
        measured_waits([folder])
    assert str(refusal.value).startswith(f"--measured {folder}: ")
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def damage(folder: Path) -> None:
    (folder / "events.jsonl").write_text("not json\n{}\n")


def spoil(folder: Path) -> None:
    (folder / "scenario.yaml").write_text("name: [")


@pytest.mark.parametrize(("change", "says"), [(damage, "line 1 is not JSON"), (spoil, "scenario.yaml:1")])
def test_a_folder_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, change: Any, says: str) -> None:
    folder = written(tmp_path / "run", watched())
    change(folder)
    with pytest.raises(UsageError, match=says) as refusal:
        measured_waits([folder])
    assert "\n" not in str(refusal.value)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "compare").mkdir()
    (tmp_path / "compare" / "compare.json").write_text("{")
    for name, says in (("nothing", "no such run folder"), ("compare", "cannot be read"), (".", "not a run folder")):
        with pytest.raises(UsageError, match=f"--measured .*{says}"):
            measured_waits([tmp_path / name])


def test_a_comparison_finds_its_runs_where_it_was_moved(tmp_path: Path) -> None:
    record_run(tmp_path / "run", watched())
    (tmp_path / "compare").mkdir()
    (tmp_path / "compare" / "compare.json").write_text(json.dumps({"runs": [{"folder": "elsewhere/run"}]}))
    assert measured_waits([tmp_path / "compare"])[0][0].runs == ("run",)


def test_the_job_waits_for_the_slowest_and_the_range_is_what_was_seen(tmp_path: Path) -> None:
    """Another EV, retired sooner, widens the range and leaves the value."""
    folder = watched()
    before = prices(record_run(tmp_path / "one", folder))["MRC: recovery, in round trips"].stall
    folder.events.append(ev("h1", "h3", 0, 1, 3.61, "GOOD", "ASSUMED_BAD", lost=3.6))
    after = prices(record_run(tmp_path / "two", folder))["MRC: recovery, in round trips"].stall
    assert (after.value, after.high) == (before.value, before.high)
    assert after.low < before.low


@given(st.lists(st.tuples(SOME, SOME, SOME), min_size=1, max_size=5), SOME, st.booleans())
def test_prices_grow_with_the_round_trip_unless_seconds_decide(
    seen: list[tuple[float, float, float]], rtt_us: float, seconds: bool
) -> None:
    waits = tuple(FaultWait(min(one, other), max(one, other), rtt) for one, other, rtt in seen)
    told = MeasuredWaits("X", "stall", "stall.p100", ("run",), "srv6", waits, 9, "a timer" if seconds else "")
    short, long = (MarkedNumber(us, "us", Provenance.ASSUMED, "", us / 2, 2 * us) for us in (rtt_us, 2 * rtt_us))
    first, second = list(priced(told, short)), list(priced(told, long))
    assert len(first) == 1 + seconds
    assert second[-1].stall.value == pytest.approx(2 * first[-1].stall.value)
    assert first[0].stall.value == second[0].stall.value or not seconds
    assert all(one.stall.low <= one.stall.value <= one.stall.high for one in first)
