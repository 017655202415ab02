"""Kernel TCP and MPTCP for a daemon: the networks that `configure` asks for."""

from __future__ import annotations

from mrc_testbed.hosts.control import Request, number_in, text_in
from mrc_testbed.hosts.fields import hash_seed_of
from mrc_testbed.hosts.ktcp.attributes import TcpQpAttributes
from mrc_testbed.hosts.ktcp.endpoint import TcpConfig, TcpEndpoint
from mrc_testbed.hosts.ktcp.kernel import tune_namespace
from mrc_testbed.hosts.network import PeerPorts, SocketNetwork, read_ports
from mrc_testbed.hosts.plugins import LoadedPlugins
from mrc_testbed.hosts.wiring import Wiring


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
