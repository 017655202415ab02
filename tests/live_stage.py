"""The live view's server in this process, and a run that is played: the test holds the run's end of the channel."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.pages.live.page import live_page
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.web.__main__ import follow
from mrc_testbed.testbed.web.channel import Channel, Closed, socket_pair
from mrc_testbed.testbed.web.metrics_server import NewestSeries
from mrc_testbed.testbed.web.rpc import ANSWER, RpcClient
from mrc_testbed.testbed.web.scene import scene
from mrc_testbed.testbed.web.server import Server, Site
from mrc_testbed.testbed.web.sse_state import FRAME, SCENE, VERDICT, SseState
from mrc_testbed.topos.plan import build_plan

SMALL = """
name: small
about: two planes, two groups
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 30, compute: 100ms, allreduce: 1MiB}}]
"""
TOKEN = "the-token"


class LiveStage:
    """Serves until `stop`. `asked`: what browsers have asked for; `reply` makes the answers."""

    def __init__(self, port: int = 0, text: str = SMALL) -> None:
        self.scenario: Scenario = load_scenario_text(text)
        self.plan = build_plan(self.scenario.shape())
        self.asked: list[Any] = []
        self.reply: Callable[[Any], tuple[bool, str] | None] = lambda request: (True, f"did {request.get('do')}")
        ours, theirs = socket_pair()
        self.channel = Channel(ours)
        self.listening = socket.create_server(("127.0.0.1", port))
        self.port = self.listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.address = f"{self.url}#{TOKEN}"
        self.site = Site(live_page("stage"), TOKEN, "stage", SseState(), RpcClient(Channel(theirs)))
        self.server = Server(self.listening, self.site)
        loops = (
            lambda: self.server.serve_forever(0.02),
            lambda: follow(Channel(theirs), self.site, NewestSeries(truth=False)),
            self._play,
        )
        for each in loops:
            threading.Thread(target=each, daemon=True).start()

    def begin(self, interactive: bool = True, program: bool = True, run: int = 1, **changes: Any) -> None:
        """A run begins."""
        content = scene(self.scenario, self.plan, program, interactive)
        self.channel.send(SCENE, {"run": run, "title": self.scenario.name, **content, **changes}, 1)

    def frame(self, **changes: Any) -> dict[str, Any]:
        """Send what a whole fabric in mid-run looks like, with these keys changed."""
        whole = {**LiveModel(self.scenario, self.plan).frame(time.monotonic_ns()), "phase": "run", "t_s": 3.0}
        self.channel.send(FRAME, {**whole, **changes}, 1)
        return {**whole, **changes}

    def end(self, run: int = 1, report: int | None = None, **changes: Any) -> None:
        """The verdict is there."""
        content = {"run": run, "report": report is not None, "verdict": "pass", "headline": "30 steps", "reason": ""}
        files = [] if report is None else [report]
        self.channel.send(VERDICT, {**content, "folder": "results/small", **changes}, 1, files)

    def _play(self) -> None:
        try:
            while True:
                message = self.channel.receive()
                assert message is not None
                asked = message.content
                self.asked.append(asked["request"])
                answer = self.reply(asked["request"])
                if answer:
                    self.channel.send(ANSWER, {"id": asked["id"], "ok": answer[0], "text": answer[1]}, 1)
        except (Closed, OSError):
            return

    def hang_up(self) -> None:
        """The command has ended."""
        self.channel.socket.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """The server goes away as if it had died."""
        self.server.shutdown()
        self.server.server_close()
        self.hang_up()

    def get(self, path: str = "/", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Status, headers and body of an answer."""
        return self._request("GET", path, None, headers)

    def post(self, content: Any, path: str = "/do", **headers: str) -> tuple[int, Any]:
        """Status and content of the answer to a request by the page; `headers` changes some, "" leaves one out."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        usual = {"X_Token": TOKEN, "Content_Type": "application/json", "Content_Length": str(len(body))}
        status, _, answer = self._request("POST", path, body, {**usual, **headers})
        return status, json.loads(answer)

    def _request(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                if value:
                    connection.putheader(name.replace("_", "-"), value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()
