"""The HTTP server: GET from this machine by name, POST only with the token.

The token is in the address that the command prints, behind its `#`, so that it is in no request but those that
need it, and another user of this machine cannot read it from the page. A page of another site can make a browser send
requests here. It knows no token, cannot send JSON without a CORS preflight (never granted), and requests by another
name for this machine (DNS rebinding) are refused by the Host header.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mrc_testbed.testbed.terminal import say
from mrc_testbed.testbed.web.rpc import NoAnswer, RpcClient
from mrc_testbed.testbed.web.sse_state import SseState
from mrc_testbed.testbed.web.visitors import Visitors, users_of_this_machine

_REQUEST_S = 10.0
"""Time limit for a whole request to arrive."""
_WRITE_S = 10.0
"""Time limit for a browser to accept data."""
_QUIET_S = 5.0
"""After this time without events a comment is sent, to detect closed connections."""
_MOST_BODY_BYTES = {"/do": 4096, "/lesson": 1 << 18}
"""By what is asked for: a fault, or answers of a lesson, texts among them."""
_MOST_DIGITS = 9
"""Of a length, and of the number of a run."""
NO_TOKEN = "the token is missing or wrong; open the address that the command printed"
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Only a header can say this: no other page may show this one in a frame, under its own buttons.
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Site:
    """What is served. `name`: of this server, by which a page detects a new one. `reports`: open descriptors by run
    number."""

    page: bytes
    token: str
    name: str
    state: SseState
    rpc: RpcClient
    reports: dict[int, int] = field(default_factory=dict)


class Server(ThreadingHTTPServer):
    """Serves on an existing listening socket, with a limit on browsers, of each user and of all."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, listening: socket.socket, site: Site) -> None:
        super().__init__(listening.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.site = site
        port = listening.getsockname()[1]
        self.hosts = {f"{name}{end}" for name in ("127.0.0.1", "localhost") for end in _port_ends(port)}
        self._visitors = Visitors(users_of_this_machine(port))

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread per connection, up to the limits."""
        if why := self._visitors.enter(client_address):
            request.send(_no_room(why))
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread could be started
            self._visitors.leave(client_address)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """One request per connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._visitors.leave(client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Browsers disconnect at any time; other exceptions are bugs."""
        if not isinstance(sys.exception(), OSError):
            say(traceback.format_exc(), err=True, end="")


def _no_room(why: str) -> bytes:
    """An answer without a thread; what a fresh connection takes at once."""
    body = json.dumps({"ok": False, "text": why})
    head = f"HTTP/1.0 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def _port_ends(port: int) -> tuple[str, ...]:
    return (f":{port}", "") if port == 80 else (f":{port}",)


class _Arriving(io.RawIOBase):
    """Socket input with a deadline for the whole request, so that a slow client cannot hold a thread forever."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._deadline = time.monotonic() + _REQUEST_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the request took too long")
        self._source.settimeout(left_s)
        try:
            return self._source.recv_into(buffer)
        finally:
            self._source.settimeout(_WRITE_S)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "mrc-testbed"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_Arriving(self.request))

    def log_message(self, format: str, *args: Any) -> None:
        """Access logs are not read."""

    def do_GET(self) -> None:
        """The page, its stream of events, or the report of a run."""
        if not self._from_here():
            return
        site = self.server.site
        if self.path == "/":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", site.page)
        elif self.path == "/events":
            self._stream()
        elif (file := self._report()) is not None:
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", _content(file))
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "not found")

    def do_POST(self) -> None:
        """A fault request, or answers of a lesson: those are taken between runs."""
        if not self._from_here() or not self._allowed():
            return
        request = self._body()
        if request is None:
            return
        state, lesson = self.server.site.state, self.path == "/lesson"
        if state.showing == lesson:
            self._refuse(HTTPStatus.OK, "the run goes on; wait for its verdict" if lesson else "no run in progress")
            return
        try:
            answer = self.server.site.rpc.ask(request)
        except NoAnswer as error:
            self._refuse(HTTPStatus.GATEWAY_TIMEOUT, str(error))
            return
        self._json(HTTPStatus.OK, {"ok": answer["ok"], "text": answer["text"]})

    def _from_here(self) -> bool:
        here = self.headers.get("Host", "").lower() in self.server.hosts
        if not here:
            self._refuse(HTTPStatus.FORBIDDEN, "the Host header must be 127.0.0.1 or localhost")
        return here

    def _allowed(self) -> bool:
        origin = self.headers.get("Origin")
        given = self.headers.get("X-Token", "").encode("utf-8", "replace")
        if self.path not in _MOST_BODY_BYTES:
            self._refuse(HTTPStatus.NOT_FOUND, "not found")
        elif origin is not None and origin.lower().removeprefix("http://") not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "the request came from another origin")
        elif not secrets.compare_digest(given, self.server.site.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, NO_TOKEN)
        elif self.headers.get_content_type() != "application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json")
        else:
            return True
        return False

    def _body(self) -> dict[str, Any] | None:
        length, most = self.headers.get("Content-Length", ""), _MOST_BODY_BYTES[self.path]
        if not length.isascii() or not length.isdigit():
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing")
        elif len(length) > _MOST_DIGITS or int(length) > most:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the request is longer than {most} bytes")
        else:
            try:
                request = json.loads(self.rfile.read(int(length)))
            except (ValueError, RecursionError):
                request = None
            # Flat, so that parsing it in the run cannot overflow the stack.
            if isinstance(request, dict) and not any(isinstance(value, dict | list) for value in request.values()):
                return request
            self._refuse(HTTPStatus.BAD_REQUEST, "the request must be a flat JSON object")
        return None

    def _report(self) -> int | None:
        run = self.path.removeprefix("/report/")
        return (
            self.server.site.reports.get(int(run))
            if run.isascii() and run.isdigit() and len(run) <= _MOST_DIGITS
            else None
        )

    def _stream(self) -> None:
        self._head(HTTPStatus.OK, {"Content-Type": "text/event-stream"})
        name = json.dumps(self.server.site.name)
        self.wfile.write(f"retry: 1000\nevent: server\ndata: {name}\n\n".encode())
        for events in self.server.site.state.read(_QUIET_S):
            lines = (b"event: " + kind.encode() + b"\ndata: " + body + b"\n\n" for kind, body in events)
            self.wfile.write(b"".join(lines) or b":\n\n")

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._json(status, {"ok": False, "text": why})

    def _json(self, status: HTTPStatus, content: Mapping[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(content).encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self._head(status, {"Content-Type": kind, "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _head(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, **headers}.items():
            self.send_header(name, value)
        self.end_headers()


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)
