"""Our daemon as a program that speaks form B of contract 1 (docs/contract.md): its control channel is descriptor 3."""

from __future__ import annotations

import json
import socket
import sys

from mrc_testbed.hosts.contract import VERSION
from mrc_testbed.hosts.daemon import serve

CONTROL = 3
"""The descriptor of the control channel."""


def hello(name: str) -> bytes:
    """The first line."""
    fields = {"event": "hello", "contract": VERSION, "name": name, "features": []}
    return json.dumps(fields).encode() + b"\n"


def main() -> int:
    """Entry point of `python -m mrc_testbed.hosts.contract_daemon`."""
    control = socket.socket(fileno=CONTROL)
    control.sendall(hello("mrc-testbed"))
    return serve(control)


if __name__ == "__main__":
    sys.exit(main())
