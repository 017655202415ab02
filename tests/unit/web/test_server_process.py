"""The server process of `run --web` as the command has it: its port, its life, and what it is told."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrc_testbed.testbed.app import run as run_module
from mrc_testbed.testbed.commands.web import wait_for_the_room
from mrc_testbed.testbed.errors import ExitCode, FabricError, UsageError
from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir.planned import plan_document
from mrc_testbed.testbed.scenario import load_scenario, load_scenario_text
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.web import server_process
from mrc_testbed.testbed.web.channel import Channel, socket_pair
from mrc_testbed.testbed.web.rpc import ANSWER, ASK
from mrc_testbed.testbed.web.scene import NOT_INTERACTIVE
from mrc_testbed.testbed.web.server_process import ServerProcess
from mrc_testbed.testbed.web.sse_state import FRAME
from mrc_testbed.testbed.web.supervisor_end import BrowserScreen, RequestHandler
from mrc_testbed.topos.plan import build_plan
from tests.live_stage import SMALL
from tests.unit.calls import Call
from tests.unit.checks.test_folder import RunFolder
from tests.unit.runner.test_interactive import LINK, Hands

pytestmark = pytest.mark.slow

PROGRAM = FabricOptions("dummy", "netem", "port program")


def get(url: str, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://").rstrip("/"), timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_process_serves_run_after_run_and_ends_with_the_command(tmp_path: Path) -> None:
    server = ServerProcess(None, interactive=True)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", server.url)
    (tmp_path / "report.html").write_text("<p>the report")
    server.begin(load_scenario_text(SMALL), PROGRAM)
    server.end(RunOutcome(ExitCode.PASS, 1.0, folder=tmp_path / "none"))
    server.begin(load_scenario_text(SMALL), PROGRAM)
    server.end(RunOutcome(ExitCode.PASS, 1.0, folder=tmp_path))
    wait_for(lambda: get(server.url, "/report/2")[0] == 200)
    assert get(server.url, "/report/1")[0] == 404, "that run had none"
    server.close()
    assert server._process.poll() == 0
    with pytest.raises(ConnectionError):
        get(server.url, "/")


def test_only_the_address_of_an_interactive_view_has_a_token_and_the_page_has_none() -> None:
    watched, touched = ServerProcess(None, interactive=False), ServerProcess(None, interactive=True)
    assert watched.address == watched.url
    url, _, token = touched.address.partition("#")
    assert url == touched.url
    assert len(token) >= 32
    assert token.encode() not in get(url, "/")[1]
    command = Path(f"/proc/{touched._process.pid}/cmdline").read_text()
    assert token not in command
    for server in (watched, touched):
        server.close()


def test_an_interrupted_server_says_nothing_and_the_run_goes_on(capfd: pytest.CaptureFixture[str]) -> None:
    server = ServerProcess(None, interactive=False)
    assert get(server.url, "/")[0] == 200
    server._process.send_signal(signal.SIGINT)
    assert server._process.wait(10) == -signal.SIGINT
    server.begin(load_scenario_text(SMALL), PROGRAM)
    server.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_root_started_goes_on_as_nobody() -> None:
    server = ServerProcess(None, interactive=False)
    assert get(server.url, "/")[0] == 200
    status = Path(f"/proc/{server._process.pid}/status").read_text()
    assert re.search(r"^Uid:\t65534\t65534\t65534\t65534$", status, re.MULTILINE)
    assert re.search(r"^Groups:\s*$", status, re.MULTILINE)
    server.close()


def test_a_command_that_is_killed_leaves_no_server() -> None:
    program = (
        "from mrc_testbed.testbed.web.server_process import ServerProcess; s = ServerProcess(None, False);"
        " print(s._process.pid, flush=True); input()"
    )
    command = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    assert command.stdout
    pid = int(command.stdout.readline())
    command.send_signal(signal.SIGKILL)
    command.communicate()
    wait_for(lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text())


def test_a_port_that_is_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"^--web-port {port}: is in use; leave it out to get a free port$"):
            ServerProcess(port, interactive=False)


def test_another_port_is_found_where_the_usual_one_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(server_process, "USUAL_PORT", taken.getsockname()[1])
        server = ServerProcess(None, interactive=False)
        assert get(server.url, "/")[0] == 200
        server.close()


_NO_BUTTONS = "mrc-testbed: --interactive needs --web: the buttons are on its page\n"
_NO_PORT = "mrc-testbed: --web-port needs --web\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "quickstart", "--interactive"), _NO_BUTTONS),
        (("run", "quickstart", "--web-port", "8460"), _NO_PORT),
        (("replay", "latest", "--interactive"), _NO_BUTTONS),
        (("replay", "latest", "--web-port", "8460"), _NO_PORT),
        (("paper", "--web-port", "8460"), _NO_PORT),
    ],
)
def test_options_that_mean_nothing_without_a_page(call: Call, words: tuple[str, ...], says: str) -> None:
    ended = call(*words)
    assert (ended.status, ended.err) == (2, says)


def test_one_server_for_all_runs_of_a_command(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[str, ServerProcess]] = []

    def run_scenario(*_: Any, audience: ServerProcess, **__: Any) -> RunOutcome:
        assert get(audience.url, "/")[0] == 200
        seen.append((audience.title, audience))
        return RunOutcome(ExitCode.PASS, 1.0)

    monkeypatch.setattr(run_module, "run_scenario", run_scenario)
    ended = call("run", "quickstart", "--web", "--interactive", "--repeat", "2", "--out", str(tmp_path))
    assert ended.status == 0
    assert [title for title, _ in seen] == ["quickstart #1", "quickstart #2"]
    (server,) = {server for _, server in seen}
    assert f"live view: {server.address}\n" in ended.err
    assert server.interactive
    assert server._process.poll() == 0, "without a terminal it ends with the last run"


def test_a_replay_and_the_figures_are_shown_too(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[str, bool]] = []

    def run_scenario(*_: Any, audience: ServerProcess, **__: Any) -> RunOutcome:
        assert get(audience.url, "/")[0] == 200
        seen.append((audience.title, audience.interactive))
        return RunOutcome(ExitCode.PASS, 1.0)

    monkeypatch.setattr(run_module, "run_scenario", run_scenario)
    monkeypatch.setattr(capabilities, "require", lambda found: None)
    run = RunFolder().write(tmp_path)
    planned = plan_document(build_plan(load_scenario(run / "scenario.yaml").shape()), ())
    (run / "plan.json").write_text(json.dumps(planned))
    for words in (("replay", str(run), "--interactive"), ("paper", "--only", "9a,9b")):
        ended = call(*words, "--web", "--out", str(tmp_path / "results"))
        assert ended.status == 0, ended.err
        assert ended.err.startswith("live view: http://127.0.0.1:")
    assert seen == [("small", True), ("fig09a", False), ("fig09b", False)]


@pytest.mark.parametrize("terminal", [True, False])
def test_on_a_terminal_the_page_stays_until_somebody_says_so(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    reads: list[str] = []

    class Keyboard:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            reads.append("waited")
            raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin", Keyboard())
    server: Any = SimpleNamespace(address="http://127.0.0.1:8460/", linger=lambda tell: None)
    for shown, code in ((None, ExitCode.PASS), (server, ExitCode.INTERRUPTED)):
        wait_for_the_room(shown, code, terminal)
    assert not reads, "nothing to look at, or somebody has just pressed Ctrl-C"
    wait_for_the_room(server, ExitCode.FAIL, terminal)
    assert reads == ["waited"] * terminal


class Asked(Hands):
    """A bench whose wishes come by the channel, as from a browser."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interactive: bool = True) -> None:
        super().__init__(tmp_path, monkeypatch)
        self.channel, ours = map(Channel, socket_pair())
        # The bench's clock has a selector that sees no sockets: what there is to read is read by hand.
        self.requests = RequestHandler(ours, self.bench.loop, self.made if interactive else None)

    def ask(self, at_s: float, request: Any, age_s: float = 0) -> None:
        t_ns = self.bench.start_ns + round(at_s * 10**9)
        asked = {"id": len(self.answers), "t_ns": t_ns - round(age_s * 10**9), "request": request}

        def sent() -> None:
            self.channel.send(ASK, asked)
            self.requests._readable()

        self.bench.loop.at(t_ns, sent)

    def said(self) -> list[tuple[bool, str]]:
        found = []
        while (message := self.channel.receive(wait=False)) is not None:
            assert message.kind == ANSWER
            found.append((message.content["ok"], message.content["text"]))
        return found


def test_requests_of_browsers_are_done_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, monkeypatch)
    asked.ask(1, {"do": "cut", "target": LINK, "for_s": 1})
    asked.ask(1.5, {"do": "cut", "target": LINK, "for_s": 1})
    asked.ask(1.6, ["cut"])
    asked.ask(3, {"do": "cut", "target": LINK}, age_s=2.5)
    asked.run(4)
    assert asked.said() == [
        (True, f"hand-1: link-down {LINK} for 1s"),
        (False, f"{LINK}: already affected by hand-1 (link-down {LINK})"),
        (False, "a request must be a JSON object"),
    ], "and what came too late was told of already"
    assert [row[0] for row in asked.planned()] == ["hand-1"]


def test_without_leave_everything_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, monkeypatch, interactive=False)
    asked.ask(1, {"do": "cut", "target": LINK, "for_s": 1})
    asked.run(2)
    assert asked.said() == [(False, NOT_INTERACTIVE)]
    assert asked.planned() == []


def test_a_kernel_that_refuses_is_told_and_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, monkeypatch)
    asked.bench.fabric.refuses.add(("port_down", "p0-t1-0", "down0"))
    asked.ask(1, {"do": "cut", "target": LINK, "for_s": 1})
    with pytest.raises(FabricError):
        asked.run(2)
    assert asked.said()[0][0] is False


def test_a_server_that_dies_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, monkeypatch)
    forgotten: list[Any] = []
    monkeypatch.setattr(asked.bench.loop, "forget", forgotten.append)
    asked.channel.close()
    asked.requests._readable()
    assert len(forgotten) == 1
    asked.run(2)


def test_a_frame_goes_to_the_page_as_it_is() -> None:
    run, page = map(Channel, socket_pair())
    screen = BrowserScreen(run)
    screen.draw({"phase": "build"})
    screen.close()
    message = page.receive()
    assert message
    assert (message.kind, message.content) == (FRAME, {"phase": "build"})
    page.close()
    screen.draw({"phase": "run"})
