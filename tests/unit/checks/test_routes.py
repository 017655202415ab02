"""The metrics `route_back`, from a heal until BGP has all routes again, and `route_updates`, what it said meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.counts import read_counts
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.routes import route_back, route_updates, times_until_full
from mrc_testbed.testbed.checks.windows import NoData, NotApplicable, outages
from mrc_testbed.testbed.expect import Span, Window
from mrc_testbed.testbed.rundir.files import RecordError
from mrc_testbed.testbed.rundir.tables import RouteSample
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.checks.test_folder import RunFolder, at, fault
from tests.unit.recorded import record_run

WHOLE = Window()
S = 1_000_000_000
BGP = "name: a\ntransport: tcp\nrouting: bgp\nworkload:\n  - train: {steps: 2, compute: 50ms, allreduce: 1MiB}\n"
MISSING = "some routes were still missing when the next fault began or the run ended"


@pytest.fixture
def static(tmp_path: Path) -> RunRecord:
    return load_record(record_run(tmp_path / "run"))


@pytest.fixture
def bgp(static: RunRecord) -> RunRecord:
    """The same faults, in a scenario whose switches learn routes."""
    return replace(static, scenario=load_scenario_text(BGP))


def healed_ns(record: RunRecord) -> int:
    (outage,) = outages(record)
    assert outage.healed_ns is not None
    return outage.healed_ns


def with_gap(record: RunRecord, *changes: tuple[float, str, int]) -> RunRecord:
    """Changes in s since the heal: the T0, and its next hops of 4."""
    since = healed_ns(record)
    return replace(record, routes=tuple(RouteSample(since + int(at * S), node, hops, 4) for at, node, hops in changes))


def test_it_lasts_until_the_last_t0_has_all(bgp: RunRecord) -> None:
    record = with_gap(bgp, (-0.2, "p0-t0-0", 2), (-0.1, "p0-t0-1", 2), (1, "p0-t0-0", 4), (2.5, "p0-t0-1", 4))
    assert times_until_full(record, WHOLE) == [2.5 * S]
    assert route_back(record, outages(record)[0]).ns == 2.5 * S


def test_routes_that_were_never_missing_took_no_time(bgp: RunRecord) -> None:
    assert times_until_full(bgp, WHOLE) == [0]
    assert times_until_full(with_gap(bgp, (-90, "p0-t0-0", 0), (-80, "p0-t0-0", 4)), WHOLE) == [0]


def test_routes_that_stay_away_are_not_known(bgp: RunRecord) -> None:
    with pytest.raises(NoData, match="still missing"):
        times_until_full(with_gap(bgp, (-0.1, "p0-t0-0", 2)), WHOLE)


def test_static_routes_have_no_such_figure(static: RunRecord) -> None:
    with pytest.raises(NotApplicable, match="learn no routes"):
        times_until_full(static, WHOLE)
    assert route_back(static, outages(static)[0]).why


def two_faults(path: Path) -> RunRecord:
    """One from 3.5 to 4.5 s, and one from 6 to 6.5 s, in a fabric that learns its routes."""
    folder = RunFolder()
    folder.history[2:6] = [
        fault(op, kind, second, fault=name)
        for name, begin, end in (("one", 3.5, 4.5), ("two", 6.0, 6.5))
        for op, second in (("inject", begin), ("heal", end))
        for kind in ("invoke", "ok")
    ]
    return replace(load_record(folder.write(path)), scenario=load_scenario_text(BGP))


def test_times_without_routes_belong_to_the_fault_before_them(tmp_path: Path) -> None:
    record = two_faults(tmp_path)
    cases: list[tuple[list[tuple[float, float | None]], tuple[float | str, float | str]]] = [
        ([], (0, 0)),
        ([(4, 5)], (0.5, 0)),
        ([(3, 3.5)], (0, 0)),
        ([(3, 3.6)], (0, 0)),
        ([(4, 5), (5.5, 5.75)], (1.25, 0)),
        ([(4.75, 6)], (1.5, 0)),
        ([(4.75, 6.1)], (MISSING, 0)),
        ([(6, 7)], (0, 0.5)),
        ([(7, 8)], (0, 1.5)),
        ([(4, None)], (MISSING, MISSING)),
        ([(7, None)], (0, MISSING)),
    ]
    for spans, wanted in cases:
        rows = [RouteSample(at(begin), "p0-t0-0", 3, 4) for begin, _ in spans]
        rows += [RouteSample(at(end), "p0-t0-0", 4, 4) for _, end in spans if end is not None]
        told = replace(record, routes=tuple(sorted(rows)))
        found = [route_back(told, outage) for outage in outages(told)]
        assert tuple(one.why or (one.ns or 0) / S for one in found) == wanted, spans
        for name, value in zip(("one", "two"), wanted, strict=True):
            if not isinstance(value, str):
                assert times_until_full(told, Window(Span.FAULT, name)) == [value * S]


def test_what_was_not_healed_or_never_broke_is_told(tmp_path: Path) -> None:
    record = two_faults(tmp_path)
    never = replace(record, history=tuple(line for line in record.history if line.op != "heal"))
    assert [route_back(never, outage).why for outage in outages(never)] == ["it was not healed"] * 2
    none = replace(record, history=tuple(line for line in record.history if line.op == "workload"))
    with pytest.raises(NoData, match="no fault was injected"):
        times_until_full(none, WHOLE)


def updates(folder: Path, told: Any) -> int | None:
    file = folder / "counters.json"
    file.write_text(json.dumps({"bgp": told}))
    return read_counts(file).route_updates


def ends(sent: int, received: int) -> dict[str, int]:
    return {"updates_sent": sent, "updates_received": received}


def test_a_message_counts_once_although_both_ends_know_it(tmp_path: Path) -> None:
    assert updates(tmp_path, {"a": {"b": ends(3, 1)}, "b": {"a": ends(1, 3)}}) == 4


def test_what_one_end_has_forgotten_the_other_one_knows(tmp_path: Path) -> None:
    assert updates(tmp_path, {"a": {"b": ends(1, 0)}, "b": {"a": ends(2, 5)}}) == 5 + 2
    assert updates(tmp_path, {"a": {"b": ends(1, 2)}}) == 3


def test_counts_that_are_none_are_told(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"bgp\.a\.b\.updates_sent is not a count: -1"):
        updates(tmp_path, {"a": {"b": ends(-1, 0)}})


def test_the_metric_is_that_count(static: RunRecord, bgp: RunRecord) -> None:
    assert route_updates(replace(bgp, route_updates=7), WHOLE) == 7
    with pytest.raises(NoData, match="no messages of BGP"):
        route_updates(bgp, WHOLE)
    with pytest.raises(NotApplicable, match="learn no routes"):
        route_updates(static, WHOLE)
