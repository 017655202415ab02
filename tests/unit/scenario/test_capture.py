"""The key `capture`: links and windows are settled before the run, and what cannot be is told with its place."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.fabric.tap import ring_blocks
from mrc_testbed.testbed.pcap.budget import capture_warnings, most_written
from mrc_testbed.testbed.report.capture_facts import capture_lines
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text, scenario_json_schema
from mrc_testbed.testbed.scenario.model.captures import LEAST_SNAP_BYTES, CaptureWindow, LinkCapture, union
from mrc_testbed.testbed.switching.ring import stored_bytes
from mrc_testbed.topos.families.clos2 import clos2_shape
from tests.unit.calls import Call

MS = 10**6
HEAD = """\
name: small
seed: 3
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload:
  - train: {steps: 20, compute: 500ms, allreduce: 2MiB}
faults:
  - {at: 2s, link-flap: "p0-t0-0:p0-t1-1", period: 1s, count: 3, name: flap}
  - {at: cold-start, link-down: "p1-t0-0:p1-t1-1", for: 1s, name: cold}
  - {at: 8s, for: 10ms, name: calm, chaos: {link-down: 1/h}}
capture:
"""
CUT = "p0-t0-0:p0-t1-1"


def load(*entries: str, seed: int | None = None) -> Scenario:
    return load_scenario_text(HEAD + "".join(f"  - {{{entry}}}\n" for entry in entries), "s.yaml", seed=seed)


def mistakes(*entries: str, head: str = HEAD) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario_text(head + "".join(f"  - {{{entry}}}\n" for entry in entries), "s.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_a_window_lies_around_each_occurrence() -> None:
    (capture,) = load(f'links: "{CUT}", around: flap, before: 100ms, after: 200ms').captures
    assert capture == LinkCapture(
        CUT,
        160,
        32 << 20,
        (CaptureWindow(1900 * MS, 2700 * MS), CaptureWindow(2900 * MS, 3700 * MS), CaptureWindow(3900 * MS, 4700 * MS)),
    )
    assert capture.seconds == pytest.approx(2.4)


def test_the_whole_run_needs_no_fault_and_takes_in_all_windows() -> None:
    scenario = load('links: "p0-t0-0:*", around: run', f'links: "{CUT}", around: flap')
    whole = (CaptureWindow(0, scenario.time_limit_ns),)
    assert {capture.link: capture.windows for capture in scenario.captures} == {"p0-t0-0:p0-t1-0": whole, CUT: whole}
    (line,) = capture_lines(scenario)
    assert line == f"capture: p0-t0-0:p0-t1-0, {CUT}; the longest: the whole run; at most 67 MB"
    calm = HEAD[: HEAD.index("faults:")] + "capture:\n  - {links: p0-t0-0:*, around: run}\n"
    assert len(load_scenario_text(calm).captures) == 2


def test_windows_that_touch_are_one() -> None:
    (capture,) = load(f'links: "{CUT}", around: flap').captures
    assert capture.windows == (CaptureWindow(1800 * MS, 5500 * MS),)


def test_a_fault_at_cold_start_is_captured_from_the_workload_on() -> None:
    (capture,) = load(f'links: "{CUT}", around: [cold, flap], after: 100ms').captures
    assert capture.windows[0] == CaptureWindow(0, 1100 * MS)
    assert len(capture.windows) == 4
    assert load(f'links: "{CUT}", around: all, after: 100ms').captures == (capture,)


def test_entries_that_name_a_link_are_one_capture_of_it() -> None:
    one = f'links: "{CUT}", around: cold, after: 0s, snap: 9014B, most: 2MiB'
    other = "links: p0-*, around: flap, before: 0s, after: 0s, most: 1GiB"
    found = {capture.link: capture for capture in load(one, "links: p0-t0-*:*, around: flap").captures}
    assert found[CUT].snap_bytes == 9014
    assert found[CUT].most_bytes == 32 << 20
    assert found[CUT].windows == (CaptureWindow(0, 1000 * MS), CaptureWindow(1800 * MS, 5500 * MS))
    assert list(found) == ["p0-t0-0:p0-t1-0", CUT, "p0-t0-1:p0-t1-0", "p0-t0-1:p0-t1-1"]
    assert "matches none of the links" in mistakes(one, other)[0]


def test_draws_follow_the_seed_and_nothing_else() -> None:
    entry = "links: any 3 of links, around: all"
    links = [tuple(capture.link for capture in load(entry, seed=seed).captures) for seed in (3, 3, 4, 5, 6)]
    assert links[0] == links[1]
    assert len(set(links)) > 1
    assert all(len(set(some)) == 3 for some in links)


def test_a_replay_captures_around_the_recorded_schedule() -> None:
    scenario = load(f'links: "{CUT}", around: flap')
    later = scenario.with_occurrences(occurrence for occurrence in scenario.occurrences if occurrence.number == 2)
    assert later.captures[0].windows == (CaptureWindow(3800 * MS, 5500 * MS),)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=12))
def test_a_union_is_the_same_times_in_windows_apart(drawn: list[tuple[int, int]]) -> None:
    windows = [CaptureWindow(begin, begin + length) for begin, length in drawn]
    merged = union(windows)
    assert {t for w in merged for t in range(*w)} == {t for w in windows for t in range(*w)}
    assert all(one.end_ns < other.begin_ns for one, other in pairwise(merged))


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('links: "p0-t0-0:p0-t1-9", around: flap', "11:14: capture.0.links: there is no link 'p0-t0-0:p0-t1-9'"),
        ('links: [h0:p0-t0-0, "h0"], around: flap', "11:27: capture.0.links.1: h0 is one node; capture needs a link"),
        ("links: switches, around: flap", "switches are not allowed here; capture takes links"),
        ("links: any 99 of links, around: flap", "asks for 99 of links, and there are 16"),
        ("links: links, around: flop", "capture.0.around: there is no fault 'flop'; did you mean 'flap'?"),
        (
            "links: links, around: [flap, zzz]",
            "capture.0.around.1: there is no fault 'zzz'; there are flap, cold, calm",
        ),
        ("links: links, around: [flap, all]", "`all` must be alone"),
        ("links: links, around: 3", "must be the name of a fault, a list of such names, `all` or `run`"),
        ("links: links, around: calm", "this seed draws no fault of 'calm', so nothing would be captured"),
        ("links: links, around: flap, snap: 10B", "10B cuts headers off: it holds no header; 158B is the least"),
        (
            "links: links, around: flap, snap: 100B",
            "holds Ethernet, the outer IPv6 header, the inner IPv6 header only",
        ),
        ("links: links, around: flap, snap: 10KiB", "no frame is longer than 9014B"),
        ("links: links, around: flap, most: 4KiB", "capture.0.most: must be at least 1MiB"),
        ("links: links", "the key 'around' is missing; write for example `around: all`"),
        ("around: all", "the key 'links' is missing"),
        (
            "links: links, around: all, zzz: 3s",
            "unknown key 'zzz'; known here: links, around, before, after, snap, most",
        ),
    ],
)
def test_what_cannot_be_captured_is_refused(entry: str, says: str) -> None:
    (found,) = mistakes(entry)
    assert says in found


def test_all_mistakes_come_at_once_with_those_of_the_rest() -> None:
    found = mistakes("links: h9:*, around: nobody, snap: 1B, most: 1B", head=HEAD.replace("steps: 20", "steps: 0"))
    assert len(found) == 5


def test_without_faults_there_is_nothing_to_capture_around() -> None:
    head = HEAD[: HEAD.index("faults:")] + "capture:\n"
    assert mistakes("links: links, around: all", head=head) == [
        "s.yaml:7:28: capture.0.around: there is no fault to capture around; add one to `faults`, or use `around: run`"
    ]


def test_no_fault_may_be_called_all() -> None:
    found = mistakes("links: links, around: all", head=HEAD.replace("name: flap", "name: all"))
    assert any("'all' means every fault in `capture`; choose another name" in text for text in found)


def test_least_snap_holds_what_wireshark_needs_and_the_default_is_over_it() -> None:
    assert LEAST_SNAP_BYTES == 158
    assert load(f'links: "{CUT}", around: flap, snap: 158B').captures[0].snap_bytes == 158


def test_the_schema_knows_the_key() -> None:
    schema = scenario_json_schema()
    assert schema["properties"]["capture"]["items"] == {"$ref": "#/$defs/Capture"}
    assert set(schema["$defs"]["Capture"]["properties"]) == {"links", "around", "before", "after", "snap", "most"}


def test_validate_tells_what_it_comes_down_to(call: Call, tmp_path: pytest.TempPathFactory) -> None:
    (line,) = capture_lines(load(f'links: "{CUT}", around: flap, after: 100ms'))
    assert line == f"capture: {CUT}: 3 windows, 2.4 s in all; about 1 MB"
    (many,) = capture_lines(load("links: links, around: flap"))
    assert "and 8 more; the longest: 1 window, 3.7 s in all; about 32 MB" in many
    assert list(capture_lines(load_scenario_text(HEAD[: HEAD.index("capture:")], "s.yaml"))) == []
    standard = ("--set", "fabric.port_rate=25mbit", "--set", "fabric.rtt=20ms")
    ended = call("validate", "quickstart", *standard, "--set", "capture.0={links: links, around: all}")
    assert "64 links captured at line rate are" in ended.err


def test_many_captures_are_warned_of_and_few_are_not() -> None:
    shape = clos2_shape(4, 2, 4, 4, 25_000_000, 20_000_000)
    captures = [LinkCapture(f"link{n}", 160, 1 << 25, (CaptureWindow(0, 10**9),)) for n in range(64)]
    (warning,) = capture_warnings(captures, shape, 2)
    assert "14% of this machine's CPUs" in warning
    assert list(capture_warnings(captures[:8], shape, 2)) == []
    assert list(capture_warnings(captures, shape, 16)) == []


def test_what_is_written_is_bounded_by_time_and_by_size() -> None:
    shape = clos2_shape(4, 2, 4, 4, 25_000_000, 20_000_000)
    a_second = LinkCapture(CUT, 160, 1 << 25, (CaptureWindow(0, 10**9),))
    assert most_written(a_second, shape) == int(1.5 * 2 * 25e6 / 8 / 4238 * stored_bytes(160))
    assert most_written(LinkCapture(CUT, 160, 1 << 20, (CaptureWindow(0, 3600 * 10**9),)), shape) == 1 << 20


@pytest.mark.parametrize("rate_bps", [100_000, 25_000_000, 10**9])
@pytest.mark.parametrize("snap_bytes", [158, 9014])
def test_a_ring_holds_two_seconds_unless_that_is_absurd(rate_bps: int, snap_bytes: int) -> None:
    held = ring_blocks(rate_bps, snap_bytes) << 16
    needed = 2 * 2 * rate_bps / 8 / 4238 * stored_bytes(min(snap_bytes, 4238))
    assert held == 32 << 20 or held >= needed
    assert held >= 20 << 16, "a block is handed over every 0.1 s, however empty"
