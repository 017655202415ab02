"""Wrong entries of tables, wrong levels and hindered hosts, in virtual time."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.conservation import Books, Ledger, balance
from mrc_testbed.testbed.errors import ExitCode, FabricError
from mrc_testbed.testbed.rundir.snapshot_lines import SnapshotReader
from mrc_testbed.testbed.runner.books import port_books
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.switching.thresholds import FLAWLESS, LevelFlaws
from mrc_testbed.topos.nodes import Interface
from tests.port_cases import CORE, CORE_LINK, mrc_packet
from tests.unit.virtual.test_run import quiet
from tests.unit.virtual.virtual_stage import Stage

MS = 1_000_000
SWITCH = CORE[0]


def port(stage: Stage, node: str, name: str) -> Interface:
    return next(own for own, _ in stage.plan.ports[node] if own.name == name)


def ledger(stage: Stage, strays: dict[str, frozenset[str]]) -> Ledger:
    """The books of the stage with what nodes had no route for."""
    hosts = {
        name: {
            "data_sent": sum(sent),
            "packets_out": len(sent),
            "send_errors": 0,
            "packets_in": len(stage.got[name]),
            "strangers": 0,
            "socket_drops": 0,
        }
        for name, sent in stage.sent.items()
    }
    found = port_books(stage.fabric, stage.fabric.queues())
    ports = {(node, name): counts for node, rows in found.items() for name, counts in rows.items()}
    return balance(stage.plan, Books(ports, hosts, stage.fabric.no_routes()), (), (), strays)


@pytest.mark.parametrize(
    ("entry", "by", "ends"),
    [
        (CORE, None, "p0-t0-0"),
        (CORE, "up1", "p0-t1-1"),
        (("p0-t1-0", "down1"), "down0", "p0-t0-0"),
        (("p0-t0-1", "down0"), "down1", "h3"),
        (CORE, "down1", "h1"),
    ],
)
def test_what_goes_by_a_wrong_entry_ends_at_the_next_node(entry: tuple[str, str], by: str | None, ends: str) -> None:
    stage = Stage()
    own = port(stage, *entry)
    stage.fabric.mislead(own.node, {own: port(stage, own.node, by) if by else None})
    stage.send(mrc_packet(1))
    stage.send(mrc_packet(2), traffic_class=bth.CLASS_CONTROL)
    stage.send(mrc_packet(3), "h0", "h2", path=1)
    stage.run()
    arrived = [got.data[11] for got in stage.got["h2"]]
    assert arrived == ([3] if entry[0] == SWITCH or entry[0] == "p0-t1-0" else [])
    assert stage.got["h3"] == stage.got["h1"] == []
    lost = 3 - len(arrived)
    assert stage.fabric.no_routes() == {ends: lost}
    books = ledger(stage, {ends: frozenset({CORE_LINK})})
    assert not books.unexplained
    assert books.data.dropped["no route"] + books.high.dropped["no route"] == lost
    assert [(drop.links, drop.data + drop.high) for drop in books.drops] == [(frozenset({CORE_LINK}), lost)]
    stage.fabric.mislead(own.node, {})
    stage.send(mrc_packet(4))
    stage.run()
    assert stage.got["h2"][-1].data[11] == 4, "healed"


def test_two_swapped_cables_lose_what_goes_there_and_nothing_that_comes() -> None:
    stage = Stage()
    ports = [port(stage, SWITCH, name) for name in ("up0", "up1")]
    stage.fabric.mislead(SWITCH, {ports[0]: ports[1], ports[1]: ports[0]})
    for path in (0, 1):
        stage.send(mrc_packet(path), path=path)
        stage.send(mrc_packet(10 + path), "h2", "h0", path=path)
    stage.run()
    assert stage.got["h2"] == []
    assert [got.data[11] for got in stage.got["h0"]] == [10, 11]
    assert stage.fabric.no_routes() == {"p0-t1-0": 1, "p0-t1-1": 1}


def test_a_wrong_entry_into_a_dead_link_loses_like_a_dead_link() -> None:
    stage = Stage()
    ports = [port(stage, SWITCH, name) for name in ("up0", "up1")]
    stage.fabric.mislead(SWITCH, {ports[0]: ports[1]})
    stage.fabric.ports_down([stage.plan.link_by_name["p0-t0-0:p0-t1-1"].far])
    stage.send(mrc_packet(1))
    stage.run()
    assert stage.got["h2"] == []
    assert stage.fabric.no_routes() == {}
    stage.fabric.ports_up([stage.plan.link_by_name["p0-t0-0:p0-t1-1"].far])
    stage.send(mrc_packet(2))
    stage.run()
    assert stage.fabric.no_routes() == {"p0-t1-1": 1}, "a link that comes back does not mend an entry"


def test_a_switch_that_marks_always_marks_what_meets_an_empty_queue_and_control_never() -> None:
    stage = Stage()
    stage.fabric.set_flaws(SWITCH, LevelFlaws(marks="always"))
    stage.send(mrc_packet(1))
    stage.send(mrc_packet(2), traffic_class=bth.CLASS_CONTROL)
    stage.run()
    marked = {got.data[11]: got.traffic_class & bth.ECN_MASK == bth.ECN_CE for got in stage.got["h2"]}
    assert marked == {1: True, 2: False}
    assert stage.fabric.port_counts()[CORE].out_marked == 1
    stage.fabric.set_flaws(SWITCH, FLAWLESS)
    stage.send(mrc_packet(3))
    stage.run()
    assert stage.fabric.port_counts()[CORE].out_marked == 1


def burst(flaws: LevelFlaws, packets: int = 60) -> tuple[int, int, int, int]:
    """Passed, marked, trimmed and dropped packets of a burst into a slow link."""
    stage = Stage()
    stage.fabric.set_flaws(SWITCH, flaws)
    stage.fabric.set_rate(CORE_LINK, 2_500_000)
    for number in range(packets):
        stage.send(mrc_packet(number))
    stage.run()
    counts = stage.fabric.port_counts()[CORE]
    assert not stage.ledger().unexplained
    return counts.out_passed, counts.out_marked, counts.out_trimmed, counts.out_dropped


def test_levels_with_flaws() -> None:
    passed, marked, trimmed, dropped = burst(FLAWLESS)
    assert marked
    assert trimmed
    assert not dropped
    assert burst(LevelFlaws(marks="never")) == (passed, 0, trimmed, 0)
    more, _, none, lost = burst(LevelFlaws(trims=False))
    assert (none, more + lost) == (0, 60)
    assert more > passed, "what is not trimmed waits, up to three times as much"
    assert lost
    few, _, none, lost = burst(LevelFlaws(drop=0.3))
    assert (none, few + lost) == (0, 60)
    assert few < passed


def test_levels_are_read_back() -> None:
    stage = Stage()
    stage.fabric.set_flaws(SWITCH, LevelFlaws(trims=False))
    stage.fabric.verify_flaws({SWITCH: LevelFlaws(trims=False)})
    with pytest.raises(FabricError, match=f"{SWITCH}: read-back of its levels"):
        stage.fabric.verify_flaws({})


HOSTS = """
name: hindered
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, rtt: 20ms}
world: virtual
workload: [{write: {from: h0, to: h1, message: 16KiB, for: 3s}}]
faults:
"""


def outcome(folder: Path, fault: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The final counters of h1, and its snapshots, of a run that passes."""
    scenario = load_scenario_text(HOSTS + f"  - {{at: 1s, {fault}, name: it}}\n")
    found = run_scenario(scenario, folder, True, quiet())
    assert found.folder is not None
    assert found.verdict is not None
    assert found.exit_code in (ExitCode.PASS, ExitCode.INCONCLUSIVE)
    lines = map(json.loads, (found.folder / "events.jsonl").read_text().splitlines())
    events = [*map(SnapshotReader().whole, lines)]
    counters = json.loads((found.folder / "counters.json").read_text())["hosts"]["h1"]["counters"]
    return counters, [one for one in events if one["event"] == "snapshot" and one["host"] == "h1"]


def test_a_host_that_pauses_says_nothing_and_takes_in_what_waited_when_it_goes_on(tmp_path: Path) -> None:
    counters, snapshots = outcome(tmp_path, "host-pause: h1, for: 1s")
    gaps = [after["t_ns"] - before["t_ns"] for before, after in pairwise(snapshots)]
    assert 1000 * MS <= max(gaps) < 1250 * MS
    assert counters["packets_late"] == 0, "it is the fault that was late"


def test_a_slow_host_takes_in_no_more_than_it_has_time_for(tmp_path: Path) -> None:
    counters, snapshots = outcome(tmp_path, "host-slow: h1, per_packet: 3ms, for: 1s")
    start = next(one for one in snapshots if one["counters"]["packets_in"] > 100)["t_ns"]
    slow, after = (
        between(snapshots, start + 1200 * MS, start + 1800 * MS),
        between(snapshots, start + 2200 * MS, 1 << 62),
    )
    assert 0 < slow <= 1 / 0.003 + 128 / 0.6, "a turn may take in and send 64 each, and rests then"
    assert after > 2 * slow
    assert counters["packets_late"] == 0


def between(snapshots: list[dict[str, Any]], begin_ns: int, end_ns: int) -> float:
    """Packets a second, in and out, in the snapshots of this time."""
    inside = [one for one in snapshots if begin_ns < one["t_ns"] < end_ns]
    handled = [one["counters"]["packets_in"] + one["counters"]["packets_out"] for one in inside]
    return (handled[-1] - handled[0]) / (inside[-1]["t_ns"] - inside[0]["t_ns"]) * 1e9
