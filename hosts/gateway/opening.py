"""The gateway that the command `open_gateway` asks for."""

from __future__ import annotations

import socket

from mrc_testbed.hosts.control import CommandError, Fields, Request, text_in
from mrc_testbed.hosts.gateway.gateway import STUCK_RTTS, Gateway, GatewayPeer
from mrc_testbed.hosts.gateway.packets import LARGEST_FRAME
from mrc_testbed.hosts.gateway.ring import IncomingRing, OutgoingRing
from mrc_testbed.hosts.program_io import ProgramQps


def open_gateway(request: Request, qps: ProgramQps, rtt_ns: int) -> Gateway:
    """The device, with a ring to each peer. Raises CommandError for fields that cannot be, or without TUN."""
    ring_bytes, batch_bytes = request.number("ring_bytes", 2 * LARGEST_FRAME), LARGEST_FRAME
    peers = [_peer(row, qps, ring_bytes, batch_bytes) for row in request.rows("peers")]
    ipv4, ipv6 = request.text("ipv4"), request.text("ipv6")
    _packed(ipv4, ipv6)
    from mrc_testbed.hosts.gateway.tun import PATH, Tun  # only Linux has what it imports

    try:
        device = Tun(request.text("name"), ipv4, ipv6, request.number("mtu", 1280))
    except OSError as error:
        raise CommandError(f"{request.text('name')} cannot be made by {PATH}: {error.strerror}") from None
    return Gateway(device, peers, request.number("mark_bytes", 1), STUCK_RTTS * rtt_ns)


def _peer(row: Fields, qps: ProgramQps, ring_bytes: int, batch_bytes: int) -> GatewayPeer:
    qp_out, qp_in = text_in(row, "out"), text_in(row, "in")

    def post(data: memoryview, offset: int, immediate: int) -> None:
        qps.post_write(qp_out, data, offset, immediate)

    try:
        incoming = IncomingRing(qps.region(qp_in))
    except KeyError:
        raise CommandError(f"QP {qp_in} is not open") from None
    addresses = _packed(text_in(row, "ipv4"), text_in(row, "ipv6"))
    return GatewayPeer(addresses, qp_out, qp_in, OutgoingRing(ring_bytes, batch_bytes, post), incoming)


def _packed(ipv4: str, ipv6: str) -> tuple[bytes, bytes]:
    try:
        return socket.inet_aton(ipv4), socket.inet_pton(socket.AF_INET6, ipv6)
    except OSError:
        raise CommandError(f"{ipv4} and {ipv6} must be an IPv4 and an IPv6 address") from None
