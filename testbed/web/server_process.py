"""The server process of the live view: started before the first run, ends with the command."""

from __future__ import annotations

import errno
import os
import secrets
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.isolated import python_command
from mrc_testbed.testbed.live.series_feed import SeriesFeed
from mrc_testbed.testbed.metrics.series import final_document, port_labels
from mrc_testbed.testbed.pages.report.write import REPORT_FILE
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.runner.interactive import InteractiveFaults
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.progress import Progress, Screen
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.web.channel import Channel, Closed, socket_pair
from mrc_testbed.testbed.web.metrics_address import USUAL_LINGER_S, MetricsAddress, listen_for_metrics
from mrc_testbed.testbed.web.rpc import ANSWER, ASK, FRESH_NS
from mrc_testbed.testbed.web.scene import scene
from mrc_testbed.testbed.web.sse_state import LINGER, SCENE, SCRAPED, SERIES_BEGIN, SERIES_END, TOKEN, VERDICT
from mrc_testbed.testbed.web.supervisor_end import BrowserScreen, RequestHandler, SeriesToServer

USUAL_PORT = 8460
"""Tried first, so that a page left open finds the next run."""
_HOST = "127.0.0.1"
_PATIENCE_S = 1.0
"""Longest wait to send scene and verdict, between runs."""
_END_S = 3.0


class ServerProcess:
    """A server process and the channel to it, which the supervisor of each run inherits.

    `title`: the name of the next run, if it differs from the scenario's. `address`: what to open, with the token where
    the page may change something.
    """

    def __init__(
        self,
        port: int | None,
        interactive: bool,
        lesson: bool = False,
        page: bool = True,
        metrics: MetricsAddress | None = None,
    ) -> None:
        """Starts the server; for a `lesson` its page takes answers, without `page` there is none. Raises UsageError if
        a port cannot be opened."""
        self.interactive = interactive
        self._page = page
        self._metrics = metrics
        with ExitStack() as sockets:
            listening = sockets.enter_context(_listening(port)) if page else None
            scraped = sockets.enter_context(listen_for_metrics(metrics)) if metrics else None
            self.url = f"http://{_HOST}:{listening.getsockname()[1]}/" if listening else ""
            self.metrics_url = _metrics_url(scraped) if scraped else ""
            ours, theirs = socket_pair()
            self._channel = Channel(ours)
            with theirs:
                self._process = _start(theirs, listening, scraped, metrics is not None and metrics.truth)
        token = secrets.token_urlsafe(24)
        self._channel.send(TOKEN, token, _PATIENCE_S)
        self.address = f"{self.url}#{token}" if interactive or lesson else self.url
        self._runs = 0
        self._counts_packets = False
        self.title = ""

    def begin(self, scenario: Scenario, options: FabricOptions) -> None:
        """Show this run from now on."""
        self._runs += 1
        plan = scenario.plan()
        self._counts_packets = options.port_program
        if self._metrics:
            self._channel.send(SERIES_BEGIN, port_labels(plan), _PATIENCE_S)
        if not self._page:
            return
        content = scene(scenario, plan, options.port_program, self.interactive)
        self._channel.send(SCENE, {"run": self._runs, "title": self.title or scenario.name, **content}, _PATIENCE_S)

    def screens(self) -> Sequence[Screen]:
        """The screen that sends each frame to the server, where there is a page."""
        return [BrowserScreen(self._channel)] if self._page else []

    def feeds(self, scenario: Scenario, run: str) -> Sequence[Progress]:
        """What tells the server of metrics, where they are served."""
        if not self._metrics:
            return []
        return [SeriesFeed(scenario, run, self._counts_packets, SeriesToServer(self._channel))]

    def serve(self, loop: Loop, interactive: InteractiveFaults | None) -> None:
        """Answer requests."""
        RequestHandler(self._channel, loop, interactive)

    def end(self, outcome: RunOutcome) -> None:
        """Show the verdict. The report is passed as an open descriptor: the server opens no files."""
        if self._metrics:
            self._channel.send(SERIES_END, final_document(outcome.verdict), _PATIENCE_S)
        if not self._page:
            return
        report = outcome.folder / REPORT_FILE if outcome.folder else None
        files = [os.open(report, os.O_RDONLY | os.O_CLOEXEC)] if report and report.is_file() else []
        try:
            self._channel.send(
                VERDICT, {"run": self._runs, "report": bool(files), **_shown(outcome)}, _PATIENCE_S, files
            )
        finally:
            for file in files:
                os.close(file)

    def linger(self, tell: Callable[[str], None]) -> None:
        """Until scrapers have read what the runs came to, as the option says. `tell`: that it takes a while."""
        if not self._metrics:
            return
        asked_s = self._metrics.linger_s
        most_s = USUAL_LINGER_S if asked_s is None else asked_s
        self._channel.send(LINGER, {"seconds": most_s, "always": asked_s is not None}, _PATIENCE_S)
        if self._heard_of_scrapers(_PATIENCE_S):
            return
        tell(f"metrics: waiting until the verdict was scraped twice, at most {most_s:g} s, or until Ctrl-C")
        self._heard_of_scrapers(most_s)

    def _heard_of_scrapers(self, seconds: float) -> bool:
        """They have read it, or the server is gone."""
        deadline = time.monotonic() + seconds
        while select.select([self._channel.socket], [], [], max(0.0, deadline - time.monotonic()))[0]:
            try:
                message = self._channel.receive(wait=False)
            except Closed:
                return True
            if message and message.kind == SCRAPED:
                return True
        return False

    def tell(self, kind: str, content: Any) -> None:
        """Show something beside the runs."""
        self._channel.send(kind, content, _PATIENCE_S)

    def requests(self) -> Iterator[tuple[dict[str, Any], Callable[[bool, str], None]]]:
        """What browsers ask for while no run goes on, and how to answer it; ends with the server."""
        while True:
            try:
                message = self._channel.receive()
            except Closed:
                return
            if message is not None and message.kind == ASK:
                asked = message.content
                if time.monotonic_ns() - asked["t_ns"] <= FRESH_NS:
                    yield asked["request"], partial(self._answer, asked["id"])

    def _answer(self, number: int, ok: bool, text: str) -> None:
        self._channel.send(ANSWER, {"id": number, "ok": ok, "text": text}, _PATIENCE_S)

    def close(self) -> None:
        """Notify browsers and wait for the process to exit."""
        self._channel.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _shown(outcome: RunOutcome) -> dict[str, Any]:
    return {
        "verdict": outcome.verdict.status.value if outcome.verdict else "inconclusive",
        "headline": outcome.headline,
        "reason": outcome.reason,
        "folder": str(outcome.folder or ""),
    }


def _start(
    channel: socket.socket, listening: socket.socket | None, scraped: socket.socket | None, truth: bool
) -> subprocess.Popen[bytes]:
    ends = {"--channel": channel, "--listen": listening, "--metrics": scraped}
    given = {option: end.fileno() for option, end in ends.items() if end is not None}
    options = [word for option, number in given.items() for word in (option, str(number))]
    return subprocess.Popen(
        python_command("mrc_testbed.testbed.web", *options, *(["--truth"] if truth else [])),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=tuple(given.values()),
        start_new_session=True,  # Ctrl-C is for the run; the command ends the server
    )


def _metrics_url(scraped: socket.socket) -> str:
    host, port = scraped.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"


def _listening(port: int | None) -> closing[socket.socket]:
    if port is not None:
        try:
            return closing(_bound(port))
        except OSError as error:
            why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened: {error.strerror}"
            raise UsageError(f"--web-port {port}: {why}; leave it out to get a free port") from None
    try:
        return closing(_bound(USUAL_PORT))
    except OSError:
        return closing(_bound(0))


def _bound(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((_HOST, port))
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening
