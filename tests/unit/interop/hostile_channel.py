"""Programs of form B that do wrong: `hostile_channel.py HOW`. Descriptor 3 is the control channel."""

from __future__ import annotations

import json
import socket
import sys
import time
from typing import Any

HELLO = {"event": "hello", "contract": 1, "name": "hostile"}


class Channel:
    """Lines over descriptor 3."""

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=3)
        self._lines = self._socket.makefile("rb")

    def say(self, fields: Any) -> None:
        self._socket.sendall(json.dumps(fields).encode() + b"\n")

    def raw(self, content: bytes) -> None:
        self._socket.sendall(content)

    def requests(self) -> Any:
        return (json.loads(line) for line in self._lines)


def begin(channel: Channel, how: str) -> None:
    """The first line, or what comes in its place."""
    match how:
        case "silent":
            time.sleep(60)
        case "long line":
            channel.raw(b"x" * (5 << 20))
            time.sleep(60)
        case "no json":
            channel.raw(b"hello world\n")
        case "wrong version":
            channel.say({**HELLO, "contract": 7})
    channel.say(HELLO)
    if how == "dies":
        sys.exit("out of cheese")


def respond(channel: Channel, how: str, request: dict[str, Any]) -> None:
    """To one request."""
    answer = {"id": request["id"], "ok": request["cmd"] != "no such request"}
    match how:
        case "takes all":
            channel.say({**answer, "ok": True})
        case "unsupported":
            channel.say({**answer, "ok": False, "unsupported": True, "error": "no sockets yet"})
        case "no answer" if answer["ok"]:
            pass
        case "events":
            for _ in range(2000):
                channel.say({"event": "note", "t_ns": 0, "text": "x" * 1000})
        case "strange answer":
            channel.say({"id": 99, "ok": True})
        case "strange event":
            channel.say({"event": ["x"]})
        case _:
            channel.say({**answer, "lateness": {"p99_ns": 1}})


def main(how: str) -> None:
    channel = Channel()
    begin(channel, how)
    for request in channel.requests():
        respond(channel, how, request)
        if request["cmd"] == "stop" and how not in ("stays", "no answer"):
            sys.exit(3 if how == "status 3" else 0)
    if how == "stays":
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1])
