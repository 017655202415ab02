"""The server process: `python -m testbed.web --channel FD --listen FD`. It ends when the command that started it does.

It is its own process so that no browser can hold the run up, and in the caller's network namespace, where browsers are.
It reads no file after it has started: reports come as open descriptors. What root started goes on as somebody else.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import socket
import threading

from testbed.pages.live.page import live_page
from testbed.web.channel import Channel, Closed, Message
from testbed.web.rpc import ANSWER, RpcClient
from testbed.web.server import Server, Site
from testbed.web.sse_state import BYE, SseState

_NOBODY = 65534
_LAST_EVENTS_S = 1.0
_NICENESS = 5
"""The run goes first."""


def main() -> None:
    """Serve until the channel ends."""
    parser = argparse.ArgumentParser()
    for name in ("--channel", "--listen"):
        parser.add_argument(name, type=int, required=True)
    arguments = parser.parse_args()
    channel = Channel(socket.socket(fileno=arguments.channel))
    token = secrets.token_urlsafe(24)
    name = secrets.token_hex(8)
    site = Site(live_page(token, name), token, name, SseState(), RpcClient(channel))
    server = Server(socket.socket(fileno=arguments.listen), site)
    _be_nobody()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    follow(channel, site)


def follow(channel: Channel, site: Site) -> None:
    """Take what the run says until the channel ends, and see that browsers hear of the end."""
    with contextlib.suppress(Closed):
        while True:
            message = channel.receive()
            if message is not None:
                _take(message, site)
    site.state.put(BYE, b"{}")
    site.state.wait_until_read(_LAST_EVENTS_S)


def _take(message: Message, site: Site) -> None:
    if message.kind == ANSWER:
        site.rpc.take(message.content)
        return
    if message.files:
        site.reports[message.content["run"]] = message.files[0]
    site.state.put(message.kind, message.body)


def _be_nobody() -> None:
    os.nice(_NICENESS)
    os.chdir("/")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


if __name__ == "__main__":
    main()
