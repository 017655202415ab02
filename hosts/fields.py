"""Fields of `configure` that several transports read."""

from __future__ import annotations

from mrc_testbed.hosts.control import Request


def delay_of(request: Request) -> tuple[int, bool]:
    """`delay_ns` of the delay line, 0 if left out, and whether packets wait in it for a time after the kernel's
    stamp."""
    delay_ns = request.number("delay_ns") if request.has("delay_ns") else 0
    return delay_ns, delay_ns > 0 or (request.has("port_program") and request.flag("port_program"))


def speed_of(request: Request) -> int:
    """`speed`: how many times faster than written all is; left out, it is as written."""
    return request.number("speed", 1) if request.has("speed") else 1


def swift_of(request: Request) -> int:
    """`swift`: how many times faster than daemons hosts and switches are; left out, as much as the network is."""
    return request.number("swift", 1) if request.has("swift") else speed_of(request)


def hash_seed_of(request: Request) -> int | None:
    """`hash_seed`: with which QPs are hashed to ports; left out, they are dealt out to them in turn."""
    return request.number("hash_seed") if request.has("hash_seed") else None
