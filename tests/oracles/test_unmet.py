"""Which faults met no packet, against readings of ports looked at one by one, in random runs."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.unmet import require_met, unmet_faults, unmet_words
from mrc_testbed.testbed.checks.windows import NoData
from tests.unit.checks.test_folder import LINK, PLAN, RunFolder, at, fault

IDLE = 1000
"""Bytes of a link without traffic, at most."""
Reading = tuple[float, int]
"""Seconds, and bytes sent by both ends until then."""


def met(readings: list[Reading], begin: float, end: float | None, links: int) -> bool:
    """As far as readings tell: bytes between the first and the last inside its time, or, with fewer than two inside,
    from the one before to the one behind. Nothing that is not known says that it was not."""
    until = readings[-1][0] if end is None and readings else end or 0
    inside = [sent for t, sent in readings if begin <= t <= until]
    if len(inside) > 1:
        return inside[-1] - inside[0] > IDLE * links
    before = [one for one in readings if one[0] <= begin][-1:] or readings[:1]
    behind = [one for one in readings if one[0] >= until][:1] or readings[-1:]
    if not before or not behind or before[0][0] >= behind[0][0]:
        return True
    return behind[0][1] - before[0][1] > IDLE * links


def run_of(rng: random.Random) -> tuple[RunFolder, list[tuple[str, float, float | None]], list[Reading], int]:
    """Faults that lose packets on one link or two, and readings at any times, on both ends of each."""
    folder = RunFolder().without_port_program()
    links = [LINK, "h0:p0-t0-0"][: rng.choice([1, 2])]
    folder.break_instead(f"link-loss: [{', '.join(repr(one) for one in links)}], loss: 5%")
    faults: list[tuple[str, float, float | None]] = []
    for number in range(rng.randint(1, 2)):
        begin = 1.0 + 3 * number + rng.randint(0, 10) / 10
        faults.append((f"f{number}", begin, rng.choice([begin + rng.randint(1, 12) / 10, None])))
    folder.history[2:6] = [
        {**fault(op, "ok", t, fault=name, target=",".join(links), links=links), "kind": "link-loss"}
        for name, begin, end in faults
        for op, t in (("inject", begin), ("heal", end))
        if t is not None
    ]
    folder.events = [event for event in folder.events if event["event"] == "snapshot"]
    readings, sent = [], 0
    for t in sorted(rng.sample(range(85), rng.randint(0, 25))):
        sent += rng.choice([0, 0, 0, 1, 600, IDLE, IDLE + 1, 2 * IDLE, 5 * IDLE])
        readings.append((t / 10, sent))
    return folder, faults, readings, len(links)


def samples(readings: list[Reading], folder: Path) -> None:
    """Half of the bytes at one port of each link and half at the other: together they count once a link."""
    ports = [(node, own.name) for node, ends in PLAN.ports.items() for own, _ in ends]
    busy = next(end for end in PLAN.link_by_name[LINK].ends if end.node == "p0-t0-0")
    rows = [
        f"{at(t)},{node},{port},0,0,0,{sent if (node, port) == (busy.node, busy.name) else 0},0,0\n"
        for t, sent in readings
        for node, port in ports
    ]
    (folder / "samples.csv").write_text(
        "t_ns,node,port,rx_bytes,rx_packets,rx_drops,tx_bytes,tx_packets,tx_drops\n" + "".join(rows)
    )


@pytest.mark.parametrize("seeds", range(6))
def test_a_fault_was_met_as_far_as_readings_tell(seeds: int, tmp_path: Path) -> None:
    for seed in range(10 * seeds, 10 * seeds + 10):
        folder, faults, readings, links = run_of(random.Random(seed))
        samples(readings, folder.write(tmp_path))
        record = load_record(tmp_path)
        unmet = tuple(name for name, begin, end in faults if not met(readings, begin, end, links))
        assert unmet_faults(record) == (unmet if readings else ()), (seed, faults, readings)
        words = f"no packet met {' and '.join(unmet)}" if unmet and readings else ""
        assert unmet_words(record) == words
        for name, *_ in faults:
            if name in unmet and readings:
                with pytest.raises(NoData, match=f"no packet met {name}"):
                    require_met(record, name)
            else:
                assert [one.fault for one in require_met(record, name)] == [name]


def test_a_run_without_faults_has_none_to_be_met(tmp_path: Path) -> None:
    record = load_record(RunFolder().write(tmp_path))
    never = replace(record, history=tuple(line for line in record.history if not line.fault))
    with pytest.raises(NoData, match="no fault was injected"):
        require_met(never, "")
    with pytest.raises(NoData, match="fault cut was not injected"):
        require_met(never, "cut")
    assert unmet_words(never) == ""
