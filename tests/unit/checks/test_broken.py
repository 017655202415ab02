"""The truth of a folder: what each kind of fault broke, on which links, which way, and whether it is asked for."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.broken import BrokenSpan, broken_spans
from mrc_testbed.testbed.checks.record import load_record
from tests.unit.checks.test_folder import LINK, RunFolder, at

PORTS_OF_A_PLANE = {f"h{n}:p0-t0-{n // 2}" for n in range(4)}
LINKS_OF_T1 = {"p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1"}


def spans_of(tmp_path: Path, written: str, kind: str, healed: bool = True) -> list[BrokenSpan]:
    """Of a run with this fault from 3.5 s, in place at 3.501 s, to 4.502 s. `links` of its history are not believed:
    the schedule has them."""
    folder = RunFolder()
    folder.scenario = folder.scenario.replace("faults:", "endpoint: {icrc: true}\nfaults:")
    folder.break_instead(written)
    for line in folder.history:
        if line["op"] in ("inject", "heal"):
            line["kind"] = kind
    if not healed:
        folder.history = [line for line in folder.history if line["op"] != "heal"]
    return broken_spans(load_record(folder.write(tmp_path)))


@pytest.mark.parametrize(
    ("written", "links", "direction", "share", "asked"),
    [
        (f'link-down: "{LINK}"', {LINK}, None, 1.0, True),
        (f'link-loss: "{LINK}", loss: 5%', {LINK}, None, 0.05, True),
        (f'one-way: "{LINK}", direction: up', {LINK}, "up", 1.0, True),
        (f'one-way: "{LINK}", direction: down', {LINK}, "down", 1.0, True),
        ("link-loss: h1:p0-t0-0, loss: 20%", {"h1:p0-t0-0"}, None, 0.2, True),
        ("switch-silent: p0-t1-1", LINKS_OF_T1, "up", 1.0, True),  # it drops what comes up to it
        ("plane-loss: p0, loss: 2%", PORTS_OF_A_PLANE, "down", 0.02, True),
        (f'corrupt: "{LINK}", share: 5%', {LINK}, None, 0.05, False),
        (f'link-rate: "{LINK}", rate: 5mbit', {LINK}, None, 1.0, False),
    ],
)
def test_what_a_fault_broke(
    tmp_path: Path, written: str, links: set[str], direction: str | None, share: float, asked: bool
) -> None:
    (span,) = spans_of(tmp_path, written, written.partition(":")[0])
    assert span.links == links
    assert (span.direction, span.asked) == (direction, asked)
    assert span.share == pytest.approx(share)
    assert (span.begin_ns, span.placed_ns, span.end_ns) == (at(3.5), at(3.501), at(4.502))
    assert span.key == ("cut", 0)


def test_a_denial_breaks_nothing(tmp_path: Path) -> None:
    assert spans_of(tmp_path, "deny: p0-t1-1", "deny") == []


def test_what_was_never_healed_stays_broken(tmp_path: Path) -> None:
    (span,) = spans_of(tmp_path, f'link-down: "{LINK}"', "link-down", healed=False)
    assert span.end_ns == inf


def test_a_run_without_faults_broke_nothing(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.history = [line for line in folder.history if "fault" not in line]
    assert broken_spans(load_record(folder.write(tmp_path))) == []
