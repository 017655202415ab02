"""Growth of counters in windows, against the gaps between snapshots looked at one by one, in random runs.

A gap between two snapshots belongs to the time of a fault if they have a moment in common, to a window of times if it
lies inside. What grew in a gap that may also be another fault's is known only up to that.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.counting import counted, packets_lost
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.windows import KnownBetween, NoData
from mrc_testbed.testbed.expect import parse_figure
from tests.unit.checks.test_folder import HOSTS, RTT_NS, RunFolder, at, fault, snapshot

AFTER_NS = 10 * RTT_NS
END_S = 8.3
Fault = tuple[str, float, float]
"""Name, injection and heal, in seconds."""
Told = dict[str, list[tuple[float, int]]]
"""By host: seconds and packets lost by then, in order; the last one is final."""


def run_of(rng: random.Random) -> tuple[RunFolder, list[Fault], Told]:
    """Up to three faults that may overlap, and snapshots now and then."""
    folder = RunFolder()
    faults, begin = [], 0.0
    for number in range(rng.randint(1, 3)):
        begin += rng.randint(2, 25) / 10
        faults.append((f"f{number % 2}", begin, begin + rng.randint(1, 20) / 10))
    lines = [
        (t, kind_of, name, number)
        for number, (name, begin, end) in enumerate(faults)
        for t, kind_of in ((begin, ("inject", "invoke")), (begin, ("inject", "ok")), (end, ("heal", "ok")))
    ]
    told: Told = {}
    for host in HOSTS:
        times = sorted(rng.sample(range(-3, 95), rng.randint(0, 14)))
        counts = sorted(rng.choice(range(40)) for _ in range(len(times) + 1))
        told[host] = [*zip([t / 10 + 0.013 for t in times], counts, strict=False), (inf, counts[-1])]
    folder.history[2:6] = [
        fault(op, kind, t, fault=name, cycle=number)
        for t, (op, kind), name, number in sorted(lines, key=lambda x: x[0])
    ]
    folder.events = [snapshot(host, t, lost) for host in HOSTS for t, lost in told[host][:-1]]
    assert folder.counters
    for host in HOSTS:
        folder.counters["hosts"][host]["counters"] |= {"lost_timeout": told[host][-1][1], "lost_overtaken": 0}
        folder.counters["hosts"][host]["counters"]["retransmitted"] = told[host][-1][1] + 1
    return folder, faults, told


def windows(faults: Sequence[Fault], name: str = "") -> list[tuple[float, float]]:
    """Begin and end with the aftermath."""
    return [(begin, end + AFTER_NS / 1e9) for other, begin, end in faults if name in ("", other)]


def gaps(rows: Sequence[tuple[float, int]]) -> list[tuple[float, float, int]]:
    """From snapshot to snapshot, with what grew; the first one is from nothing, the last one to the end."""
    edges = [(-inf, 0), *rows]
    return [(begin, end, now - before) for (begin, before), (end, now) in itertools.pairwise(edges)]


def meets(begin: float, end: float, parts: Sequence[tuple[float, float]]) -> bool:
    return any(begin < until and since < end for since, until in parts)


def left_of(begin: float, end: float, parts: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Gaps that no part covers."""
    found, now = [], begin
    for since, until in sorted(parts):
        if since > now:
            found.append((now, min(since, end)))
        now = max(now, until)
    found.append((now, end))
    return [(a, b) for a, b in found if a < min(b, end)]


def during(rows: Sequence[tuple[float, int]], faults: Sequence[Fault], name: str) -> tuple[int, int]:
    mine = windows(faults, name)
    others = [time for other in {one[0] for one in faults} - {name} for time in windows(faults, other)] if name else []
    inside = [gap for gap in gaps(rows) if meets(gap[0], gap[1], mine)]
    doubtful = [gap for gap in inside if any(meets(a, b, others) for a, b in left_of(gap[0], gap[1], mine))]
    most = sum(grown for *_, grown in inside)
    return most - sum(grown for *_, grown in doubtful), most


def clean(rows: Sequence[tuple[float, int]], faults: Sequence[Fault]) -> tuple[int, int] | None:
    """None where no gap of the workload is free of faults."""
    free = [gap for gap in gaps(rows) if not meets(gap[0], gap[1], windows(faults))]
    if not any(begin < END_S and end > 0 for begin, end, _ in free):
        return None
    grown = sum(grown for *_, grown in free)
    return grown, grown


def within(rows: Sequence[tuple[float, int]], faults: Sequence[Fault], a: float, b: float) -> tuple[int, int] | None:
    """None with less than two snapshots inside. A fault that changed in a gap at the edge may be in or out of it."""
    inside = [gap for gap in gaps(rows) if a <= gap[0] and gap[1] <= b]
    edges = [edge for time in windows(faults) for edge in time] + [end for _, _, end in faults]
    if not inside:
        return None
    torn = [(x, y, grown) for x, y, grown in gaps(rows) if x < a < y or x < b < y]
    open_too = sum(grown for x, y, grown in torn if any(x < edge < y for edge in edges))
    least = sum(grown for *_, grown in inside)
    return least, least + open_too


def said(record: RunRecord, text: str) -> tuple[float, float] | None:
    figure = parse_figure(text)
    try:
        value = packets_lost(record, figure.window)
    except KnownBetween as known:
        return sum(known.least), sum(known.most)
    except NoData:
        return None
    assert text.startswith("packets_lost of") or counted(record, figure.window, "lost_timeout") == value
    return value, value


def total(each: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    known = [one for one in each if one]
    return (sum(a for a, _ in known), sum(b for _, b in known)) if len(known) == len(each) else None


@pytest.mark.parametrize("seed", range(40))
def test_counters_grow_in_a_window_by_what_its_gaps_have(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    folder, faults, told = run_of(rng)
    record = load_record(folder.write(tmp_path))
    a = rng.randint(0, 40)
    b = a + rng.randint(5, 40)
    wanted: dict[str, dict[str, tuple[int, int] | None]] = {
        "": {host: (told[host][-1][1],) * 2 for host in HOSTS},
        "during faults": {host: during(told[host], faults, "") for host in HOSTS},
        "clean": {host: clean(told[host], faults) for host in HOSTS},
        f"from {a}00ms to {b}00ms": {host: within(told[host], faults, a / 10, b / 10) for host in HOSTS},
    }
    for name in {one[0] for one in faults}:
        wanted[f"during {name}"] = {host: during(told[host], faults, name) for host in HOSTS}
    for words, by_host in wanted.items():
        assert said(record, f"packets_lost {words}".strip()) == total(list(by_host.values())), words
        for host, known in by_host.items():
            assert said(record, f"packets_lost of {host} {words}".strip()) == known, (words, host)
    assert at(0) == record.start_ns
