"""QPs of programs: their regions and keys, their receives, what they say of a QP, and what is not there to be read or
written."""

import pytest

from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.memory import Domain
from tests.sim.programs import (
    ADDRESS,
    KEY,
    PAYLOAD,
    TRANSPORTS,
    Pair,
    Ram,
    Source,
    T,
    joined,
    network,
    packets_of,
)
from tests.sim.simnet import EvChanged, pattern

ALL = pytest.mark.parametrize("transport", TRANSPORTS)
SHORT, LONG = pattern(3 * PAYLOAD + 5), pattern(40 * PAYLOAD, 2)


def refused(pair, reason="remote access error", why="the peer's request was outside of the region"):
    """Both ends have failed, as they should."""
    pair.run_until_told()
    pair.net.run(within=20 * T, must=False)
    assert [end.failures() for end in pair.ends] == [[reason], [why]]


# --- regions ---


@ALL
def test_several_regions_in_one_domain(transport):
    pair = joined(transport)
    more = [Ram(9000, ADDRESS + 0x10_0000 * number) for number in (1, 2)]
    windows = pair.ends[1].domain.windows
    windows |= {KEY + 0x100: more[0].window(), KEY + 0x200: more[1].window(1000, 5000)}
    pair.write(SHORT, at=7)
    pair.ends[0].post(LONG[:9000], more[0].address, KEY + 0x100)
    pair.ends[0].post(LONG[:5000], more[1].address + 1000, KEY + 0x200)
    pair.run_until_told()
    assert pair.ends[0].completed() == [1, 2, 3]
    assert pair.ends[1].ram.bytes[7 : 7 + len(SHORT)] == SHORT
    assert more[0].bytes == LONG[:9000]
    assert more[1].bytes == bytes(1000) + LONG[:5000] + bytes(3000)


@ALL
@pytest.mark.parametrize(
    ("key", "at", "size"),
    [
        (KEY ^ 1, 0, 10),
        (KEY + 0x100, 0, 10),
        (0, 0, 10),
        (KEY, -1, 10),
        (KEY, 9999, 2),
        (KEY, 10_000, 1),
        (KEY, 9000, 1001),
        (KEY, 1 << 40, 5),
        (KEY, -ADDRESS, 5),
    ],
    ids=["other bits", "other index", "no key", "before", "past", "behind", "over the end", "far", "zero"],
)
def test_what_no_region_holds_is_not_written(transport, key, at, size):
    pair = joined(transport, size=10_000)
    pair.write(pattern(size), at=at, key=key)
    refused(pair)
    assert pair.ends[0].completed() == []
    assert not any(pair.ends[1].ram.times[:9000]), "it may be in part that a write is in the region"


@ALL
def test_all_of_a_region_can_be_written(transport):
    pair = joined(transport, size=10 * PAYLOAD + 1)
    pair.write(LONG[: 10 * PAYLOAD + 1])
    pair.write(b"x", at=10 * PAYLOAD)
    pair.run_until_told()
    assert pair.ends[0].completed() == [1, 2]
    assert pair.ends[1].ram.bytes == LONG[: 10 * PAYLOAD] + b"x"


@ALL
def test_a_key_opens_its_own_domain_only(transport):
    net = network(transport)
    one, other = Pair(net).join(), Pair(net)
    other.ends[1].domain.windows = {KEY + 0x100: other.ends[1].ram.window()}
    other.join()
    one.write(SHORT, key=KEY + 0x100)
    refused(one)
    assert not any(other.ends[1].ram.times)
    other.write(SHORT, key=KEY + 0x100)
    other.run_until_told()
    assert other.ends[0].completed() == [1], "the other QP goes on"


@ALL
def test_a_region_that_goes_in_the_middle_of_a_write_is_left_alone(transport):
    pair = joined(transport, port_rate_bps=2_000_000)
    ram = pair.ends[1].ram
    pair.write(LONG)
    pair.net.run(lambda: any(ram.times), within=20 * T)
    del pair.ends[1].domain.windows[KEY]
    placed = bytes(ram.bytes)
    assert 0 < placed.count(0) < len(placed)
    refused(pair)
    assert ram.bytes == placed


@ALL
@pytest.mark.parametrize("key", [KEY, 0, KEY ^ 1])
def test_a_write_of_nothing_needs_no_key(transport, key):
    """InfiniBand 1.4, C9-88: the R_Key of a write of length zero is not validated, even with an immediate."""
    pair = joined(transport)
    pair.write(b"", key=key, at=-ADDRESS)
    pair.write(b"", key=key, at=-ADDRESS, immediate=0xFFFF_FFFF)
    pair.write(SHORT, immediate=3)
    pair.run_until_told()
    assert pair.ends[0].completed() == [1, 2, 3]
    assert pair.ends[1].delivered() == [(0xFFFF_FFFF, 0), (3, len(SHORT))]


# --- receives ---


@ALL
def test_the_bytes_of_a_message_are_told_with_its_immediate(transport):
    pair = joined(transport)
    sizes = [1, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 9 * PAYLOAD, 0, 65_536 - ADDRESS % 2]
    for number, size in enumerate(sizes):
        pair.write(pattern(size), immediate=number)
    pair.run_until_told()
    assert pair.ends[1].delivered() == list(enumerate(sizes))


@ALL
@pytest.mark.parametrize("size", [0, 5, 3 * PAYLOAD])
def test_no_receive_is_left(transport, size):
    """All that found one is complete at the sender, though its ACK and the refusal go out together."""
    pair = joined(transport, receives=3)
    for number in range(6):
        pair.write(pattern(size), immediate=number)
    refused(pair, "remote operation error", "the peer's immediate found no posted receive")
    assert pair.ends[1].delivered() == [(number, size) for number in range(3)]
    assert pair.ends[0].completed() == [1, 2, 3]


@ALL
def test_no_receive_was_ever_posted(transport):
    pair = joined(transport, receives=0)
    pair.write(SHORT)
    pair.write(SHORT, at=1000, immediate=1)
    refused(pair, "remote operation error", "the peer's immediate found no posted receive")
    assert pair.ends[0].completed() == [1], "a write without an immediate needs none"
    assert pair.ends[1].delivered() == []


@ALL
def test_receives_are_posted_as_they_are_used(transport):
    pair = joined(transport, receives=1)
    for number in range(20):
        pair.write(SHORT, immediate=number)
        pair.run_until_told()
        pair.ends[1].endpoint.post_receives(pair.ends[1].qpn, 1)
    assert [immediate for immediate, _ in pair.ends[1].delivered()] == list(range(20))


# --- memory that is not there ---


@ALL
@pytest.mark.parametrize("there", [0, 1, PAYLOAD, 2 * PAYLOAD + 100, len(SHORT) - 1])
def test_a_source_that_ends_too_early_is_not_sent(transport, there):
    pair = joined(transport)
    sent = packets_of(pair.net, 0)
    source = Source(SHORT)
    source.there = there
    pair.write(source)
    pair.run_until_told()
    pair.net.run(within=20 * T, must=False)
    assert pair.ends[0].failures() == ["memory of a posted write is not there"]
    assert len(sent) == there // PAYLOAD, "whole packets, and none with less"
    whole = there // PAYLOAD * PAYLOAD
    assert pair.ends[1].ram.bytes[: len(SHORT)] == SHORT[:whole].ljust(len(SHORT), b"\0")
    assert not any(pair.ends[1].ram.times[whole:])


@ALL
def test_a_source_that_is_gone_is_not_sent_again(transport):
    pair = joined(transport)
    source, other = Source(LONG), joined(transport)
    pair.net.cut(src=0)
    sent = packets_of(pair.net, 0)
    pair.write(source)
    pair.net.run(lambda: sent, within=T)
    pair.net.run(within=T // 100, must=False)
    source.there = 0
    pair.net.heal(src=0)
    pair.net.run(pair.ends[0].failures, within=100 * T)
    assert pair.ends[0].failures() == ["memory of a posted write is not there"]
    pair.net.run(within=20 * T, must=False)
    assert not any(pair.ends[1].ram.times)
    other.write(SHORT)
    other.run_until_told()
    assert other.ends[0].completed() == [1]


@ALL
def test_memory_that_cannot_be_written_ends_the_qp(transport):
    pair = joined(transport)
    pair.write(SHORT)
    pair.run_until_told()
    pair.ends[1].ram.closed = True
    pair.write(SHORT, at=5000, immediate=1)
    refused(pair, "remote operation error", "memory that the peer wrote to is not there")
    assert pair.ends[0].completed() == [1]
    assert pair.ends[1].delivered() == []


# --- what a program says of its QP ---


def silence(transport, terms):
    """Virtual ns from the last answer of a peer, which is gone then, to the failure of a QP with these terms."""
    pair = joined(transport, terms=terms)
    pair.write(SHORT)
    pair.run_until_told()
    pair.net.cut(dst=1)
    begun = pair.net.now
    pair.write(SHORT)
    pair.net.run(pair.ends[0].failures, within=100_000 * T)
    assert pair.ends[0].failures() == ["retries exceeded"]
    return pair.net.now - begun


def test_tries_and_timeout_of_a_qp():
    once, four = silence("mrc", {"linear": 0, "exponential": 0}), silence("mrc", {"linear": 3, "exponential": 0})
    assert 3.5 < four / once < 4.5
    doubled = silence("mrc", {"linear": 0, "exponential": 3})
    assert 13 < doubled / once < 17, "1 + 2 + 4 + 8"
    longer = silence("mrc", {"linear": 0, "exponential": 0, "timeout": 20})
    assert 1.0 * 2**20 * 1024 <= longer < 1.3 * 2**20 * 1024
    shorter = silence("mrc", {"linear": 0, "exponential": 0, "timeout": 7})
    assert shorter == once, "one that is too short for this network counts as what the network needs"


@pytest.mark.parametrize("transport", ["go-back-n", "selective"])
def test_roce_keeps_its_own_tries_and_timeout(transport):
    assert silence(transport, {"linear": 0, "exponential": 0, "timeout": 24}) == silence(transport, {})


@ALL
@pytest.mark.parametrize(("mtu", "size"), [(4096, PAYLOAD), (256, PAYLOAD), (128, 128)])
def test_the_smaller_path_mtu_holds(transport, mtu, size):
    pair = joined(transport, terms={"mtu": mtu})
    sent = packets_of(pair.net, 0)
    pair.write(pattern(8 * PAYLOAD))
    pair.run_until_told()
    assert pair.ends[0].completed() == [1]
    assert len(sent) == 8 * PAYLOAD // size


@pytest.mark.parametrize(("mpr", "most"), [(1, 128), (2, 256), (200, 1024), (None, 1024)])
def test_psns_open_at_the_peer(mpr, most):
    pair = joined("mrc", terms={"mpr": mpr}, size=1 << 20, pace=False)
    pair.net.cut(src=1)
    sender = pair.net.hosts[0]._qps[pair.ends[0].qpn].sender
    pair.write(bytes(1 << 20))
    sender._cc.window = 1 << 30
    pair.net.run(within=T // 2, must=False)
    assert sender.flight.next == most


@pytest.mark.parametrize(("given", "most"), [(1, 1), (5, 5), (None, 32), (100, 100)])
def test_immediates_open_at_the_peer(given, most):
    pair = joined("mrc", terms={"max_wimm": given}, pace=False)
    pair.net.cut(src=1)
    for number in range(200):
        pair.write(b"x", immediate=number)
    sent = packets_of(pair.net, 0)
    pair.net.run(within=T // 2, must=False)
    assert len(sent) == most
    pair.net.heal(src=1)
    pair.run_until_told(within=5000 * T)
    assert [immediate for immediate, _ in pair.ends[1].delivered()] == list(range(200))


def test_a_peer_that_knows_no_trim_nacks_gets_none():
    pair = joined("mrc", terms={"trim_nack": False})
    receiver = pair.net.hosts[1]._qps[pair.ends[1].qpn].receiver
    assert not receiver._trim_nack
    assert joined("mrc").net.hosts[1]._qps[pair.ends[1].qpn].receiver._trim_nack


# --- states ---


@ALL
def test_one_end_may_only_receive(transport):
    pair = Pair(network(transport))
    pair.ends[1].receive_from(pair.ends[0])
    pair.ends[0].receive_from(pair.ends[1], receives=0)
    with pytest.raises(QpStateError):
        pair.write(SHORT)
    pair.ends[0].send()
    pair.write(LONG, immediate=8)
    pair.run_until_told()
    assert pair.ends[1].delivered() == [(8, len(LONG))]
    assert pair.ends[1].ram.bytes[: len(LONG)] == LONG
    with pytest.raises(QpStateError):
        pair.ends[1].post(b"x", ADDRESS)
    pair.ends[1].send()
    pair.ends[1].post(SHORT, ADDRESS)
    pair.net.run(pair.ends[1].completed, within=100 * T)
    assert pair.ends[0].ram.bytes[: len(SHORT)] == SHORT


@ALL
def test_steps_that_are_none_change_nothing(transport):
    pair = joined(transport)
    with pytest.raises(QpStateError):
        pair.ends[0].send()
    pair.write(SHORT)
    pair.run_until_told()
    assert pair.ends[0].completed() == [1]


@ALL
def test_qps_of_one_host_do_not_mix(transport):
    net = network(transport, seed=3)
    net.worsen(loss=0.05)
    pairs = [Pair(net).join() for _ in range(6)]
    for number, pair in enumerate(pairs):
        for index in range(3):
            pair.write(pattern(5 * PAYLOAD, 10 * number + index), at=index * 5 * PAYLOAD, immediate=10 * number + index)
    for number, pair in enumerate(pairs):
        pair.run_until_told()
        assert pair.ends[0].completed() == [1, 2, 3]
        wanted = b"".join(pattern(5 * PAYLOAD, 10 * number + index) for index in range(3))
        assert pair.ends[1].ram.bytes[: len(wanted)] == wanted
        assert [immediate for immediate, _ in pair.ends[1].delivered()] == [10 * number + index for index in range(3)]


@ALL
def test_a_program_of_its_own_memory_only(transport):
    """Its domain may be empty: then nothing can be written, and it writes all the same."""
    pair = Pair(network(transport))
    pair.ends[0].domain = Domain()
    pair.join()
    pair.write(SHORT)
    pair.run_until_told()
    assert pair.ends[0].completed() == [1]
    pair.ends[1].post(b"x", ADDRESS)
    pair.net.run(pair.ends[1].failures, within=100 * T)
    assert pair.ends[1].failures() == ["remote access error"]


def test_no_path_is_blamed_for_what_a_program_does_wrong():
    pair = joined("mrc", receives=1)
    for number in range(3):
        pair.write(SHORT, immediate=number)
    pair.net.run(within=100 * T, must=False)
    assert pair.net.events_of(EvChanged, 0) == []
