"""The transports that a scenario can name: ours, and those of its plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from mrc_testbed.testbed.transports.base import Transport
from mrc_testbed.testbed.transports.mptcp import MPTCP
from mrc_testbed.testbed.transports.mrc import MRC
from mrc_testbed.testbed.transports.mrc_hashed import MRC_HASHED
from mrc_testbed.testbed.transports.roce import ROCE
from mrc_testbed.testbed.transports.tcp import TCP
from mrc_testbed.topos.shape import PAYLOAD_BYTES

TRANSPORTS: Mapping[str, Transport] = {one.word: one for one in (MRC, ROCE, TCP, MPTCP, MRC_HASHED)}
"""Ours, by their words. The first is what a scenario has that names none."""
USUAL = MRC
_NONE: Mapping[str, Transport] = MappingProxyType({})
_offered: ContextVar[Mapping[str, Transport]] = ContextVar("transports of plugins", default=_NONE)


def known() -> Mapping[str, Transport]:
    """All that can be named here, by their words."""
    return {**TRANSPORTS, **_offered.get()}


def named(word: str) -> Transport:
    """The transport of this word. Raises KeyError."""
    return known()[word]


@contextmanager
def offering(more: Mapping[str, Transport]) -> Iterator[None]:
    """Within the block those of plugins can be named, too."""
    token = _offered.set(more)
    try:
        yield
    finally:
        _offered.reset(token)


def usual_packet(transport: Transport) -> tuple[int, int]:
    """Data and headers of a full data packet on a veth with its usual settings, in bytes."""
    return transport.full_packet(PAYLOAD_BYTES, transport.settings())
