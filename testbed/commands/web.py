"""`--web` around runs: starts a server before the first run, and keeps it after the last."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from mrc_testbed.testbed.web.server_process import ServerProcess

Web = Annotated[bool, typer.Option("--web", help="Serve a live view of the run to browsers on this machine.")]
WebPort = Annotated[
    int | None,
    typer.Option(metavar="PORT", min=1, max=65535, help="With --web: serve on this port.", show_default=False),
]
Interactive = Annotated[bool, typer.Option("--interactive", help="With --web: inject and heal faults from the page.")]


def refuse_without_web(web: bool, port: int | None, interactive: bool) -> None:
    """Raises UsageError for options that need --web, and for --web where the system cannot."""
    if web and not hasattr(socket, "AF_UNIX"):
        raise UsageError("--web: this system has no Unix sockets, through which runs and the server talk")
    if not web and interactive:
        raise UsageError("--interactive needs --web: the buttons are on its page")
    if not web and port is not None:
        raise UsageError("--web-port needs --web")


@contextmanager
def shown(web: bool, port: int | None, interactive: bool, lesson: bool = False) -> Iterator[ServerProcess | None]:
    """The server, if requested; its address is printed on standard error. Raises UsageError."""
    if not web:
        yield None
        return
    from mrc_testbed.testbed.web.server_process import ServerProcess

    server = ServerProcess(port, interactive, lesson)
    try:
        say(f"live view: {server.address}", err=True)
        yield server
    finally:
        server.close()


def wait_for_the_room(server: ServerProcess | None, code: int, terminal: bool) -> None:
    """On a terminal, keeps the page until Enter or Ctrl-C, unless Ctrl-C has already ended the runs (exit status
    `code`)."""
    if server and code != ExitCode.INTERRUPTED and terminal and sys.stdin.isatty():
        say("the live view stays until Enter or Ctrl-C", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.readline()
