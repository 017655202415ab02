"""`/metrics` over HTTP: the newest document of the run as text, made when somebody asks.

All who can reach the address may read it; there is nothing that a request can change. On a loopback address the Host
header must name this machine, so that no page of another site reads it (DNS rebinding).
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

from mrc_testbed.testbed.metrics.exposition import (
    OPENMETRICS_TYPE,
    PROMETHEUS_TYPE,
    open_metrics,
    preferred,
    prometheus_text,
)
from mrc_testbed.testbed.metrics.readings import readings

_REQUEST_S = 10.0
_MOST_AT_ONCE = 16
_ENOUGH = 2
"""Scrapes of a verdict: one more than a scraper that goes away in between needs."""
_START = b"mrc-testbed: metrics of the run are at /metrics\n"


class NewestSeries:
    """The newest document, and its text in each format, made once. Thread-safe."""

    def __init__(self, truth: bool) -> None:
        self._truth = truth
        self._lock = threading.Condition()
        self._scrapes, self._scrapes_of_end = 0, 0
        self.ends = 0
        """Runs that are over."""
        self._places: Mapping[str, Sequence[str]] = {}
        self._next: Mapping[str, Sequence[str]] = {}
        self._document: dict[str, Any] = {}
        self._texts: dict[bool, bytes] = {}

    def begin(self, places: Mapping[str, Sequence[str]]) -> None:
        """Another run is next; until it tells something the last one stays."""
        with self._lock:
            self._next = places

    def put(self, document: Mapping[str, Any]) -> None:
        """The run's newest."""
        with self._lock:
            self._places, self._document, self._texts = self._next, dict(document), {}

    def end(self, finals: Mapping[str, Any]) -> None:
        """What it came to; the rest stays."""
        with self._lock:
            if self._document:
                self._document, self._texts = {**self._document, **finals}, {}
            self.ends += 1
            self._scrapes_of_end = 0

    def scraped(self, ends: int) -> None:
        """A scraper has read a text that was made after this number of ends; older ones lack the verdict."""
        with self._lock:
            self._scrapes += 1
            self._scrapes_of_end += ends == self.ends
            self._lock.notify_all()

    def wait_for_scrapers(self, seconds: float, always: bool) -> None:
        """Until the end was read often enough, at most so long; not at all where nobody read anything, unless
        `always`."""
        with self._lock:
            if always or self._scrapes:
                self._lock.wait_for(lambda: self._scrapes_of_end >= _ENOUGH, seconds)

    def text(self, is_open: bool) -> bytes:
        """As OpenMetrics, or in the older format; without a run there is no metric."""
        with self._lock:
            if is_open not in self._texts:
                found = readings(self._document, self._places, self._truth) if self._document else []
                self._texts[is_open] = (open_metrics(found) if is_open else prometheus_text(found)).encode()
            return self._texts[is_open]


class MetricsServer(ThreadingHTTPServer):
    """Serves on an existing listening socket."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, listening: socket.socket, newest: NewestSeries) -> None:
        address = listening.getsockname()
        self.address_family = listening.family
        super().__init__(address[:2], _MetricsHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.newest = newest
        self.is_local = ip_address(address[0]).is_loopback
        self._lock = threading.Lock()
        self._open: dict[socket.socket, None] = {}
        """The oldest first."""

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread a connection; beyond a limit the oldest one ends, so slow ones keep nobody out."""
        with self._lock:
            if len(self._open) >= _MOST_AT_ONCE:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread could be started
            self._leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """One request a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def _leave(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that goes away is no news."""


class _MetricsHandler(BaseHTTPRequestHandler):
    server: MetricsServer
    server_version = "mrc-testbed"
    sys_version = ""
    timeout = _REQUEST_S

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads access logs."""

    def do_GET(self) -> None:
        """The metrics, and where they are."""
        if self.server.is_local and not _names_this_machine(self.headers.get("Host", "")):
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"the Host header must name this machine, as 127.0.0.1\n")
        elif self.path.partition("?")[0] == "/metrics":
            is_open = preferred(self.headers.get("Accept", ""))
            kind = OPENMETRICS_TYPE if is_open else PROMETHEUS_TYPE
            ends = self.server.newest.ends
            self._send(HTTPStatus.OK, kind, self.server.newest.text(is_open))
            if self.command == "GET":
                self.server.newest.scraped(ends)
        elif self.path == "/":
            self._send(HTTPStatus.OK, "text/plain", _START)
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"not found; the metrics are at /metrics\n")

    do_HEAD = do_GET  # noqa: N815, the name that http.server looks for

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store")):
            self.send_header(name, value)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _names_this_machine(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    try:
        return name.lower() == "localhost" or ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
