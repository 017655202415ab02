"""The live view's server: what it gives, what it refuses, and that nobody can hold it up."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.web import rpc, server, visitors
from mrc_testbed.testbed.web.channel import Channel, Closed, socket_pair
from mrc_testbed.testbed.web.sse_state import BYE, FRAME, PAST, SCENE, VERDICT, SseState
from tests.live_stage import TOKEN, LiveStage

pytestmark = pytest.mark.slow

CUT = {"do": "cut", "target": "p0-t0-0:p0-t1-0", "for_s": 3}


@pytest.fixture
def stage() -> Iterator[LiveStage]:
    made = LiveStage()
    yield made
    made.stop()


def shown(stage: LiveStage, wanted: str) -> None:
    """Wait until the server has taken this from the run."""
    deadline = time.monotonic() + 10
    while not any(kind == wanted for kind, _ in next(stage.site.state.read(0.01))):
        assert time.monotonic() < deadline


class Stream:
    """A browser that listens."""

    def __init__(self, stage: LiveStage) -> None:
        self._socket = socket.create_connection(("127.0.0.1", stage.port), timeout=10)
        self._socket.sendall(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{stage.port}\r\n\r\n".encode())
        self._file = self._socket.makefile("rb")
        while self._file.readline().strip():
            pass
        assert self.next() == ("server", "stage")

    def next(self) -> tuple[str, Any]:
        """The next event and its data."""
        kind = ""
        while True:
            line = self._file.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                return kind, json.loads(line[6:])

    @property
    def over(self) -> bool:
        """The server has closed it; what was still to come is read."""
        return self._file.read() is not None

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def test_the_page_carries_everything_of_its_own_and_no_token(stage: LiveStage) -> None:
    status, headers, body = stage.get("/")
    assert status == 200
    assert TOKEN.encode() not in body
    assert b"connect-src &#39;self&#39;" in body
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil.example:PORT"])
@pytest.mark.parametrize("path", ["/", "/events", "/report/1"])
def test_another_name_for_this_machine_is_refused(stage: LiveStage, host: str, path: str) -> None:
    status, _, body = stage.get(path, Host=host.replace("PORT", str(stage.port)))
    assert status == 403
    assert b"<html" not in body


@pytest.mark.parametrize("host", ["127.0.0.1:PORT", "localhost:PORT", "LOCALHOST:PORT"])
def test_its_own_names_are_taken(stage: LiveStage, host: str) -> None:
    assert stage.get("/", Host=host.replace("PORT", str(stage.port)))[0] == 200


@pytest.mark.parametrize(
    "path", ["/report/1", "/report/", "/report/-1", "/../../etc/passwd", "/report/../etc/passwd", "//etc/passwd", "/do"]
)
def test_nothing_else_is_there(stage: LiveStage, path: str) -> None:
    assert stage.get(path)[0] == 404


def test_a_report_is_given_once_its_run_has_one(stage: LiveStage, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<p>the report")
    stage.begin(run=2)
    with (tmp_path / "report.html").open("rb") as file:
        stage.end(run=2, report=file.fileno())
        shown(stage, VERDICT)
    assert stage.get("/report/2")[2] == b"<p>the report"
    assert stage.get("/report/2")[2] == b"<p>the report", "again and again"
    assert stage.get("/report/1")[0] == 404


def test_a_request_reaches_the_run_and_its_answer_the_page(stage: LiveStage) -> None:
    stage.begin()
    shown(stage, SCENE)
    assert stage.post(CUT) == (200, {"ok": True, "text": "did cut"})
    stage.reply = lambda _: (False, "it is down already")
    assert stage.post(CUT) == (200, {"ok": False, "text": "it is down already"})
    assert stage.asked == [CUT, CUT]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X_Token": ""}, 403),
        ({"X_Token": "guessed"}, 403),
        ({"X_Token": TOKEN + "\xff"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Content_Length": ""}, 411),
        ({"Content_Length": "-5"}, 411),
        ({"Content_Length": "1e3"}, 411),
        ({"Content_Length": "5000"}, 413),
        ({"Content_Length": "9" * 30}, 413),
        ({"Content_Length": "9" * 5000}, 413),
        ({"path": "/events"}, 404),
    ],
)
def test_who_may_not_ask_does_not_reach_the_run(stage: LiveStage, headers: dict[str, str], status: int) -> None:
    stage.begin()
    shown(stage, SCENE)
    assert stage.post(CUT, **headers)[0] == status
    assert stage.asked == []


def test_the_own_page_may_ask(stage: LiveStage) -> None:
    stage.begin()
    shown(stage, SCENE)
    for name in ("127.0.0.1", "localhost"):
        assert stage.post(CUT, Origin=f"http://{name}:{stage.port}", Host=f"{name}:{stage.port}")[0] == 200


@pytest.mark.parametrize("body", [b"{", b"[1]", b"7", b'"cut"', b"\xff\xfe", b"", b"[" * 4000, b'{"do": [[]]}'])
def test_what_is_no_request_is_told_so(stage: LiveStage, body: bytes) -> None:
    stage.begin()
    shown(stage, SCENE)
    assert stage.post(body) == (400, {"ok": False, "text": "the request must be a flat JSON object"})
    assert stage.asked == []


def test_no_run_takes_no_requests(stage: LiveStage) -> None:
    assert stage.post(CUT) == (200, {"ok": False, "text": "no run in progress"})
    stage.begin()
    stage.end()
    shown(stage, VERDICT)
    assert stage.post(CUT)[1]["ok"] is False
    assert stage.asked == []


def test_a_run_that_does_not_answer(stage: LiveStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "_ANSWER_S", 0.05)
    stage.reply = lambda _: None
    stage.begin()
    shown(stage, SCENE)
    assert stage.post(CUT) == (504, {"ok": False, "text": "the run did not answer; nothing was done"})


def test_a_page_opened_in_mid_run_has_everything_and_then_what_is_new(stage: LiveStage) -> None:
    stage.begin()
    for t_s in (1.0, 2.0):
        stage.frame(
            t_s=t_s, hosts={"h0": {"ports": [], "goodput_bps": t_s * 10}, "h1": {"ports": [], "goodput_bps": 1}}
        )
    shown(stage, FRAME)
    while len(stage.site.state._past) < 2:
        time.sleep(0.01)
    browser = Stream(stage)
    assert [browser.next()[0] for _ in range(3)] == [SCENE, FRAME, PAST]
    stage.frame(t_s=5.0)
    assert browser.next() == (FRAME, stage.frame(t_s=5.0))
    stage.end()
    kinds = [browser.next()[0]]
    while kinds[-1] == FRAME:
        kinds.append(browser.next()[0])
    assert kinds[-1] == VERDICT
    stage.begin(run=2)
    assert browser.next()[1]["run"] == 2
    stage.hang_up()
    assert browser.next()[0] == BYE
    assert browser.over
    browser.close()


def test_the_goodput_of_the_last_frames_comes_along() -> None:
    state = SseState()
    state.put(SCENE, b"{}")
    for t_s in (None, 1.0, 2.0):
        frame = {"t_s": t_s, "hosts": {"h0": {"goodput_bps": 5}, "h1": {"goodput_bps": 6}}}
        state.put(FRAME, json.dumps(frame).encode())
    assert next(state.read(0))[-1] == (PAST, b"[[1.0, 11], [2.0, 11]]")
    state.put(SCENE, b"{}")
    assert [kind for kind, _ in next(state.read(0))] == [SCENE], "a new run begins with nothing"


def test_a_browser_that_reads_nothing_holds_nobody_up(stage: LiveStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_WRITE_S", 0.2)
    stage.begin()
    sleeper = Stream(stage)
    big = {f"p0-t1-{number}": "broken" for number in range(20_000)}
    deadline = time.monotonic() + 10
    while stage.site.state._readers and time.monotonic() < deadline:
        stage.frame(nodes=big)
        shown(stage, FRAME)
    assert stage.site.state._readers == 0, "it was let go of"
    assert stage.get("/")[0] == 200
    sleeper.close()


def closed(trickle: socket.socket) -> bool:
    """Send a byte more; the server has closed the connection."""
    try:
        trickle.sendall(b"G")
        return trickle.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_a_request_that_comes_a_byte_at_a_time_is_given_up(stage: LiveStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_REQUEST_S", 0.3)
    with socket.create_connection(("127.0.0.1", stage.port), timeout=10) as slow:
        deadline = time.monotonic() + 10
        while not closed(slow) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert closed(slow)
    assert stage.get("/")[0] == 200


def connections(stage: LiveStage, count: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", stage.port), timeout=10) for _ in range(count)]


def test_more_connections_than_one_user_may_have_are_told_so(stage: LiveStage) -> None:
    idle = connections(stage, visitors.MOST_OF_ONE)
    with socket.create_connection(("127.0.0.1", stage.port), timeout=10) as one_more:
        answer = one_more.makefile().read()
        assert answer.startswith("HTTP/1.0 503 ")
        assert f"user {os.getuid()} has {visitors.MOST_OF_ONE} connections open" in answer
    for each in idle:
        each.close()
    deadline = time.monotonic() + 10
    status = 0
    while status != 200 and time.monotonic() < deadline:
        try:
            status = stage.get("/")[0]
        except ConnectionError:
            time.sleep(0.05)
    assert status == 200, "and there is room again when they have left"


HOARD = """
import os, socket, sys
os.setuid(65533)
ask = b"GET /events HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\n\\r\\n" % int(sys.argv[1])
held = [socket.socket() for _ in range(200)]
for each in held:
    each.connect(("127.0.0.1", int(sys.argv[1])))
    try:
        each.sendall(ask)
    except ConnectionError:
        pass
print("done", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_one_user_with_all_the_streams_it_can_get_shuts_nobody_else_out(stage: LiveStage) -> None:
    words = [sys.executable, "-c", HOARD, str(stage.port)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hoarder:
        assert hoarder.stdout
        assert hoarder.stdout.readline() == b"done\n"
        stage.begin()
        shown(stage, SCENE)
        assert stage.get("/")[0] == 200
        assert stage.post(CUT) == (200, {"ok": True, "text": "did cut"})


def test_users_have_their_own_room_and_all_of_them_one() -> None:
    room = visitors.Visitors(lambda address: f"user {address[1] // 1000}")
    entered = [not room.enter(("127.0.0.1", n)) for user in range(9) for n in range(user * 1000, user * 1000 + 30)]
    assert sum(entered[:30]) == sum(entered[30:60]) == visitors.MOST_OF_ONE
    assert sum(entered) == visitors.MOST_CONNECTIONS
    assert "all it takes" in room.enter(("127.0.0.1", 999_999))
    for _ in range(2):
        room.leave(("127.0.0.1", 1))
        assert room.enter(("127.0.0.1", 1)) == ""


def test_where_no_sockets_are_listed_it_is_addresses_that_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "_SOCKETS", "/nowhere")
    assert visitors.users_of_this_machine(1)(("127.0.0.2", 5)) == "127.0.0.2"


def test_a_socket_that_is_in_no_list_is_of_an_unknown_user() -> None:
    assert visitors.users_of_this_machine(1)(("127.0.0.2", 5)) == "an unknown user"


def test_a_run_never_waits_for_its_server() -> None:
    ours, _theirs = socket_pair()
    run = Channel(ours)
    sent = 0
    while run.send(FRAME, {"filling": "x" * 1000}) and sent < 100_000:
        sent += 1
    assert 10 < sent < 100_000
    began = time.monotonic()
    assert not run.send(FRAME, {})
    assert time.monotonic() - began < 1


def test_what_is_larger_than_the_room_of_a_socket_arrives_whole_and_leaves_nothing_open(tmp_path: Path) -> None:
    """As the scene of a large fabric, which was not shown."""
    ours, theirs = map(Channel, socket_pair())
    content = {"filling": "x" * (1 << 22)}
    before = os.listdir("/proc/self/fd")
    with (tmp_path / "file").open("w+b") as file:
        assert ours.send(FRAME, content, files=[file.fileno()])
    assert ours.send(FRAME, {})
    received = theirs.receive()
    assert received
    assert (received.content, len(received.files)) == (content, 1)
    os.close(received.files[0])
    assert theirs.receive()
    assert os.listdir("/proc/self/fd") == before


def test_what_has_nobody_to_go_to_is_not_sent() -> None:
    ours, theirs = socket_pair()
    theirs.close()
    assert not Channel(ours).send(FRAME, {})


def test_messages_keep_their_bounds_and_their_files(tmp_path: Path) -> None:
    ours, theirs = map(Channel, socket_pair())
    assert theirs.receive(wait=False) is None
    with (tmp_path / "file").open("w+b") as file:
        file.write(b"content")
        file.flush()
        ours.send(SCENE, {"text": "two\nlines"})
        ours.send(VERDICT, {}, files=[file.fileno()])
    first, second = theirs.receive(), theirs.receive()
    assert first
    assert (first.kind, first.content, first.files) == (SCENE, {"text": "two\nlines"}, ())
    assert second
    assert os.pread(second.files[0], 100, 0) == b"content"
    os.close(second.files[0])
    ours.close()
    with pytest.raises(Closed):
        theirs.receive()
