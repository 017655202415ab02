"""What the command `open_verbs` asks for: programs of this host find it, and it serves them."""

from __future__ import annotations

import socket
from typing import Any, cast

from mrc_testbed.hosts.control import CommandError, Request, number_in, text_in
from mrc_testbed.hosts.network import DatagramNetwork, Network
from mrc_testbed.hosts.verbs.facts import HostFacts
from mrc_testbed.hosts.verbs.qps import ProgramEndpoint, QpNames
from mrc_testbed.hosts.verbs.server import ProgramServer, Tell

_WAITING = 64


def open_verbs(request: Request, network: Network, names: QpNames, tell: Tell) -> ProgramServer:
    """Listen, and serve who comes. Raises CommandError for fields that cannot be, and for a transport whose QPs are the
    kernel's."""
    if not isinstance(network, DatagramNetwork):
        raise CommandError("this transport has no QPs of its own: the kernel makes its packets")
    rows = request.rows("hosts")
    gids = {gid_of(text_in(row, "ipv4")): number_in(row, "host") for row in rows}
    number = request.number("host")
    own = next((gid for gid, host in gids.items() if host == number), None)
    if own is None:
        raise CommandError(f"host {number} is not among the hosts of open_verbs")
    told = HostFacts(
        number=number,
        name=request.text("name"),
        gid=own,
        gids=gids,
        planes=request.number("planes", 1),
        payload_bytes=request.number("payload_bytes", 1),
        mpr=request.number("mpr"),
        max_wimm=request.number("max_wimm"),
        rtt_ns=network.rtt_ns,
    )
    endpoint = cast(ProgramEndpoint, network.endpoint)
    return ProgramServer(network, endpoint, names, told, listen(request.text("socket")), tell)


def gid_of(ipv4: str) -> bytes:
    """The GID of a host: its IPv4 address, mapped (RFC 4291, 2.5.5.2). Raises CommandError."""
    try:
        return bytes(10) + b"\xff\xff" + socket.inet_aton(ipv4)
    except OSError:
        raise CommandError(f"{ipv4!r} is no IPv4 address") from None


def listen(name: str) -> socket.socket:
    """A socket at which programs find their host. `@` in front: an abstract name of this network namespace (unix(7)).
    Raises CommandError."""
    address: Any = "\0" + name[1:] if name.startswith("@") else name
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    try:
        listening.bind(address)
        listening.listen(_WAITING)
    except OSError as error:
        listening.close()
        raise CommandError(f"programs cannot be served at {name}: {error.strerror}") from None
    return listening
