"""`show`: views of what switches count, by names of operators; from a run's folder, in text and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from make_names import NAMES, text
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.switching.classes import TrimRules
from mrc_testbed.testbed.switching.port_counts import SidCounts
from mrc_testbed.testbed.switchview.reading import PortReading, SwitchReading, plain_shaper_counts
from mrc_testbed.testbed.switchview.show import as_json, shown, view_named
from mrc_testbed.testbed.switchview.views import VIEWS

COUNTS = {
    **{"rx_bytes": 900, "rx_packets": 9, "rx_drops": 1, "tx_bytes": 800, "tx_packets": 8, "tx_drops": 0},
    **{"out_data": 20, "out_passed": 13, "out_marked": 4, "out_trimmed": 5, "out_dropped": 2},
    **{"out_trimmed_through": 3, "out_trimmed_dropped": 0, "out_control": 7, "out_other": 2, "out_other_marked": 1},
    **{"out_other_dropped": 1, "queue_drops_high": 0, "queue_drops_data": 0, "most_queued_bytes": 4321},
}
SID = "fcbb:bb00:1000::/48"


def reading(changes: dict[str, int] | None = None, first: bool = True, **more: object) -> SwitchReading:
    counts = {**COUNTS, **(changes or {})}
    port = PortReading("up0", "p0-t1-0", counts)
    rest: dict[str, object] = {"sids": {SID: SidCounts(12, 3400)}, "no_sid": 2, **more}
    return SwitchReading("p0-t0-0", (port,), SID, TrimRules(first=first), **rest)  # type: ignore[arg-type]


def rows(view: str, of: SwitchReading) -> list[list[object]]:
    return [list(row.values()) for row in json.loads(as_json(of, view))]


def test_queues_have_data_in_uc3_and_what_goes_before_it_in_uc6() -> None:
    data, high = rows("queue counters", reading())
    assert data == ["up0", "UC3", 13 + 1, 2 + 1, 4 + 1]
    assert high == ["up0", "UC6", 7 + 5 + 3, 0, 0]


def test_trimmed_packets_that_wait_with_data_are_in_its_queue() -> None:
    data, high = rows("queue counters", reading({"out_trimmed_dropped": 1}, first=False))
    assert (data[2], high[2]) == (13 + 1 + 5 + 3 - 1, 7)


def test_trimmed_packets_that_the_high_queue_may_have_dropped_are_not_known() -> None:
    assert rows("interfaces counters trim", reading()) == [["up0", "p0-t1-0", 5, 5, 0]]
    assert rows("queue counters trim", reading({"queue_drops_high": 1})) == [["up0", "UC3", 5, "N/A", "N/A"]]
    assert rows("switch counters", reading({"out_trimmed": 0, "queue_drops_high": 1})) == [[0, 0, 0]]


@pytest.mark.parametrize("view", VIEWS)
def test_what_nobody_has_counted_is_not_0(view: str) -> None:
    nothing = SwitchReading("p0-t0-0", (PortReading("up0", "h0", {}),), SID, None)
    cells = [cell for row in rows(view, nothing) for cell in row]
    assert "N/A" in cells
    assert 0 not in cells


def test_plain_shapers_know_their_drops_and_no_marks() -> None:
    plain = PortReading("up0", "h0", plain_shaper_counts(drops=9, of_control=4))
    data, high = rows("queue counters", SwitchReading("p0-t0-0", (plain,), SID, None))
    assert data == ["up0", "UC3", "N/A", 5, "N/A"]
    assert high == ["up0", "UC6", "N/A", 4, "N/A"]


def test_a_table_has_its_columns_below_each_other() -> None:
    assert shown(reading(), "srv6 stats").splitlines() == [
        "MySID                Packets  Bytes",
        "-------------------  -------  -----",
        "fcbb:bb00:1000::/48       12   3400",
        "no SID, dropped            2    N/A",
    ]
    hashed = SwitchReading("p0-t0-0", (), None, None)
    assert shown(hashed, "srv6 stats") == "p0-t0-0: packets list no switches here, so there is no SID"


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_a_terminal(view: str) -> None:
    assert max(map(len, shown(reading(), view).splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("srv6", "`show srv6` goes on: stats | static-sids"),
        ("queue count", "did you mean 'queue counters'?"),
        ("", "there is no view ''; there are srv6 stats"),
    ],
)
def test_other_words_are_refused(words: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        view_named(words.split())
    assert said in str(caught.value)


def test_the_page_of_names_is_made_of_the_tables() -> None:
    assert NAMES.read_text(encoding="utf-8") == text(), "run: python tools/make_names.py"


def test_names_of_this_project_that_the_page_has_are_there() -> None:
    """Counts by their names in a reading, and keys in what documents results."""
    documented = (Path(__file__).parents[3] / "docs/results.md").read_text(encoding="utf-8")
    for name in ("most_queued_bytes", "no_sid", "sids", "out_trimmed", "queue_drops_high", "out_other_marked"):
        assert name in text()
        assert name in documented
