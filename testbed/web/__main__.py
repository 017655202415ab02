"""The server process: `python -m mrc_testbed.testbed.web --channel FD [--listen FD] [--metrics FD]`. Exits when the
command that started it does. `--listen`: serves the page; `--metrics`: serves metrics, by another socket.

It is a separate process so that no browser can delay the run, and runs in the caller's network namespace, where
browsers are. It opens no file after the start: reports come as open descriptors. Started by root, it switches to
another user.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import socket
import sys
import threading
from http.server import ThreadingHTTPServer
from typing import Any

from mrc_testbed.testbed.pages.live.page import live_page
from mrc_testbed.testbed.web.channel import Channel, ChannelMessage, Closed
from mrc_testbed.testbed.web.metrics_server import MetricsServer, NewestSeries
from mrc_testbed.testbed.web.rpc import ANSWER, RpcClient
from mrc_testbed.testbed.web.server import Server, Site
from mrc_testbed.testbed.web.sse_state import (
    BYE,
    LINGER,
    SCRAPED,
    SERIES,
    SERIES_BEGIN,
    SERIES_END,
    SERIES_KINDS,
    SseState,
)

_NOBODY = 65534
_LAST_EVENTS_S = 1.0
_NICENESS = 5
"""Lower CPU priority than the run."""


def main() -> None:
    """Serve until the channel closes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it ends without a traceback, and the run goes on without it
    parser = argparse.ArgumentParser()
    parser.add_argument("--channel", type=int, required=True)
    for name in ("--listen", "--metrics"):
        parser.add_argument(name, type=int)
    parser.add_argument("--truth", action="store_true")
    arguments = parser.parse_args()
    channel = Channel(socket.socket(fileno=arguments.channel))
    name = secrets.token_hex(8)
    site = Site(live_page(name) if arguments.listen else b"", _token(channel), name, SseState(), RpcClient(channel))
    newest = NewestSeries(arguments.truth)
    servers: list[ThreadingHTTPServer] = []
    if arguments.listen is not None:
        servers.append(Server(socket.socket(fileno=arguments.listen), site))
    if arguments.metrics is not None:
        servers.append(MetricsServer(socket.socket(fileno=arguments.metrics), newest))
    _be_nobody()
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    follow(channel, site, newest)


def _token(channel: Channel) -> str:
    """The first message: on a command line or in an environment others could read it. Exits if the command is gone."""
    try:
        message = channel.receive()
    except Closed:
        sys.exit(0)
    return str(message.content) if message else ""


def follow(channel: Channel, site: Site, newest: NewestSeries) -> None:
    """Handle messages of the run until the channel closes, then let browsers read the last events."""
    with contextlib.suppress(Closed):
        while True:
            message = channel.receive()
            if message is None:
                continue
            if message.kind == LINGER:
                threading.Thread(target=_linger, args=(channel, newest, message.content), daemon=True).start()
            else:
                _take(message, site, newest)
    site.state.put(BYE, b"{}")
    site.state.wait_until_read(_LAST_EVENTS_S)


def _linger(channel: Channel, newest: NewestSeries, asked: dict[str, Any]) -> None:
    newest.wait_for_scrapers(asked["seconds"], asked["always"])
    channel.send(SCRAPED, None)


def _take(message: ChannelMessage, site: Site, newest: NewestSeries) -> None:
    if message.kind == ANSWER:
        site.rpc.take(message.content)
        return
    if message.kind in SERIES_KINDS:
        {SERIES_BEGIN: newest.begin, SERIES: newest.put, SERIES_END: newest.end}[message.kind](message.content)
        return
    if message.files:
        site.reports[message.content["run"]] = message.files[0]
    site.state.put(message.kind, message.body)


def _be_nobody() -> None:
    os.nice(_NICENESS)
    os.chdir("/")
    if os.geteuid() == 0 and not _alone():
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


def _alone() -> bool:
    """In the user namespace of a single user, who is root there and may do no more than outside."""
    with contextlib.suppress(FileNotFoundError), open("/proc/self/setgroups", encoding="ascii") as allowed:
        return allowed.read() == "deny\n"
    return False  # a kernel without user namespaces


if __name__ == "__main__":
    main()
