"""Python's verbs over the daemons' own code and the MRC core: packets are lost, paths are dead, peers leave."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrc_testbed import verbs
from tests.libmrc.jobs import EXAMPLE, outcomes, ranks
from tests.libmrc.pair import Pair

BYTES = 1 << 16
SOON_S = 20.0
"""Longer than anything here takes; reached only by what hangs."""


def connected(hosts: Any, writes: int = 64) -> tuple[list[verbs.Device], list[verbs.Region], list[verbs.QueuePair]]:
    """A device, a region and a QP at each host; the QPs are each other's peers, with receives posted."""
    devices = [verbs.open(host.path) for host in hosts]
    regions = [device.register(bytearray(BYTES)) for device in devices]
    qps = [device.queue_pair(writes, writes) for device in devices]
    for qp in qps:
        qp.post_receive(writes)
    for near, far, region in ((0, 1, regions[1]), (1, 0, regions[0])):
        qps[near].connect(qps[far].address(region))
    return devices, regions, qps


@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(3))
def test_a_completion_without_error_means_that_the_bytes_are_there(tmp_path: Path, loss: float, seed: int) -> None:
    """Each write has bytes of its own in a place of its own. What is complete is compared at once."""
    chance = random.Random(seed)
    with Pair(tmp_path, loss=loss, seed=seed) as pair:
        devices, regions, qps = connected(pair.hosts)
        remote, at = qps[1].address(regions[1]), 0
        open_writes: dict[int, slice] = {}
        immediates: list[int] = []
        while at < BYTES or open_writes:
            while at < BYTES and len(open_writes) < 40:
                length = min(chance.choice([1, 100, 4096, 9000]), BYTES - at)
                regions[0].view[at : at + length] = chance.randbytes(length)
                immediate = at if chance.random() < 0.3 and len(immediates) < 60 else None
                number = qps[0].write(regions[0], at, length, remote, at, immediate)
                immediates += [] if immediate is None else [immediate]
                open_writes[number] = slice(at, at + length)
                at += length
            for done in devices[0].poll(SOON_S):
                assert done.kind == "write", done.text
                place = open_writes.pop(done.id)
                assert bytes(regions[1].view[place]) == bytes(regions[0].view[place])
        assert [qps[1].wait_receive(SOON_S).immediate for _ in immediates] == immediates


def test_a_receive_means_that_all_writes_before_it_are_there(tmp_path: Path) -> None:
    with Pair(tmp_path, loss=0.05) as pair:
        _, regions, qps = connected(pair.hosts)
        remote = qps[1].address(regions[1])
        for turn in range(1, 20):
            regions[0].view[:30_000] = bytes([turn]) * 30_000
            qps[0].write(regions[0], 0, 29_000, remote)
            qps[0].write(regions[0], 29_000, 1000, remote, 29_000, immediate=turn)
            assert qps[1].wait_receive(SOON_S).immediate == turn
            assert bytes(regions[1].view[:30_000]) == bytes([turn]) * 30_000
            qps[0].wait_writes(SOON_S)


def test_a_network_that_is_silent_is_an_error(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        _, regions, qps = connected(pair.hosts)
        remote = qps[1].address(regions[1])
        qps[0].write(regions[0], 0, 1, remote)
        qps[0].wait_writes(SOON_S)
        pair.silent = True
        qps[0].write(regions[0], 0, 1, remote)
        with pytest.raises(verbs.QueuePairError) as raised:
            qps[0].wait_writes(3 * SOON_S)
        assert raised.value.status == 12


def test_a_key_that_is_wrong_is_an_error_at_both_ends(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        _, regions, qps = connected(pair.hosts)
        remote = qps[1].address(regions[1])
        regions[1].close()
        qps[0].write(regions[0], 0, 1, remote)
        with pytest.raises(verbs.QueuePairError) as raised:
            qps[0].wait_writes(SOON_S)
        assert raised.value.status == 10
        with pytest.raises(verbs.QueuePairError):
            qps[1].wait_receive(SOON_S)


def test_a_host_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair, verbs.open(pair.hosts[0].path) as device, pytest.raises(verbs.Refused):
        device.queue_pair().connect(verbs.Address(5, 5, bytes(16)))


def test_the_example_goes_on_while_paths_are_dead(tmp_path: Path) -> None:
    with Pair(tmp_path, loss=0.01) as pair:
        pair.dead = {(0, 0), (1, 1)}
        places: Any = SimpleNamespace(paths=[host.path for host in pair.hosts])
        found = outcomes(ranks(places, [sys.executable, str(EXAMPLE)], ROUNDS="3", WEIGHTS="20000"))
    for status, out in found:
        assert (status, out.splitlines()) == (0, [f"step {step} done" for step in range(3)])
