"""Sockets with packets in batches keep the books of sockets with a call a packet, on this kernel."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from random import Random

import pytest

from mrc_testbed.hosts import batched, batches, extensions
from mrc_testbed.hosts.batched import SEND_BATCH, BatchReceiver, BatchSender, Outgoing
from mrc_testbed.hosts.delay import DelayLine
from mrc_testbed.hosts.udp import MOST_STRANGERS, PORT, RxSocket, Source, TxSocket
from mrc_testbed.testbed.fabric import extensions as maker

HERE = "fd00::1"
HOSTS: dict[Source, int] = {("fd00::2", 0xC001): 1, ("fd00::3", 0xC002): 2}
STRANGER = ("fd00::4", 0xC003)
SENDERS = [("fd00::2", 0xC001), ("fd00::3", 0xC002), ("fd00::2", 0xC009), STRANGER]
DEAD = ["fd00::b", "fd00::f", "fd01::1"]
"""A blackhole, a prohibited route and none."""
DELAY_NS = 2_000_000
CLASS = 8


@pytest.fixture(autouse=True)
def addresses(nothing_left: None) -> None:
    """Those of the loopback of this test's own network."""
    maker.made(batches.EXTENSION)
    extensions.found.cache_clear()
    lines = [f"address add fd00::{number}/128 dev lo nodad" for number in range(1, 5)]
    lines += ["route add blackhole fd00::b", "route add prohibit fd00::f"]
    subprocess.run(["ip", "-6", "-batch", "-"], input="\n".join(lines), text=True, check=True)
    for source, _ in SENDERS:
        _wait_for_route(source)


def _wait_for_route(source: str) -> None:
    """The kernel makes the routes of new addresses a moment later; until then it takes packets and drops them."""
    with (
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as taker,
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender,
    ):
        taker.bind((HERE, 0))
        taker.settimeout(0.05)
        sender.bind((source, 0))
        for _ in range(200):
            with suppress(OSError):
                sender.sendto(b"", taker.getsockname())
                taker.recv(1)
                return
    raise AssertionError(f"no packet from {source} arrives")


@dataclass
class Books:
    """All that a socket counts, and the packets as they came."""

    sent: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    strangers: tuple[int, int] = (0, 0)
    packets: list[tuple[bytes, int, int, int, int]] = field(default_factory=list)


def bursts(seed: int) -> Iterator[tuple[tuple[str, int], list[tuple[bytes, str, int, int]], int]]:
    """Who sends what, and how many packets are then taken in."""
    drawn = Random(seed)
    for _ in range(40):
        packets = [
            (
                drawn.randbytes(drawn.choice([0, 1, 64, 4178, 9000])),
                drawn.choice([*[HERE] * 6, *DEAD]),
                drawn.choice([0, drawn.getrandbits(20)]),
                drawn.choice([CLASS, CLASS, 0, 255]),
            )
            for _ in range(drawn.randint(1, SEND_BATCH))
        ]
        yield drawn.choice(SENDERS), packets, drawn.choice([0, 3, 200])


def sockets(together: bool, stamped: bool) -> tuple[RxSocket, dict[tuple[str, int], TxSocket]]:
    made = batched.receiver(HOSTS, DELAY_NS, stamped) if together else RxSocket(HOSTS, DELAY_NS, stamped)
    assert isinstance(made, BatchReceiver) == together
    return made, {source: TxSocket(*source, CLASS) for source in SENDERS}


def send(sender: TxSocket, packets: list[tuple[bytes, str, int, int]], together: bool) -> None:
    sends = batched.batch_sender(sender)
    assert isinstance(sends, BatchSender)
    outgoing: list[Outgoing] = []
    for (payload, address, label, traffic_class), room in zip(packets, sends.room, strict=False):
        room[: len(payload)] = payload
        outgoing.append((len(payload), (address, PORT, label, 0), traffic_class))
    if together:
        sends.send(outgoing)
        return
    for room, (size, where, traffic_class) in zip(sends.room, outgoing, strict=False):
        sender.send(room[:size], where, traffic_class)


def kept(seed: int, together: bool, delayed: bool) -> Books:
    """The books of one run of `bursts`; `delayed`: by way of the delay line, which keeps packets for a while."""
    books = Books()
    taker, senders = sockets(together, stamped=delayed)
    line = DelayLine(taker, DELAY_NS)

    def take(most: int) -> None:
        now_ns = time.monotonic_ns()
        if delayed:
            line.take_in(now_ns)
        for _ in range(most):
            packet = (line if delayed else taker).receive(now_ns)
            if packet is None:
                break
            assert now_ns - 10**10 < packet[5] <= now_ns
            books.packets.append((bytes(packet[0]), *packet[1:5]))

    with closing(taker._socket):
        for source, packets, then in bursts(seed):
            send(senders[source], packets, together)
            books.sent += len(packets)
            take(then)
        lost = {reason: count for sender in senders.values() for reason, count in sender.lost.items()}
        assert {*lost} == {"EINVAL", "EACCES", "ENETUNREACH"}
        books.lost = {reason: sum(sender.lost[reason] for sender in senders.values()) for reason in lost}
        until_s = time.monotonic() + 10
        arrived = books.sent - sum(books.lost.values())
        while len(books.packets) + taker.unknown_sources + taker.unknown_ports < arrived:
            assert time.monotonic() < until_s, (books.sent, books.lost, len(books.packets))
            take(200)
        assert not taker.buffer_drops()
        books.strangers = taker.unknown_sources, taker.unknown_ports
    if delayed:
        books.packets.sort()  # times of arrival move by what a look at both clocks is wrong
    return books


@pytest.mark.parametrize("delayed", [False, True], ids=["at once", "delayed"])
@pytest.mark.parametrize("seed", range(3))
def test_both_keep_the_same_books(seed: int, delayed: bool) -> None:
    single, together = kept(seed, False, delayed), kept(seed, True, delayed)
    assert single.packets
    assert all(single.strangers)
    assert together == single
    wanted = [
        (payload, HOSTS[source], label, source[1], traffic_class)
        for source, packets, _ in bursts(seed)
        for payload, address, label, traffic_class in packets
        if address == HERE and source in HOSTS
    ]
    assert together.packets == (sorted(wanted) if delayed else wanted)


@pytest.mark.parametrize("together", [False, True], ids=["single", "batches"])
def test_a_flood_of_strangers_ends_a_look(together: bool) -> None:
    taker, senders = sockets(together, stamped=False)
    with closing(taker._socket):
        for _ in range(10):
            send(senders[STRANGER], [(b"flood", HERE, 0, CLASS)] * SEND_BATCH, together)
        send(senders[SENDERS[0]], [(b"peer", HERE, 0, CLASS)], together)
        looks = [(taker.receive(0), taker.unread, taker.unknown_sources) for _ in range(4)]
    assert [seen for _, *seen in looks] == [
        [True, MOST_STRANGERS],
        [True, 2 * MOST_STRANGERS],
        [True, 10 * SEND_BATCH],
        [False, 10 * SEND_BATCH],
    ]
    assert [packet[1] for packet, *_ in looks if packet is not None] == [1]


@pytest.mark.parametrize("together", [False, True], ids=["single", "batches"])
def test_a_full_send_buffer_loses_what_does_not_fit_and_the_rest_is_in_order(together: bool) -> None:
    taker, senders = sockets(together, stamped=False)
    sender = senders[SENDERS[0]]
    sender._socket.setsockopt(1, 7, 20_000)  # SOL_SOCKET, SO_SNDBUF
    # Packets wait at the port for longer than the test takes, and stay in the account of their socket.
    for text in (
        "qdisc add dev lo root handle 1: htb default 1",
        "class add dev lo parent 1: classid 1:1 htb rate 8bit",
    ):
        subprocess.run(["tc", *text.split()], check=True)
    payloads = [bytes([number]) * 4000 for number in range(SEND_BATCH)]
    with closing(taker._socket):
        send(sender, [(payload, HERE, 0, CLASS) for payload in payloads], together)
        assert {*sender.lost} == {"EAGAIN"}
        shown = subprocess.run(["tc", "-s", "qdisc", "show", "dev", "lo"], capture_output=True, text=True, check=True)
        came = []
        while (packet := taker.receive(0)) is not None:
            came.append(bytes(packet[0]))
    waiting = int(shown.stdout.split("backlog")[1].split()[1].removesuffix("p"))
    assert len(came) + waiting + sender.lost["EAGAIN"] == SEND_BATCH
    assert came == payloads[: len(came)]
    assert waiting > 1
