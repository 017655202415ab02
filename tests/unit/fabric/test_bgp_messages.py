"""UPDATE messages of BGP as daemons count them: what a switch says, and what has grown since."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mrc_testbed.testbed.fabric.bgp import messages
from mrc_testbed.testbed.fabric.bgp.messages import BgpMessages


class Answer:
    """What `vtysh` on a switch prints."""

    def __init__(self, text: str) -> None:
        self.text = text

    def communicate(self) -> tuple[str, None]:
        return self.text, None


def said(sent: int, received: int) -> str:
    stats = {"updatesSent": sent, "updatesRecv": received, "totalSent": 99}
    return json.dumps({"fd00:2::1": {"nbrDesc": "p0-t1-0", "messageStats": stats}})


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """By process of a switch."""
    found = {1: said(4, 3)}
    monkeypatch.setattr(messages, "_asked", lambda pid: Answer(found[pid]))
    return found


def grown(counted: BgpMessages) -> Any:
    told = counted.since_mark()
    return told and told["p0-t0-0"]["p0-t1-0"]


def test_what_came_since_the_mark_counts(answers: dict[int, str]) -> None:
    counted = BgpMessages({"p0-t0-0": 1})
    counted.mark()
    assert grown(counted) == {"updates_sent": 0, "updates_received": 0}
    answers[1] = said(9, 5)
    assert grown(counted) == {"updates_sent": 5, "updates_received": 2}


def test_a_daemon_that_started_again_counts_from_nought(answers: dict[int, str]) -> None:
    counted = BgpMessages({"p0-t0-0": 1})
    counted.mark()
    answers[1] = said(5, 3)
    counted.restarted("p0-t0-0")
    assert grown(counted) == {"updates_sent": 5, "updates_received": 3}


@pytest.mark.parametrize("answer", ["", "failed to connect to any daemons.", "[]", '{"a": {}}', '{"a": 1}'])
def test_a_switch_that_gives_no_answer_leaves_nothing_known(answers: dict[int, str], answer: str) -> None:
    counted = BgpMessages({"p0-t0-0": 1})
    counted.mark()
    answers[1] = answer
    assert grown(counted) == {}
    answers[1] = said(2, 1)
    assert grown(counted)
    answers[1] = answer
    counted.mark()
    answers[1] = said(2, 1)
    assert grown(counted) == {}
