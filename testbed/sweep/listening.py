"""Where schedulers and workers of Dask listen: who reaches them has code run there, as root.

The address that a client dials says nothing of that: a scheduler on all addresses answers on loopback, too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

_ENCRYPTED = ("tls", "inproc")
"""Protocols of Dask that take no orders from strangers."""


def asks_scheduler() -> Callable[..., list[str]]:
    """For `Client.run_on_scheduler`. Such a function travels as its own code: a scheduler need not have ours."""
    return lambda dask_scheduler: [each.listen_address for each in dask_scheduler.listeners]


def asks_worker() -> Callable[..., list[str]]:
    """For `Client.run` on workers and nannies."""
    return lambda dask_worker: [each.listen_address for each in dask_worker.listeners]


def open_address(addresses: Iterable[str]) -> str:
    """The first at which other machines give orders without TLS; empty if there is none."""
    return next((each for each in addresses if not _is_closed(each)), "")


def _is_closed(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme in _ENCRYPTED or is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """A name may lead anywhere, but for this one."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
