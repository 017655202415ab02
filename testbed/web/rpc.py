"""Fault requests from browsers: forwards one to the run and waits for its answer."""

from __future__ import annotations

import threading
import time
from itertools import count
from typing import Any

from mrc_testbed.testbed.web.channel import Channel

ASK, ANSWER = "ask", "answer"
_ANSWER_S = 3.0
FRESH_NS = 2_000_000_000
"""Older requests are dropped: their senders have been told, or soon will be, that there was no answer."""


class NoAnswer(Exception):
    """The run does not accept requests; the text says why."""


class RpcClient:
    """Forwards requests; thread-safe."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._answered = threading.Condition()
        self._waiting: dict[int, dict[str, Any] | None] = {}

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The run's answer, `ok` and `text`. Raises NoAnswer."""
        with self._answered:
            number = next(self._numbers)
            self._waiting[number] = None
            try:
                if not self._channel.send(ASK, {"id": number, "t_ns": time.monotonic_ns(), "request": request}):
                    raise NoAnswer("the run does not accept requests now")
                self._answered.wait_for(lambda: self._waiting[number] is not None, _ANSWER_S)
                answer = self._waiting[number]
            finally:
                del self._waiting[number]
        if answer is None:
            raise NoAnswer("the run did not answer; nothing was done")
        return answer

    def take(self, answer: dict[str, Any]) -> None:
        """Deliver an answer; nobody may be waiting for it any more."""
        with self._answered:
            if answer["id"] in self._waiting:
                self._waiting[answer["id"]] = answer
                self._answered.notify_all()
