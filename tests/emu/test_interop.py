"""Form B: our own daemon as a program of others in the place of a host's daemon, and one that dies there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mrc_testbed.testbed.interop.by_channel import ChannelJudging
from mrc_testbed.testbed.interop.entries import ListedProgram, RowForm
from mrc_testbed.testbed.interop.evidence import Role
from mrc_testbed.testbed.interop.results import StepMark
from mrc_testbed.testbed.interop.steps import STEPS
from tests.unit.interop.judged import python

OURS = (sys.executable, "-m", "mrc_testbed.hosts.contract_daemon")


def _judging(place: Path, *command: str) -> ChannelJudging:
    return ChannelJudging(ListedProgram("subject", command, place, Role.BOTH, RowForm.CHANNEL), place / "subject")


def test_our_daemon_passes_where_the_machine_keeps_time(tmp_path: Path) -> None:
    judging = _judging(tmp_path, *OURS)
    for number in (2, 4, 7):
        result = judging.step(STEPS[number - 1])
        busy = result.mark is StepMark.NOT_APPLICABLE and "is believed" in result.reasons[0]
        assert result.mark is StepMark.PASS or busy, result.reasons
    verdict = json.loads((tmp_path / "subject" / "spray" / "verdict.json").read_text())
    assert verdict["verdict"] == "inconclusive", "nobody knows how late it was"
    assert json.loads((tmp_path / "subject" / "spray" / "fidelity.json").read_text())["lateness_p99_ns"]["h0"] is None


def test_one_that_dies_has_its_last_words(tmp_path: Path) -> None:
    result = _judging(tmp_path, *python("hostile_channel.py", "dies")).step(STEPS[1])
    assert result.mark is StepMark.FAIL
    assert "out of cheese" in result.reasons[0]
