"""What is summed over the subflows of an MPTCP connection, those that have ended among them."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from mrc_testbed.hosts.ktcp import kernel
from mrc_testbed.hosts.ktcp.subflows import Ends, Subflows

MS = 1_000_000
FIRST, SECOND = ("fd00::1", 4001, 4791), ("fd00:1::1", 4002, 4791)


def tcp_info(last_ack_ms: int, data_sent: int) -> bytes:
    """A `struct tcp_info` with these, and 0 for all else."""
    raw = bytes(kernel.INFO_BYTES)
    at = {kernel._U32 + 12: last_ack_ms, kernel._SEGS + 5: data_sent}
    fields = [at.get(number, value) for number, value in enumerate(kernel._INFO.unpack(raw))]
    return kernel._INFO.pack(*fields)


class Told(socket.socket):
    """A connection whose kernel says that nothing of the whole stream has gone yet."""

    def getsockopt(self, level: int, option: int, size: int = 0) -> bytes:  # type: ignore[override]
        return bytes(size)


class Stage(Subflows):
    """With these subflows at the moment."""

    there: dict[Ends, bytes]

    def ends(self) -> list[Ends]:
        return list(self.there)

    def _rows(self, option: int, size: int) -> Iterator[bytes]:
        return iter(self.there.values())


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Told() as told:
        yield Stage(told)


def test_the_numbers_are_where_the_kernel_has_them() -> None:
    info = kernel.parse_info(tcp_info(7, 30))
    assert (info.last_ack_ns, info.data_sent) == (7 * MS, 30)


def test_a_subflow_that_has_ended_counts_but_hears_no_more(stage: Stage) -> None:
    stage.there = {FIRST: tcp_info(1, 30), SECOND: tcp_info(5, 40)}
    info = stage.info()
    assert (info.last_ack_ns, info.data_sent) == (MS, 70)
    stage.there = {SECOND: tcp_info(900, 45)}
    info = stage.info()
    assert (info.last_ack_ns, info.data_sent) == (900 * MS, 75)
    stage.there = {}
    assert (stage.info().last_ack_ns, stage.info().data_sent) == (0, 75)
