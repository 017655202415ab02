"""Where metrics are served: `[HOST:]PORT` of `--metrics`."""

from __future__ import annotations

import errno
import socket
from contextlib import closing
from dataclasses import dataclass

from mrc_testbed.testbed.errors import UsageError

LOOPBACK = "127.0.0.1"
USUAL_LINGER_S = 130.0
"""Two scrapes at the interval that Prometheus has where nobody wrote one, a minute."""
_FIX = "such as --metrics 9460, or --metrics 0.0.0.0:9460 for other machines"


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """`truth`: what only the testbed knows is served, too. Port 0: any that is free. `linger_s`: how long the verdict
    waits for scrapers, None: `USUAL_LINGER_S`, where one has come before."""

    host: str
    port: int
    truth: bool = False
    linger_s: float | None = None


def read_metrics_address(text: str, truth: bool, linger_s: float | None = None) -> MetricsAddress:
    """Raises UsageError."""
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"--metrics {text}: {port!r} is no port from 0 to 65535; {_FIX}")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise UsageError(f"--metrics {text}: an IPv6 address needs brackets, such as [::1]:9460")
    return MetricsAddress(host.strip("[]") or LOOPBACK, int(port), truth, linger_s)


def listen_for_metrics(address: MetricsAddress) -> closing[socket.socket]:
    """A listening socket there. Raises UsageError if it cannot be opened."""
    text = f"--metrics {address.host}:{address.port}"
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"{text}: no such host ({error.strerror}); {_FIX}") from None
    family, _, _, _, where = found[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen()
    except OSError as error:
        listening.close()
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened: {error.strerror}"
        raise UsageError(f"{text}: the port {why}; choose another one") from None
    return closing(listening)
