"""`--web` around runs: starts a server before the first run, and keeps it after the last."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.commands.options import WATCH
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from mrc_testbed.testbed.web.server_process import ServerProcess

Web = Annotated[
    bool, typer.Option("--web", help="Serve a live view of the run to browsers on this machine.", rich_help_panel=WATCH)
]
WebPort = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        min=1,
        max=65535,
        help="With --web: serve on this port.",
        show_default=False,
        rich_help_panel=WATCH,
    ),
]
Metrics = Annotated[
    str,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Serve metrics of the run at /metrics, for Prometheus; on this machine alone without HOST.",
        show_default=False,
        rich_help_panel=WATCH,
    ),
]
MetricsTruth = Annotated[
    bool,
    typer.Option(
        "--metrics-truth", help="With --metrics: also losses that only the testbed knows.", rich_help_panel=WATCH
    ),
]
MetricsLinger = Annotated[
    float | None,
    typer.Option(
        "--metrics-linger",
        metavar="SECONDS",
        min=0,
        help="With --metrics: how long the verdict waits until it was scraped twice. Default: 130, where somebody has "
        "scraped before.",
        show_default=False,
        rich_help_panel=WATCH,
    ),
]
Interactive = Annotated[
    bool, typer.Option("--interactive", help="With --web: inject and heal faults from the page.", rich_help_panel=WATCH)
]


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How others may watch the runs of a command, as the options say."""

    web: bool = False
    port: int | None = None
    interactive: bool = False
    metrics: str = ""
    truth: bool = False
    linger_s: float | None = None

    @property
    def watched(self) -> bool:
        """There is a server."""
        return self.web or bool(self.metrics)

    def require(self) -> None:
        """Raises UsageError for options that need others, and for servers where the system cannot."""
        asked = "--web" if self.web else "--metrics"
        if self.watched and not hasattr(socket, "AF_UNIX"):
            raise UsageError(f"{asked}: this system has no Unix sockets, through which runs and the server talk")
        if not self.web and self.interactive:
            raise UsageError("--interactive needs --web: the buttons are on its page")
        if not self.web and self.port is not None:
            raise UsageError("--web-port needs --web")
        if self.truth and not self.metrics:
            raise UsageError("--metrics-truth needs --metrics")
        if self.linger_s is not None and not self.metrics:
            raise UsageError("--metrics-linger needs --metrics")


@contextmanager
def shown(options: WatchOptions, lesson: bool = False) -> Iterator[ServerProcess | None]:
    """The server, if requested; its addresses are printed on standard error. Raises UsageError."""
    if not options.watched:
        yield None
        return
    from mrc_testbed.testbed.web.metrics_address import read_metrics_address
    from mrc_testbed.testbed.web.server_process import ServerProcess

    metrics = read_metrics_address(options.metrics, options.truth, options.linger_s) if options.metrics else None
    server = ServerProcess(options.port, options.interactive, lesson, options.web, metrics)
    try:
        if server.address:
            say(f"live view: {server.address}", err=True)
        if server.metrics_url:
            say(f"metrics: {server.metrics_url}", err=True)
        yield server
    finally:
        server.close()


def wait_for_the_room(server: ServerProcess | None, code: int, terminal: bool) -> None:
    """Keeps metrics until scrapers have the verdict, and on a terminal the page until Enter or Ctrl-C; unless Ctrl-C
    has already ended the runs (exit status `code`)."""
    if not server or code == ExitCode.INTERRUPTED:
        return
    with contextlib.suppress(KeyboardInterrupt):
        server.linger(lambda text: say(text, err=True))
    if server.address and terminal and sys.stdin.isatty():
        say("the live view stays until Enter or Ctrl-C", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.readline()
