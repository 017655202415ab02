"""Frames over kernel TCP: their form, and a connection that cuts a stream into them."""

import os
import socket
import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.ktcp.connection import Connection, ConnectionEnded
from mrc_testbed.hosts.ktcp.frames import (
    HEADER_BYTES,
    LONGEST_WRITE,
    FrameHeader,
    FrameRefused,
    TcpFrameKind,
    emit_frame,
    parse_frame,
)

WRITES = (TcpFrameKind.WRITE, TcpFrameKind.WRITE_IMMEDIATE)
U32, U64 = st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1)
HEADERS = st.builds(FrameHeader, st.sampled_from(TcpFrameKind), U64, st.just(0), U32) | st.builds(
    FrameHeader, st.sampled_from(WRITES), U64, st.integers(0, LONGEST_WRITE), U32
)


@given(HEADERS)
def test_a_header_is_read_as_it_was_written(header):
    data = emit_frame(header)
    assert len(data) == HEADER_BYTES == 20
    assert parse_frame(data) == header


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (bytes(20), "kind 0"),
        (struct.pack(">QIIB3s", 0, 0, 0, 99, b"\0\0\0"), "kind 99"),
        (struct.pack(">QIIB3s", 0, 0, 0, 5, b"\0\0\1"), "where none belong"),
        (struct.pack(">QIIB3s", 0, 7, 0, 5, b"\0\0\0"), "PROBE with a payload of 7 bytes"),
        (struct.pack(">QIIB3s", 0, 1 << 31, 0, 2, b"\0\0\0"), f"{1 << 31} bytes"),
    ],
)
def test_what_no_endpoint_sends_is_refused_with_a_reason(data, word):
    with pytest.raises(FrameRefused) as caught:
        parse_frame(data)
    assert word in str(caught.value)


class End:
    """A connection whose far end is a plain socket. `region` takes payloads, `frames` what came, and when."""

    def __init__(self, size=1 << 16):
        ours, self.far = socket.socketpair()
        ours.setblocking(False)
        self.far.setblocking(False)
        self.region = memoryview(bytearray(size))
        self.frames = []
        self.placed = 0
        self.connection = Connection(ours, self._place, self._take, self._note)

    def _place(self, frame):
        if frame.address + frame.length > len(self.region):
            raise FrameRefused("outside")
        return self.region[frame.address : frame.address + frame.length]

    def _take(self, frame, now_ns):
        self.frames.append((frame, now_ns))

    def _note(self, size):
        self.placed += size

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()
        self.far.close()


def stream(writes):
    """The bytes of these writes (address, payload), and the headers in them."""
    headers = [FrameHeader(TcpFrameKind.WRITE_IMMEDIATE, at, len(data), n) for n, (at, data) in enumerate(writes)]
    pieces = zip(headers, (data for _, data in writes), strict=True)
    return b"".join(emit_frame(header) + data for header, data in pieces), headers


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2000), st.binary(max_size=300)), max_size=12), st.data())
def test_a_stream_comes_in_whole_however_it_is_cut(writes, data):
    sent, headers = stream(writes)
    region = bytearray(4096)
    for at, payload in writes:
        region[at : at + len(payload)] = payload
    with End(4096) as end:
        at = 0
        while at < len(sent):
            piece = sent[at : at + data.draw(st.integers(1, 200))]
            end.far.sendall(piece)
            at += len(piece)
            assert end.connection.receive(at) is False
        assert [frame for frame, _ in end.frames] == headers
        assert bytes(end.region) == bytes(region)
        assert end.placed == sum(len(payload) for _, payload in writes)


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_noise_is_refused_or_waits_for_more(noise):
    with End(100) as end:
        end.far.sendall(noise)
        with suppress(FrameRefused):
            end.connection.receive(0)
        assert all(frame.address + frame.length <= 100 for frame, _ in end.frames if frame.kind in WRITES)


def test_a_write_outside_of_the_region_is_refused_before_its_payload_is_read():
    with End(100) as end:
        end.far.sendall(emit_frame(FrameHeader(TcpFrameKind.WRITE, 90, 11)))
        with pytest.raises(FrameRefused):
            end.connection.receive(0)


def test_frames_go_out_in_order_however_little_the_kernel_takes():
    payload = os.urandom(3 << 20)
    with End() as end:
        for number in range(5):
            end.connection.queue(FrameHeader(TcpFrameKind.WRITE, number, len(payload)), memoryview(payload))
            end.connection.queue(FrameHeader(TcpFrameKind.PROBE))
        taken, whole = bytearray(), False
        while not whole or len(taken) < 5 * (len(payload) + 40):
            whole = end.connection.flush()
            taken += end.far.recv(1 << 20)
    probe = emit_frame(FrameHeader(TcpFrameKind.PROBE))
    writes = [emit_frame(FrameHeader(TcpFrameKind.WRITE, number, len(payload))) for number in range(5)]
    assert taken == b"".join(header + payload + probe for header in writes)


@pytest.mark.parametrize("cut", [0, 7, 20, 25])
def test_the_end_of_the_stream_ends_the_connection(cut):
    sent, _ = stream([(0, b"x" * 10)])
    with End() as end:
        end.far.sendall(sent[:cut])
        end.far.close()
        with pytest.raises(ConnectionEnded) as caught:
            end.connection.receive(0)
        assert str(caught.value) == "closed by the peer"


def test_sending_to_nobody_ends_the_connection_with_the_kernels_words():
    with End() as end:
        end.far.close()
        end.connection.queue(FrameHeader(TcpFrameKind.PROBE))
        with pytest.raises(ConnectionEnded) as caught:
            end.connection.flush()
        assert str(caught.value) == "Broken pipe"


def awaited(end):
    """How many bytes have to be there before the kernel calls the connection readable."""
    with socket.socket(fileno=os.dup(end.connection.fileno())) as ours:
        return ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


def test_a_reader_sleeps_until_the_rest_of_a_payload_is_there():
    with End() as end:
        sent, _ = stream([(0, b"x" * 5000)])
        end.far.sendall(sent[:1020])
        end.connection.receive(0)
        assert awaited(end) == 4000
        end.far.sendall(sent[1020:])
        end.connection.receive(0)
        assert awaited(end) == HEADER_BYTES


def test_a_turn_that_ends_in_mid_payload_does_not_wait_for_more_than_the_rest(monkeypatch):
    """The bytes awaited were those of the turn before: with the rest of the payload there, the job stalled."""
    monkeypatch.setattr("mrc_testbed.hosts.ktcp.connection._MOST_READ_BYTES", 3000)
    with End() as end:
        sent, _ = stream([(0, b"x" * 5000)])
        end.far.sendall(sent[:1020])
        end.connection.receive(0)
        end.far.sendall(sent[1020:4020])
        assert end.connection.receive(0), "there may be more"
        assert awaited(end) == 1000
