"""The form of the control channel, and what a daemon answers to commands it cannot carry out."""

from __future__ import annotations

import json
import socket
from typing import Any, cast

import pytest

from mrc_testbed.hosts.control import CommandError, ControlChannel, Request
from mrc_testbed.hosts.daemon import Daemon
from mrc_testbed.hosts.session import Session
from mrc_testbed.hosts.udp import Lateness


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(5)
        yield ours, ControlChannel(theirs)


def test_lines_are_put_together_from_pieces(pair):
    ours, channel = pair
    ours.sendall(b'{"a"')
    assert channel.receive() == []
    ours.sendall(b':1}\n\n{"b":2}\n{"c"')
    assert channel.receive() == [b'{"a":1}', b'{"b":2}']
    ours.sendall(b":3}\n")
    assert channel.receive() == [b'{"c":3}']
    assert channel.receive() == []
    assert not channel.closed


def test_the_end_of_the_channel_is_seen(pair):
    ours, channel = pair
    ours.close()
    assert channel.receive() == []
    assert channel.closed


def test_sending_to_nobody_closes_the_channel(pair):
    ours, channel = pair
    ours.close()
    channel.send({"event": "x"})
    assert channel.closed
    assert not channel.backlog


def test_a_slow_reader_blocks_nobody_and_loses_nothing(pair):
    ours, channel = pair
    for number in range(2000):
        channel.send({"number": number, "filler": "x" * 500})
    assert channel.backlog
    with ours.makefile() as lines:
        for number in range(2000):
            channel.flush()
            assert json.loads(lines.readline())["number"] == number
    assert not channel.backlog


def test_fields_are_read_by_kind():
    request = Request(b'{"id":3,"cmd":"x","n":5,"f":false,"t":{"a":1},"r":[1],"s":"q"}')
    assert (request.id, request.cmd) == (3, "x")
    assert (request.number("n"), request.flag("f"), request.table("t")) == (5, False, {"a": 1})
    assert (request.rows("r"), request.text("s")) == ([1], "q")


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda request: request.number("missing"), "missing must be an integer of 0 or more, not None"),
        (lambda request: request.number("n", 6), "n must be an integer of 6 or more, not 5"),
        (lambda request: request.number("f"), "f must be an integer of 0 or more, not False"),
        (lambda request: request.flag("n"), "n must be true or false, not 5"),
        (lambda request: request.table("n"), "n must be an object, not 5"),
        (lambda request: request.rows("s"), "s must be a list, not 'q'"),
        (lambda request: request.text("n"), "n must be a string, not 5"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(read, message):
    with pytest.raises(CommandError) as caught:
        read(Request(b'{"n":5,"f":false,"s":"q"}'))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{nonsense", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"id":1}', "unknown command 'None'; known commands: configure, "),
        (b'{"id":1,"cmd":"dance"}', "unknown command 'dance'"),
        (b'{"id":1,"cmd":"configure"}', "host must be an integer"),
        (b'{"id":1,"cmd":"open_qps","qps":[]}', "send configure first"),
        (b'{"id":1,"cmd":"connect_qps","qps":{}}', "send configure first"),
        (b'{"id":1,"cmd":"warm_up","timeout_ns":1}', "send configure first"),
        (b'{"id":1,"cmd":"load"}', "send configure first"),
        (b'{"id":1,"cmd":"start","at_ns":1}', "send load first"),
        (b'{"id":1,"cmd":"stats"}', "send configure first"),
    ],
)
def test_what_cannot_be_done_is_answered_with_a_reason(pair, line, message):
    ours, channel = pair
    session = Session(channel, Lateness())
    session.handle(line, 0)
    answer = json.loads(ours.recv(4096))
    assert answer["ok"] is False
    assert answer["id"] == (1 if b'"id"' in line else None)
    assert message in answer["error"]
    assert session.running


CONFIGURE: dict[str, Any] = {
    "id": 1, "cmd": "configure", "host": 0, "name": "h0", "address": "::1", "planes": 1, "udp_port": 1, "rtt_ns": 1000,
    "port_rate_bps": 1000, "seed": 1, "ev_active": 1, "icrc": False, "delay_ns": 0, "ev_selection": "mine",
    "peers": [{"host": 1, "name": "h1", "address": "::2", "udp_port": 1, "paths": [[0, 0, "::2"]]}],
}  # fmt: skip


class NoWiring:
    """For a session whose packets nobody carries."""

    def port_watch(self, planes):
        return self

    def changes(self):
        return []

    receiver = sender = delay_arrivals = lambda *_: None


def configured(channel, **changes):
    session = Session(channel, Lateness(), cast(Any, NoWiring()))
    session.handle(json.dumps(CONFIGURE | {"ev_selection": "adaptive", "planes": 2} | changes).encode(), 0)
    return session


@pytest.mark.parametrize("paths", [[], [[2, 0, "::2"]], [[-1, 0, "::2"]], [[0, 256, "::2"]]])
def test_a_peer_needs_paths_of_the_fabric(pair, paths):
    ours, channel = pair
    configured(channel, peers=[CONFIGURE["peers"][0] | {"paths": paths}])
    assert "there must be one at least, on planes below 2" in json.loads(ours.recv(4096))["error"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", 10), ("a", 10)], "QP a is already open"),
        ([("a", 10**30)], "cannot fit 'int'"),
        ([("a", 10**18)], "MemoryError"),
        ([("a", 10), ("b", 10**18)], "MemoryError"),
    ],
)
def test_qps_that_cannot_be_opened_change_nothing(pair, rows, message):
    ours, channel = pair
    session = configured(channel)
    assert json.loads(ours.recv(4096))["ok"]
    qps = [{"id": name, "peer": 1, "region_bytes": size} for name, size in rows]
    session.handle(json.dumps({"id": 2, "cmd": "open_qps", "qps": qps}).encode(), 0)
    answer = json.loads(ours.recv(4096))
    assert (answer["ok"], message in answer["error"]) == (False, True), answer
    session.handle(json.dumps({"id": 3, "cmd": "open_qps", "qps": [qps[0] | {"region_bytes": 10}]}).encode(), 0)
    assert json.loads(ours.recv(4096))["ok"], "the name is still free"


def with_plugin(tmp_path, source, **changes):
    """The line of a `configure` that names a plugin of this source as its EV selection."""
    file = tmp_path / "mine.py"
    file.write_text(source)
    row = {"name": "mine", "kind": "ev_selection", "file": str(file), "attribute": "Mine"}
    return json.dumps(CONFIGURE | {"plugins": [row]} | changes).encode()


@pytest.mark.parametrize(
    ("source", "changes", "message"),
    [
        ("", {}, "mine.py has no class Mine"),
        ("1 / 0", {}, "mine.py:1: ZeroDivisionError: division by zero"),
        (
            "Mine = dict",
            {"ev_selection": "x"},
            "ev_selection must be one of adaptive, spec, bitmap, oblivious, reps, weighted-planes, mine, not 'x'",
        ),
        ("Mine = dict", {"congestion_control": "x"}, "congestion_control must be one of fixed, nscc, not 'x'"),
        ("", {"plugins": 7}, "plugins must be a list, not 7"),
        ("", {"plugins": [7]}, "expected an object with name, not 7"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_answered_with_a_reason(pair, tmp_path, source, changes, message):
    ours, channel = pair
    Session(channel, Lateness()).handle(with_plugin(tmp_path, source, **changes), 0)
    answer = json.loads(ours.recv(4096))
    assert answer["ok"] is False
    assert message in answer["error"]


@pytest.mark.parametrize("error", ["ValueError", "OSError", "KeyError"])
def test_an_error_of_a_plugin_ends_the_daemon_and_is_no_answer(tmp_path, error):
    """Although the session answers a ValueError of its own."""
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(with_plugin(tmp_path, f"def Mine(evs):\n    raise {error}(7)") + b"\n")
        assert Daemon(theirs).run() == 1
        theirs.close()
        (line,) = ours.makefile().read().splitlines()
    fatal = json.loads(line)
    assert (fatal["event"], fatal["reason"]) == ("fatal", f"plugin mine.py:2: {error}: 7 (mine)")


def test_stop_is_answered_and_ends_the_session(pair):
    ours, channel = pair
    session = Session(channel, Lateness())
    session.handle(b'{"id":9,"cmd":"stop"}', 0)
    assert json.loads(ours.recv(4096)) == {"id": 9, "ok": True}
    assert not session.running


def test_lateness_is_summed_up_in_bins_an_eighth_apart():
    lateness = Lateness()
    assert lateness.summary() == {"wakeups": 0, "p50_ns": 0, "p99_ns": 0, "max_ns": 0}
    for late_ns in [100] * 90 + [1000] * 9 + [70_000]:
        lateness.add(late_ns)
    assert lateness.summary() == {"wakeups": 100, "p50_ns": 104, "p99_ns": 1024, "max_ns": 70_000}
    lateness.clear()
    assert lateness.summary()["wakeups"] == 0


@pytest.mark.parametrize("late_ns", [0, 1, 7, 8, 15, 16, 1_000_003, 4_999_999, 10**12])
def test_a_percentile_is_at_most_an_eighth_too_high(late_ns: int):
    lateness = Lateness()
    lateness.add(late_ns)
    lateness.add(1 << 43)  # or the maximum would be told instead of the bin's bound
    assert late_ns < lateness.summary()["p50_ns"] <= max(late_ns + 1, late_ns * 9 / 8 + 1)
