"""`psn_of`: what is no PSN, and a run that cannot say it. Lesson 4 has runs that can."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrc_testbed.testbed.lessons.evidence import NotKnown
from mrc_testbed.testbed.lessons.kinds.kind import Unusable
from mrc_testbed.testbed.lessons.kinds.psns import FirstLost

KIND = FirstLost("h0", "h1", ())


def evidence(folder: Path) -> Any:
    return SimpleNamespace(one=lambda words: SimpleNamespace(record=SimpleNamespace(folder=folder)))


@pytest.mark.parametrize("given", ["0x10", "-4", "15 or 16", "²", "9" * 5000])
def test_only_a_plain_number_is_a_psn(tmp_path: Path, given: str) -> None:
    with pytest.raises(Unusable, match="is no PSN"):
        KIND.judge(given, evidence(tmp_path))


def test_a_run_without_captures_cannot_say_it(tmp_path: Path) -> None:
    with pytest.raises(NotKnown, match="sent to h1 again"):
        KIND.judge("4711", evidence(tmp_path))


def test_a_damaged_capture_cannot_say_it(tmp_path: Path) -> None:
    (tmp_path / "pcap").mkdir()
    (tmp_path / "pcap" / "a.pcapng").write_text("nothing")
    file = {"file": "a.pcapng", "link": "h0:p0-t0-0", "packets": 1, "bytes": 7, "lost": 0, "full": False}
    index = {"files": [file | {"comments": 0, "damage": ""}]}
    (tmp_path / "pcap" / "captures.json").write_text(json.dumps(index))
    with pytest.raises(NotKnown, match="not a capture file"):
        KIND.judge("4711", evidence(tmp_path))
