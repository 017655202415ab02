"""The supervisor's end: sends frames and receives requests, and never blocks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from mrc_testbed.testbed.errors import TestbedError
from mrc_testbed.testbed.runner.interactive import InteractiveFaults, Refused, read_request
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.web.channel import Channel, Closed
from mrc_testbed.testbed.web.rpc import ANSWER, ASK, FRESH_NS
from mrc_testbed.testbed.web.scene import NOT_INTERACTIVE
from mrc_testbed.testbed.web.sse_state import FRAME, SERIES


class BrowserScreen:
    """The page, in any number of browsers."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def draw(self, frame: Mapping[str, Any]) -> None:
        """Send a frame, or drop it if the socket is full."""
        self._channel.send(FRAME, frame)

    def close(self) -> None:
        """Nothing to close: the verdict is still to come."""


class SeriesToServer:
    """Where documents of metrics go: to the server that is scraped."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def show(self, document: Mapping[str, Any]) -> None:
        """Send a document, or drop it if the socket is full: the next one says all of it again."""
        self._channel.send(SERIES, document)


class RequestHandler:
    """Answers requests from browsers. `interactive` None: all are refused."""

    def __init__(self, channel: Channel, loop: Loop, interactive: InteractiveFaults | None) -> None:
        self._channel = channel
        self._loop = loop
        self._interactive = interactive
        loop.watch(channel.socket, self._readable)

    def _readable(self) -> None:
        try:
            while (message := self._channel.receive(wait=False)) is not None:
                if message.kind == ASK:
                    self._take(message.content)
        except Closed:  # the server has died; the run continues without it
            self._loop.forget(self._channel.socket)

    def _take(self, asked: dict[str, Any]) -> None:
        if time.monotonic_ns() - asked["t_ns"] > FRESH_NS:
            return
        try:
            self._answer(asked, True, self._done(asked["request"]))
        except Refused as error:
            self._answer(asked, False, str(error))
        except TestbedError as error:  # ends the run, as it does for a fault of the schedule
            self._answer(asked, False, str(error))
            raise

    def _done(self, request: Any) -> str:
        if self._interactive is None:
            raise Refused(NOT_INTERACTIVE)
        return self._interactive.do(read_request(request, self._interactive.kinds))

    def _answer(self, asked: dict[str, Any], ok: bool, text: str) -> None:
        self._channel.send(ANSWER, {"id": asked["id"], "ok": ok, "text": text})
