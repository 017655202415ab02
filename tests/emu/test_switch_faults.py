"""Faults that the port program makes, in whole runs: counts prove their effect, read-back that nothing is left."""

from __future__ import annotations

import csv
import json
import math
import statistics
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.emu.runs import Run
from tests.emu.test_denylist import events

LINK = "p0-t0-0:p0-t1-1"
NEAR, FAR = ("p0-t0-0", "up1"), ("p0-t1-1", "down0")
"""The ports of this link: what comes in at FAR travels away from h0, at NEAR towards it."""
DATA = "in_data"
Ports = dict[tuple[str, str], dict[str, int]]


def fault(line: str, name: str = "it") -> str:
    return f"  - {{{line}, name: {name}}}\n"


def finished(folder: Path, faults: Iterable[str], steps: int = 12, extra: str = "", options: Iterable[str] = ()) -> Run:
    """A run to its end, with nothing wrong but what the machine may have done to its timing."""
    text = "  - unrestored_evs == 0\n" + extra + "faults:\n" + "".join(faults)
    run = Run(folder, steps=steps, extra=text, options=tuple(word for one in options for word in ("--set", one)))
    run.finish()
    run.assert_passed_or_machine_was_busy()
    return run


def ports(run: Run) -> Ports:
    """What the port program counted at every port that counted anything lost or corrupted."""
    counters = json.loads((run.folder / "counters.json").read_text(encoding="utf-8"))["ports"]
    return {(node, port): counts for node, rows in counters.items() for port, counts in rows.items()}


def dropped(counts: dict[str, int]) -> int:
    return sum(counts[f"in_{kind}_dropped"] for kind in ("data", "trimmed", "control", "other"))


def came_in(counts: dict[str, int]) -> int:
    return sum(counts[f"in_{kind}"] for kind in ("data", "trimmed", "control", "other"))


def losing(found: Ports) -> set[tuple[str, str]]:
    return {place for place, counts in found.items() if dropped(counts)}


def retired(run: Run) -> set[tuple[str, int, int]]:
    """(sender, plane, uplink) of every EV that was given up."""
    return {(one["host"], one["plane"], one["uplink"]) for one in events(run, "ev_state") if one["to"] == "ASSUMED_BAD"}


def found_losing(run: Run) -> set[tuple[str, int, int]]:
    """Those that were given up because packets sent later had arrived. A timer may also blame an EV whose packets all
    arrived, when it was their acknowledgements that got lost."""
    given_up = [one for one in events(run, "ev_state") if one["to"] == "ASSUMED_BAD" and one["trigger"] != "timeout"]
    return {(one["host"], one["plane"], one["uplink"]) for one in given_up}


def counted(run: Run, name: str) -> int:
    """A counter, summed over all endpoints."""
    hosts = json.loads((run.folder / "counters.json").read_text(encoding="utf-8"))["hosts"]
    return sum(int(host["counters"][name]) for host in hosts.values())


def is_share(hits: int, of: int, share: float) -> bool:
    """Within five sigma of the binomial distribution."""
    return abs(hits - share * of) < 5 * math.sqrt(of * share * (1 - share))


def history(run: Run, op: str, outcome: str) -> list[dict[str, object]]:
    return [line for line in run.history() if line["op"] == op and line["type"] == outcome]


@pytest.mark.nightly
def test_links_that_lose_a_fifth(tmp_path: Path) -> None:
    lines = [fault(f"at: cold-start, link-loss: ['{LINK}', 'p1-t0-0:p1-t1-0'], loss: 20%, for: 1h")]
    run = finished(tmp_path, lines, steps=50)
    found = ports(run)
    lossy = {NEAR, FAR, ("p1-t0-0", "up0"), ("p1-t1-0", "down0")}
    assert losing(found) == lossy
    # Probes still pass after the last heal, data does not.
    hits, of = (sum(found[place][key] for place in lossy) for key in ("in_data_dropped", "in_data"))
    assert of > 30
    assert is_share(hits, of, 0.2)
    assert all(found[place]["in_control_dropped"] for place in lossy)
    assert {("h0", 0, 1), ("h0", 1, 0)} <= retired(run)
    assert retired(run) <= {(host, *ev) for host in ("h0", "h1") for ev in ((0, 1), (1, 0))}, "the others lost nothing"
    # Probes that ride with the data are among the hits, and nobody sends them again.
    assert counted(run, "retransmitted") + counted(run, "suspect_probes_sent") >= hits
    assert f"inject it: link-loss {LINK}, p1-t0-0:p1-t1-0 20%" in run.output


@pytest.mark.nightly
def test_one_direction_dies_and_the_port_stays_up(tmp_path: Path) -> None:
    run = finished(tmp_path, [fault("at: 500ms, one-way: 'h0:p0-t0-0', direction: up, for: 700ms")], steps=20)
    found = ports(run)
    assert losing(found) == {("p0-t0-0", "down0")}
    assert found["p0-t0-0", "down0"]["in_data_dropped"] > 0
    assert found["h0", "port0"][DATA] > 0
    assert not [one for one in events(run, "port_state") if one["peer"] is None], "no port saw its carrier go"
    assert {("h0", 0, 0), ("h0", 0, 1)} <= retired(run)
    assert {host for host, _, _ in found_losing(run)} <= {"h0"}, "what comes to h0 is not touched"
    assert "inject it: one-way h0:p0-t0-0 up" in run.output


@pytest.mark.nightly
def test_a_plane_that_loses_one_in_a_hundred_at_every_nic(tmp_path: Path) -> None:
    run = finished(tmp_path, [fault("at: cold-start, plane-loss: p1, loss: 1%, for: 1h")], steps=40)
    found = ports(run)
    nics = [found[host, "port1"] for host in ("h0", "h1")]
    assert losing(found) <= {("h0", "port1"), ("h1", "port1")}
    hits, of = sum(map(dropped, nics)), sum(map(came_in, nics))
    assert of > 1500
    assert hits > 0
    assert is_share(hits, of, 0.01)


@pytest.mark.nightly
def test_one_ev_of_one_sender_to_one_peer(tmp_path: Path) -> None:
    """Over the same link and T1 go another flow of h0, and one of h1 to the same peer."""
    line = "at: cold-start, ev-loss: p0-t1-1, from: h0, to: h2, loss: 100%, for: 1h"
    flows = "{write: {pairs: [h0->h2, h0->h3, h1->h2], message: 16KiB, depth: 2, bytes: 2MiB}}"
    run = finished(tmp_path, [fault(line)], options=("fabric.hosts_per_t0=2", f"workload=[{flows}]"))
    found = ports(run)
    assert losing(found) == {FAR}
    assert retired(run) == {("h0", 0, 1)}
    (change,) = {one["peer"] for one in events(run, "ev_state") if one["to"] == "ASSUMED_BAD"}
    assert change == "h2"
    sent = {(host, peer): count for host, peer, count in sent_over(run, "0/1") if count}
    assert sent.keys() == {("h0", "h2"), ("h0", "h3"), ("h1", "h2")}
    assert 0 < sent["h0", "h2"] <= found[FAR]["in_data_dropped"] <= sent["h0", "h2"] + probes_with_data(run, "h0")
    assert 0 <= found[FAR][DATA] - sum(sent.values()) <= sum(probes_with_data(run, host) for host in ("h0", "h1"))
    assert min(sent["h0", "h3"], sent["h1", "h2"]) > 5 * sent["h0", "h2"]
    (begun,) = history(run, "inject", "ok")
    assert (begun["from"], begun["to"], begun["links"]) == ("h0", "h2", [LINK])


def probes_with_data(run: Run, host: str) -> int:
    """Reliability probes that went with the data of a suspected EV."""
    hosts = json.loads((run.folder / "counters.json").read_text(encoding="utf-8"))["hosts"]
    return int(hosts[host]["counters"]["suspect_probes_sent"])


def sent_over(run: Run, path: str) -> list[tuple[str, str, int]]:
    """(sender, peer, data packets) on a path."""
    hosts = json.loads((run.folder / "counters.json").read_text(encoding="utf-8"))["hosts"]
    return [
        (host, peer, int(row[path])) for host, of in hosts.items() for peer, row in of["paths"].items() if path in row
    ]


@pytest.mark.nightly
def test_corrupted_packets_are_refused_each_and_sent_again(tmp_path: Path) -> None:
    lines = [fault(f"at: cold-start, corrupt: ['{LINK}', 'p1-t0-1:p1-t1-0'], share: 10%, for: 1h")]
    run = finished(tmp_path, lines, steps=20, extra="endpoint: {icrc: true}\n")
    found = ports(run)
    corrupted = {place: counts["in_corrupted"] for place, counts in found.items() if counts["in_corrupted"]}
    assert set(corrupted) == {NEAR, FAR, ("p1-t0-1", "up0"), ("p1-t1-0", "down1")}
    assert is_share(sum(corrupted.values()), sum(found[place][DATA] for place in corrupted), 0.1)
    assert losing(found) == set()
    assert counted(run, "refused_bad_icrc") == sum(corrupted.values())
    assert counted(run, "retransmitted") >= sum(corrupted.values())


def test_a_silent_switch_loses_everything_and_tells_nobody(tmp_path: Path) -> None:
    run = finished(tmp_path, [fault("at: cold-start, switch-silent: p0-t1-1, for: 600ms")], steps=20)
    found = ports(run)
    inside = [("p0-t1-1", "down0"), ("p0-t1-1", "down1")]
    assert losing(found) == set(inside)
    assert retired(run) == {("h0", 0, 1), ("h1", 0, 1)}
    for place in inside:
        assert found[place]["in_data_dropped"] > 0
    passed = sum(found[place]["in_data"] - found[place]["in_data_dropped"] for place in inside)
    assert sum(found[place]["out_data"] for place in inside) == passed > 0, "and it carries data again"
    assert not events(run, "port_state")
    lines = {(line["op"], line["type"]): line["t_ns"] for line in run.history() if line.get("fault") == "it"}
    restored = [one["t_ns"] for one in events(run, "ev_state") if one["from"] == "ASSUMED_BAD"]
    assert min(restored) > lines["heal", "invoke"], "no probe passed before"


@pytest.mark.timed
@pytest.mark.nightly
def test_a_slower_link_carries_no_more_than_its_rate_and_then_as_before(tmp_path: Path) -> None:
    run = finished(tmp_path, [fault(f"at: 1500ms, link-rate: '{LINK}', rate: 1mbit, for: 2500ms")], steps=45)
    done = {(line["op"], line["type"]): int(line["t_ns"]) for line in run.history() if line.get("fault") == "it"}
    start = next(int(line["t_ns"]) for line in run.history() if line["op"] == "workload")
    slow = sent_bps(run, NEAR, done["inject", "ok"], done["heal", "invoke"])
    assert 0 < slow <= 1.1e6
    assert sent_bps(run, NEAR, start, done["inject", "invoke"]) > 2 * slow
    assert sent_bps(run, NEAR, done["heal", "ok"], None) > 2 * slow
    left = {(plane, uplink) for _, plane, uplink in retired(run)}
    assert ports(run)[NEAR]["out_marked"] > 0 or (0, 1) in left, "the endpoints know by marks, or by packets too late"
    assert history(run, "inject", "ok")[0]["links"] == []


def sent_bps(run: Run, port: tuple[str, str], begin_ns: int, end_ns: int | None) -> float:
    """What a port sent between the first and the last sample of a stretch; of its end, while there was work."""
    rows = csv.DictReader((run.folder / "samples.csv").open(encoding="utf-8"))
    mine = [(int(row["t_ns"]), int(row["tx_bytes"])) for row in rows if (row["node"], row["port"]) == port]
    inside = [row for row in mine if begin_ns <= row[0] and (end_ns is None or row[0] <= end_ns)]
    (first_ns, before), (last_ns, after) = inside[0], inside[-1]
    return (after - before) * 8e9 / (last_ns - first_ns)


@pytest.mark.timed
@pytest.mark.nightly
def test_faults_of_all_sorts_on_one_link_and_each_heals_its_own(tmp_path: Path) -> None:
    """All at once: when the one goes that is over first, the others must still hold, and nothing may be left."""
    lines = [
        fault(f"at: 500ms, link-loss: '{LINK}', loss: 30%, for: 1100ms", "loss"),
        fault(f"at: 520ms, one-way: '{LINK}', direction: down, for: 400ms", "way"),
        fault(f"at: 540ms, corrupt: '{LINK}', share: 50%, for: 900ms", "bits"),
        fault("at: 560ms, switch-silent: p0-t1-1, for: 300ms", "silent"),
        fault("at: 580ms, ev-loss: p0-t1-1, from: h0, loss: 50%, for: 700ms", "ev"),
        fault("at: 600ms, plane-loss: [p0, p1], loss: 1%, for: 500ms", "planes"),
        fault(f"at: 620ms, link-rate: '{LINK}', rate: 5mbit, for: 500ms", "rate"),
        fault(f"at: 640ms, link-flap: '{LINK}', period: 400ms, count: 2", "flap"),
    ]
    run = finished(tmp_path, lines, steps=20, extra="endpoint: {icrc: true}\n")
    assert len(history(run, "read-back", "ok")) == 9
    took = {
        line["fault"]: int(str(line["t_ns"])) - int(str(begun["t_ns"]))
        for begun, line in zip(history(run, "inject", "invoke"), history(run, "inject", "ok"), strict=True)
    }
    by_rule = [took[name] for name in ("loss", "way", "bits", "silent", "ev", "planes")]
    assert statistics.median(by_rule) < 5_000_000


@pytest.mark.parametrize("switch", ["plain", "{ecn: [0.1, 0.3], trim: 0.5}"])
@pytest.mark.nightly(keep=1)
def test_a_run_says_what_queued_at_its_switch_ports(tmp_path: Path, switch: str) -> None:
    run = Run(tmp_path, steps=4, options=("--set", f"fabric.switch={switch}"))
    run.finish()
    run.assert_passed_or_machine_was_busy()
    environment = json.loads((run.folder / "environment.json").read_text(encoding="utf-8"))
    counters = json.loads((run.folder / "counters.json").read_text(encoding="utf-8"))
    told = "plain shapers (fabric.switch: plain)" if switch == "plain" else "port program (marks, trims)"
    assert environment["switch_ports_by"] == told
    assert told in " ".join(run.output.split())
    assert ("ports" in counters) is (switch != "plain")
    if switch != "plain":
        levels = {"ecn_low": 0.1, "ecn_high": 0.3, "trim": 0.5, "trim_last_hop": 1.5, "drop": 3.0}
        assert environment["thresholds_bdp"] == levels
