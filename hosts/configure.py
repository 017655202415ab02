"""What `configure` makes of its fields: the network of a daemon, by transport."""

from __future__ import annotations

from collections.abc import Callable

from mrc_testbed.hosts.control import CommandError, Request, number_in, text_in
from mrc_testbed.hosts.core.config import EndpointConfig, QpAttributes
from mrc_testbed.hosts.core.endpoint import Endpoint
from mrc_testbed.hosts.denylist import Denylist
from mrc_testbed.hosts.ktcp.attributes import TcpQpAttributes
from mrc_testbed.hosts.ktcp.endpoint import TcpConfig, TcpEndpoint
from mrc_testbed.hosts.ktcp.kernel import tune_namespace
from mrc_testbed.hosts.network import DatagramNetwork, Network, PeerPorts, PeerRow, SocketNetwork, read_ports
from mrc_testbed.hosts.plugins import LoadedPlugins
from mrc_testbed.hosts.rc.config import RcAttributes, RcConfig
from mrc_testbed.hosts.rc.endpoint import RcEndpoint
from mrc_testbed.hosts.rc.wire import CLASS_DATA
from mrc_testbed.hosts.settings import OF_ALL_PACKETS, read_settings
from mrc_testbed.hosts.udp import Source
from mrc_testbed.hosts.wire import CLASS_TRIMMABLE
from mrc_testbed.hosts.wiring import Wiring

Make = Callable[[Request, LoadedPlugins, Wiring], Network]
"""Raises CommandError or CoreError for fields that cannot be, OSError for sockets that cannot be made."""


def mrc(request: Request, plugins: LoadedPlugins, wiring: Wiring) -> DatagramNetwork:
    """MRC: EVs over SRv6, one socket to send and one to receive."""
    config = EndpointConfig(
        host=request.number("host"),
        planes=request.number("planes", 1),
        udp_port=request.number("udp_port", 1),
        rtt_ns=request.number("rtt_ns"),
        port_rate_bps=request.number("port_rate_bps", 1),
        seed=request.number("seed"),
        speed=speed_of(request),
        **read_settings(request),
    )
    delay_ns, stamped = delay_of(request)
    peers = [PeerRow.read(row, config.planes) for row in request.rows("peers")]
    endpoint = Endpoint(config, plugins.plugins)
    for peer in peers:
        endpoint.add_peer(peer.host, peer.paths)
    denylist = Denylist(endpoint, {peer.name: peer.host for peer in peers}, {peer.host: peer.paths for peer in peers})
    if request.has("denylist"):
        denylist.deny(request.rows("denylist"))
    return DatagramNetwork(
        endpoint=endpoint,
        peers={peer.host: peer.name for peer in peers},
        carrier=wiring.port_watch(config.planes),
        rtt_ns=config.rtt_ns,
        read_remote=QpAttributes.from_json,
        denylist=denylist,
        rx=wiring.receiver({(peer.address, peer.udp_port): peer.host for peer in peers}, delay_ns, stamped),
        tx=wiring.sender(request.text("address"), config.udp_port, CLASS_TRIMMABLE),
        delay_ns=delay_ns,
        stamped=stamped,
        speed=config.speed,
    )


def delay_of(request: Request) -> tuple[int, bool]:
    """`delay_ns` of the delay line, and whether packets wait in it for a time after the kernel's stamp."""
    delay_ns = request.number("delay_ns")
    return delay_ns, delay_ns > 0 or (request.has("port_program") and request.flag("port_program"))


def speed_of(request: Request) -> int:
    """`speed`: how many times faster than usual the network is; left out, it is as usual."""
    return request.number("speed", 1) if request.has("speed") else 1


def hash_seed_of(request: Request) -> int | None:
    """`hash_seed`: with which QPs are hashed to ports; left out, they are dealt out to them in turn."""
    return request.number("hash_seed") if request.has("hash_seed") else None


def roce(request: Request, plugins: LoadedPlugins, wiring: Wiring) -> DatagramNetwork:
    """RoCE-like: a source port a QP, its packets hashed onto a path by the switches."""
    settings = request.table("roce")
    config = RcConfig(
        host=request.number("host"),
        planes=request.number("planes", 1),
        rtt_ns=request.number("rtt_ns"),
        port_rate_bps=request.number("port_rate_bps", 1),
        seed=request.number("seed"),
        hash_seed=hash_seed_of(request),
        recovery=text_in(settings, "recovery"),
        timeout_ns=number_in(settings, "timeout_ns", 1),
        retries=number_in(settings, "retries"),
        congestion_control=text_in(settings, "congestion_control"),
        speed=speed_of(request),
        **{key: value for key, value in read_settings(request).items() if key in OF_ALL_PACKETS},
    )
    delay_ns, stamped = delay_of(request)
    own = read_ports(request.rows("ports"))
    peers = [PeerPorts.read(row) for row in request.rows("peers")]
    by_address: dict[Source, int] = {(address,): peer.host for peer in peers for address in peer.ports.values()}
    endpoint = RcEndpoint(config)
    for peer in peers:
        endpoint.add_peer(peer.host, [(plane, address) for plane, address in peer.ports.items() if plane in own])
    return DatagramNetwork(
        endpoint=endpoint,
        peers={peer.host: peer.name for peer in peers},
        carrier=wiring.port_watch(config.planes),
        rtt_ns=config.rtt_ns,
        read_remote=RcAttributes.from_json,
        rx=wiring.receiver(by_address, delay_ns, stamped),
        tx=wiring.sender_set(
            {address: own[plane] for peer in peers for plane, address in peer.ports.items() if plane in own},
            CLASS_DATA,
        ),
        delay_ns=delay_ns,
        stamped=stamped,
        speed=config.speed,
    )


def tcp(request: Request, plugins: LoadedPlugins, wiring: Wiring) -> SocketNetwork:
    """Kernel TCP: a connection a QP, its packets hashed onto a path by the switches."""
    return _of_kernel(request, wiring, subflows=False)


def mptcp(request: Request, plugins: LoadedPlugins, wiring: Wiring) -> SocketNetwork:
    """Kernel MPTCP: the same with a subflow in each plane."""
    return _of_kernel(request, wiring, subflows=True)


def _of_kernel(request: Request, wiring: Wiring, subflows: bool) -> SocketNetwork:
    settings = request.table("tcp")
    config = TcpConfig(
        host=request.number("host"),
        seed=request.number("seed"),
        rtt_ns=request.number("rtt_ns"),
        ports=read_ports(request.rows("ports")),
        congestion_control=text_in(settings, "congestion_control"),
        payload_bytes=number_in(settings, "payload_bytes", 1),
        hash_seed=hash_seed_of(request),
        subflows=subflows,
    )
    peers = [PeerPorts.read(row) for row in request.rows("peers")]
    tune_namespace(number_in(settings, "rto_min_ns", 1))
    endpoint = TcpEndpoint(config)
    for peer in peers:
        endpoint.add_peer(peer.host, peer.ports)
    return SocketNetwork(
        endpoint=endpoint,
        peers={peer.host: peer.name for peer in peers},
        carrier=wiring.port_watch(request.number("planes", 1)),
        rtt_ns=config.rtt_ns,
        read_remote=TcpQpAttributes.from_json,
    )


TRANSPORTS: dict[str, Make] = {"mrc": mrc, "roce": roce, "tcp": tcp, "mptcp": mptcp}
"""By the value of `transport`; left out, it is "mrc"."""


def configured(request: Request, plugins: LoadedPlugins, wiring: Wiring) -> Network:
    """The network that `configure` asks for. Raises what the transport's own function raises."""
    name = request.text("transport") if request.has("transport") else "mrc"
    if name not in TRANSPORTS:
        raise CommandError(f"transport must be one of {', '.join(TRANSPORTS)}, not {name!r}")
    return TRANSPORTS[name](request, plugins, wiring)
