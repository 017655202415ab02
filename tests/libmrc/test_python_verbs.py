"""`mrc_testbed.verbs`: memory, queue pairs, completions, errors; nobody hangs, and no completion lies."""

from __future__ import annotations

import mmap
import os
import select
from array import array
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import monotonic

import pytest

from mrc_testbed import verbs
from mrc_testbed.hosts.verbs.messages import RECORD_BYTES, RecordKind
from tests.libmrc.memory_daemon import FLUSHED, RETRIES_EXCEEDED, MemoryDaemon

ROOT = Path(__file__).parents[2]
SOON_S = 20.0
"""Longer than anything here takes; reached only by what hangs."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[MemoryDaemon]:
    with MemoryDaemon(tmp_path) as made:
        yield made


class Pair:
    """Two programs, one a host, connected by a QP, each with a region of 4096 bytes."""

    def __init__(self, daemon: MemoryDaemon, most_writes: int = 16) -> None:
        self.devices = [verbs.open(path) for path in daemon.paths]
        self.regions = [device.register(bytearray(4096)) for device in self.devices]
        self.qps = [device.queue_pair(most_writes, 16) for device in self.devices]
        self.places = [qp.address(region) for qp, region in zip(self.qps, self.regions, strict=True)]
        for qp, remote in zip(self.qps, reversed(self.places), strict=True):
            qp.connect(remote)


@pytest.fixture
def pair(daemon: MemoryDaemon) -> Iterator[Pair]:
    made = Pair(daemon)
    yield made
    for device in made.devices:
        device.close()


def post_receives(pair: Pair, count: int) -> None:
    """At the far end. Its answer to another request means that its daemon knows of them."""
    pair.qps[1].post_receive(count)
    pair.devices[1].register(bytearray(1))


def test_a_write_that_is_complete_has_put_its_bytes(pair: Pair) -> None:
    pair.regions[0].view[:5] = b"hello"
    number = pair.qps[0].write(pair.regions[0], 0, 5, pair.places[1], 100)
    (done,) = pair.devices[0].poll(SOON_S)
    assert (done.kind, done.id, done.qp) == ("write", number, pair.qps[0])
    assert bytes(pair.regions[1].view[100:105]) == b"hello"


def test_an_immediate_tells_the_peer(pair: Pair) -> None:
    post_receives(pair, 2)
    for immediate, length in ((7, 10), (0xFFFFFFFF, 0)):
        pair.qps[0].write(pair.regions[0], 0, length, pair.places[1], immediate=immediate)
    came = [pair.qps[1].wait_receive(SOON_S) for _ in range(2)]
    assert [(each.kind, each.immediate, each.byte_len) for each in came] == [
        ("receive", 7, 10),
        ("receive", 0xFFFFFFFF, 0),
    ]


def test_completions_are_in_order_and_only_of_signaled_writes(pair: Pair) -> None:
    post_receives(pair, 1)
    first = pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1])
    pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1], signaled=False)
    last = pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1], immediate=1)
    pair.qps[1].wait_receive(SOON_S)
    seen: list[int] = []
    while len(seen) < 2:
        seen += [each.id for each in pair.devices[0].poll(SOON_S)]
    assert seen == [first, last]
    assert pair.devices[0].poll() == []


def test_a_write_waits_for_room(daemon: MemoryDaemon, pair: Pair) -> None:
    daemon.held = True
    for _ in range(16):
        pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1])
    late = Thread(target=pair.qps[0].write, args=(pair.regions[0], 0, 1, pair.places[1]))
    late.start()
    late.join(0.1)
    assert late.is_alive()
    daemon.release()
    late.join(SOON_S)
    assert not late.is_alive()
    pair.qps[0].wait_writes(SOON_S)


def test_what_does_not_complete_times_out(daemon: MemoryDaemon, pair: Pair) -> None:
    daemon.held = True
    pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1])
    assert pair.devices[0].poll(0.05) == []
    with pytest.raises(verbs.TimedOut, match=r"waited 0\.05 s for its writes"):
        pair.qps[0].wait_writes(0.05)
    with pytest.raises(verbs.TimedOut, match=r"waited 0\.05 s for a write with immediate"):
        pair.qps[0].wait_receive(0.05)


def test_after_an_error_all_that_was_outstanding_comes_back(daemon: MemoryDaemon, pair: Pair) -> None:
    daemon.held = True
    pair.qps[0].post_receive()
    numbers = [
        pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1], signaled=signaled) for signaled in (True, False)
    ]
    daemon.fail(pair.qps[0].qpn)
    found: list[verbs.Completion] = []
    while len(found) < 3:
        found += pair.devices[0].poll(SOON_S)
    assert [(each.kind, each.work, each.id, each.status) for each in found] == [
        ("error", "write", numbers[0], RETRIES_EXCEEDED),
        ("error", "write", numbers[1], FLUSHED),
        ("error", "receive", 0, FLUSHED),
    ]
    assert found[0].text == f"QP {pair.qps[0].qpn}: no acknowledgement"
    for call in (pair.qps[0].wait_writes, pair.qps[0].wait_receive, pair.qps[0].post_receive):
        with pytest.raises(verbs.QueuePairError, match="no acknowledgement"):
            call()
    with pytest.raises(verbs.QueuePairError):
        pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1])


def test_an_error_ends_a_wait(daemon: MemoryDaemon, pair: Pair) -> None:
    daemon.fail(pair.qps[0].qpn, text="all ports are down")
    with pytest.raises(verbs.QueuePairError, match="all ports are down") as raised:
        pair.qps[0].wait_receive(SOON_S)
    assert raised.value.status == RETRIES_EXCEEDED


def test_an_immediate_without_a_receive_fails_both_ends(pair: Pair) -> None:
    pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1], immediate=1)
    with pytest.raises(verbs.QueuePairError):
        pair.qps[0].wait_writes(SOON_S)
    with pytest.raises(verbs.QueuePairError):
        pair.qps[1].wait_receive(SOON_S)


def test_a_region_that_is_closed_takes_no_more(pair: Pair) -> None:
    pair.regions[1].close()
    pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1])
    with pytest.raises(verbs.QueuePairError, match="remote access"):
        pair.qps[0].wait_writes(SOON_S)
    with pytest.raises(ValueError, match="the region is closed"):
        pair.qps[1].write(pair.regions[1], 0, 1, pair.places[0])


@pytest.mark.parametrize(
    ("offset", "length", "remote_offset", "text"),
    [
        (4090, 10, 0, "bytes 4090 to 4100 do not lie in a region of 4096"),
        (-1, 1, 0, "do not lie in a region"),
        (0, 10, 4090, "bytes 4090 to 4100 do not lie in the peer's region of 4096"),
        (0, 1, -1, "do not lie in the peer's region"),
    ],
)
def test_bytes_outside_a_region_are_refused_here(
    pair: Pair, offset: int, length: int, remote_offset: int, text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        pair.qps[0].write(pair.regions[0], offset, length, pair.places[1], remote_offset)


def test_any_writable_buffer_can_be_registered(pair: Pair) -> None:
    for buffer in (bytearray(8), mmap.mmap(-1, 8), array("d", [0.0])):
        region = pair.devices[1].register(buffer)
        pair.regions[0].view[:8] = b"12345678"
        pair.qps[0].write(pair.regions[0], 0, 8, pair.qps[1].address(region))
        pair.qps[0].wait_writes(SOON_S)
        assert bytes(memoryview(buffer).cast("B")) == b"12345678"


def test_an_array_of_numpy_can_be_registered(pair: Pair) -> None:
    numpy = pytest.importorskip("numpy")
    matrix = numpy.zeros((2, 2))
    region = pair.devices[1].register(matrix)
    pair.regions[0].view[:8] = numpy.float64(1.5).tobytes()
    pair.qps[0].write(pair.regions[0], 0, 8, pair.qps[1].address(region), 24)
    pair.qps[0].wait_writes(SOON_S)
    assert matrix.tolist() == [[0, 0], [0, 1.5]]
    with pytest.raises(ValueError, match="in pieces"):
        pair.devices[1].register(matrix[:, 0])


@pytest.mark.parametrize(
    ("buffer", "error", "text"),
    [
        (b"fixed", ValueError, "read-only"),
        (bytearray(), ValueError, "empty"),
        (memoryview(bytearray(8))[::2], ValueError, "in pieces"),
        (7, TypeError, "bytes-like"),
    ],
)
def test_other_buffers_are_refused(pair: Pair, buffer: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        pair.devices[0].register(buffer)


def test_a_registered_bytearray_keeps_its_size(pair: Pair) -> None:
    buffer = bytearray(8)
    pair.devices[0].register(buffer)
    with pytest.raises(BufferError):
        buffer.extend(b"more")


def test_receives_are_limited(pair: Pair) -> None:
    pair.qps[0].post_receive(16)
    with pytest.raises(ValueError, match="16 receives are posted, and at most 16"):
        pair.qps[0].post_receive()
    with pytest.raises(ValueError, match="at least 1"):
        pair.qps[0].post_receive(0)


def test_what_the_daemon_refuses_is_raised_in_its_words(pair: Pair) -> None:
    with pytest.raises(verbs.Refused, match="the daemon says no") as raised:
        pair.devices[0].queue_pair(most_writes=5000)
    assert raised.value.errno == 22
    with pytest.raises(verbs.Refused):
        pair.devices[0].queue_pair().connect(verbs.Address(1, 1, bytes(16)))


def test_a_closed_qp_hears_nothing_more(daemon: MemoryDaemon, pair: Pair) -> None:
    daemon.held = True
    pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1])
    pair.qps[0].close()
    pair.qps[0].close()
    assert pair.devices[0].poll(0.05) == []
    with pytest.raises(ValueError, match="is closed"):
        pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1])
    destroyed = [kind for _, kind, _ in daemon.seen if kind is RecordKind.DESTROY_QP]
    assert len(destroyed) == 1


def test_addresses_travel_as_bytes_and_as_json(pair: Pair) -> None:
    place = pair.places[0]
    assert verbs.Address.from_bytes(place.to_bytes()) == place
    assert verbs.Address.from_json(place.to_json()) == place
    assert pair.qps[0].address().length == 0
    for text in ("{}", '{"qpn": 1}', "[]", "no"):
        with pytest.raises(ValueError):  # noqa: PT011 - of json, too
            verbs.Address.from_json(text)
    with pytest.raises(ValueError, match="44 bytes"):
        verbs.Address.from_bytes(b"short")


def test_the_device_says_what_it_is(daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRC_TESTBED_SOCKET", daemon.paths[1])
    with verbs.open() as device:
        assert (device.name, device.host, device.host_name, device.planes) == ("mlx5_0", 1, "h1", 4)
        assert (device.payload_bytes, device.rtt, device.gid[-4:]) == (4096, 0.01, bytes([10, 64, 0, 2]))
    with pytest.raises(verbs.DeviceLost, match="the device is closed"):
        device.queue_pair()


def test_without_a_daemon_there_is_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MRC_TESTBED_SOCKET", raising=False)
    with pytest.raises(verbs.NoDevice, match="MRC_TESTBED_SOCKET is not set"):
        verbs.open()
    for path in (str(tmp_path / "none"), "@mrc-testbed-test-none"):
        with pytest.raises(verbs.NoDevice, match="no daemon at"):
            verbs.open(path)


def test_the_end_of_the_daemon_is_told_to_all(daemon: MemoryDaemon, pair: Pair) -> None:
    daemon.held = True
    pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1])
    errors: list[Exception] = []

    def wait() -> None:
        try:
            pair.qps[0].wait_receive()
        except verbs.DeviceLost as error:
            errors.append(error)

    waiting = [Thread(target=wait) for _ in range(4)]
    for thread in waiting:
        thread.start()
    daemon.hang_up(0)
    for thread in waiting:
        thread.join(SOON_S)
    assert len(errors) == 4
    (back,) = pair.devices[0].poll(SOON_S)
    assert (back.kind, back.status) == ("error", FLUSHED)
    for call in (pair.devices[0].poll, pair.devices[0].queue_pair, pair.qps[0].wait_writes, pair.qps[0].post_receive):
        with pytest.raises(verbs.DeviceLost, match="has gone"):
            call()


@pytest.mark.parametrize(
    "garbage",
    [b"x", b"\xff" * RECORD_BYTES, (68).to_bytes(4, "little")],
    ids=["a byte", "no kind", "too short"],
)
def test_garbage_from_the_daemon_ends_the_device(daemon: MemoryDaemon, pair: Pair, garbage: bytes) -> None:
    daemon.say(0, garbage)
    with pytest.raises(verbs.DeviceLost, match="no record"):
        pair.qps[0].wait_receive(SOON_S)


def test_many_threads_wait_and_each_gets_its_own(daemon: MemoryDaemon) -> None:
    with verbs.open(daemon.paths[0]) as near, verbs.open(daemon.paths[1]) as far:
        regions = [device.register(bytearray(4096)) for device in (near, far)]
        right: list[int] = []

        def work(index: int) -> None:
            ours, theirs = near.queue_pair(), far.queue_pair()
            theirs.post_receive(50)
            theirs.connect(ours.address(regions[0]))
            ours.connect(theirs.address(regions[1]))
            for turn in range(50):
                ours.write(regions[0], index, 1, theirs.address(regions[1]), index, immediate=100 * index + turn)
                if theirs.wait_receive(SOON_S).immediate == 100 * index + turn:
                    right.append(index)
                ours.wait_writes(SOON_S)

        threads = [Thread(target=work, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * SOON_S)
        assert sorted(right) == [index for index in range(8) for _ in range(50)]


def test_a_device_works_with_select(pair: Pair) -> None:
    pair.devices[1].poll()
    assert not select.select([pair.devices[1]], [], [], 0)[0]
    post_receives(pair, 1)
    pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1], immediate=3)
    assert select.select([pair.devices[1]], [], [], SOON_S)[0]
    (came,) = pair.devices[1].poll()
    assert came.immediate == 3


def test_events_are_kept_for_the_program(daemon: MemoryDaemon, pair: Pair) -> None:
    from mrc_testbed.hosts.verbs.messages import FORMS

    daemon.say(0, FORMS[RecordKind.ASYNC].pack(event=10, element=2))
    pair.devices[0].poll(0.2)
    assert pair.devices[0].events() == [verbs.Event(10, 2)]
    assert pair.devices[0].events() == []


def test_a_fork_has_to_open_the_device_itself(daemon: MemoryDaemon, pair: Pair) -> None:
    child = os.fork()
    if not child:
        try:
            with pytest.raises(verbs.DeviceLost, match="belongs to its parent"):
                pair.devices[0].queue_pair()
            with verbs.open(daemon.paths[0]) as own:
                own.queue_pair()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    pair.qps[0].write(pair.regions[0], 0, 1, pair.places[1])
    pair.qps[0].wait_writes(SOON_S)


def test_waiting_takes_no_processor(pair: Pair) -> None:
    before = os.times()
    began = monotonic()
    pair.devices[0].poll(0.5)
    after = os.times()
    assert monotonic() - began >= 0.45
    assert after.user + after.system - before.user - before.system < 0.2
