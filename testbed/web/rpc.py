"""Requests of browsers for faults: one goes to the run and waits for the answer with its number."""

from __future__ import annotations

import threading
import time
from itertools import count
from typing import Any

from testbed.web.channel import Channel

ASK, ANSWER = "ask", "answer"
_ANSWER_S = 3.0
FRESH_NS = 2_000_000_000
"""Older requests are not done: whoever asked has been told by then, or soon will be, that there was no answer."""


class NoAnswer(Exception):
    """Nobody takes requests now; the text says so."""


class RpcClient:
    """Passes requests on. Any thread may ask."""

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
                    raise NoAnswer("the run takes no requests now")
                self._answered.wait_for(lambda: self._waiting[number] is not None, _ANSWER_S)
                answer = self._waiting[number]
            finally:
                del self._waiting[number]
        if answer is None:
            raise NoAnswer("the run did not answer; nothing was done")
        return answer

    def take(self, answer: dict[str, Any]) -> None:
        """An answer has come. Nobody may be waiting for it any more."""
        with self._answered:
            if answer["id"] in self._waiting:
                self._waiting[answer["id"]] = answer
                self._answered.notify_all()
