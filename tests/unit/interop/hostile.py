"""Programs that break the contract: `python hostile.py MODE`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from mrc_testbed.hosts.contract import ContractHost, serve
from mrc_testbed.hosts.control import Fields, Request


def text(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def say(fields: Any) -> None:
    text(json.dumps(fields))


class Liar(ContractHost):
    """Answers a turn with `fields`, from its fifth on."""

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        self._fields = fields
        self._left = 5

    def _turn(self, request: Request) -> Fields:
        self._left -= 1
        return {**super()._turn(request), **(self._fields if self._left <= 0 else {})}


class Dying(ContractHost):
    """Dies in its tenth turn."""

    turns = 0

    def _turn(self, request: Request) -> Fields:
        self.turns += 1
        if self.turns == 10:
            sys.stderr.write("assertion failed: window > 0\x1b[31m\n")
            sys.stderr.flush()
            os.abort()
        return super()._turn(request)


def idle() -> None:
    time.sleep(600)


def flood(stream: TextIO) -> None:
    while True:
        stream.write("x" * 65536)


def refuse(more: Fields) -> None:
    for line in sys.stdin:
        say({"id": json.loads(line)["id"], "ok": False, **more})


def leave() -> None:
    sys.stderr.write("cannot find libfoo.so\n")
    sys.exit(3)


HELLO = {"contract": 1, "name": "hostile"}
MODES: dict[str, tuple[Callable[[], object], ...]] = {
    "silent": (idle,),
    "flood": (lambda: flood(sys.stdout),),
    "flood stderr": (lambda: say(HELLO), lambda: flood(sys.stderr)),
    "no json": (lambda: text("hello world"), idle),
    "deep": (lambda: text("[" * 100_000), idle),
    "no object": (lambda: say([1, 2]),),
    "future": (lambda: say({**HELLO, "contract": 2}),),
    "nameless": (lambda: say({"contract": 1}),),
    "exits": (leave,),
    "deaf": (lambda: say(HELLO), idle),
    "unasked": (lambda: say(HELLO), lambda: [say({"id": number + 7, "ok": True}) for number in range(100)], idle),
    "refuses": (lambda: say(HELLO), lambda: refuse({"error": "not today"})),
    "unsupported": (lambda: say(HELLO), lambda: refuse({"unsupported": True, "error": "no streams yet"})),
    "dies": (lambda: serve(Dying(), "dies", sys.stdin.buffer, sys.stdout.buffer),),
}

if __name__ == "__main__":
    if sys.argv[1] in MODES:
        for part in MODES[sys.argv[1]]:
            part()
    else:
        serve(Liar(json.loads(sys.argv[1])), "liar", sys.stdin.buffer, sys.stdout.buffer)
