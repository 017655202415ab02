"""The RoCE-like connection for a daemon: the network that `configure` asks for."""

from __future__ import annotations

from mrc_testbed.hosts.control import Request, number_in, text_in
from mrc_testbed.hosts.fields import hash_seed_of, speed_of, swift_of
from mrc_testbed.hosts.mrc.settings import OF_ALL_PACKETS, read_settings
from mrc_testbed.hosts.network import DatagramNetwork, PeerPorts, read_ports
from mrc_testbed.hosts.plugins import LoadedPlugins
from mrc_testbed.hosts.rc.config import RcAttributes, RcConfig
from mrc_testbed.hosts.rc.endpoint import RcEndpoint
from mrc_testbed.hosts.rc.failover_endpoint import FailoverEndpoint, PortGroupAttributes
from mrc_testbed.hosts.rc.wire import CLASS_DATA
from mrc_testbed.hosts.udp import Source
from mrc_testbed.hosts.wiring import Wiring


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
        spreading=text_in(settings, "planes"),
        congestion_control=text_in(settings, "congestion_control"),
        failover=text_in(settings, "failover") == "port",
        port_recovery=settings["port_recovery"] is True,
        retry_hold_ns=number_in(settings, "retry_hold_ns"),
        speed=speed_of(request),
        swift=swift_of(request),
        **{key: value for key, value in read_settings(request).items() if key in OF_ALL_PACKETS},
    )
    own = read_ports(request.rows("ports"))
    peers = [PeerPorts.read(row) for row in request.rows("peers")]
    by_address: dict[Source, int] = {(address,): peer.host for peer in peers for address in peer.ports.values()}
    grouped = config.failover or config.retry_hold_ns > 0
    endpoint: RcEndpoint | FailoverEndpoint = FailoverEndpoint(config) if grouped else RcEndpoint(config)
    for peer in peers:
        endpoint.add_peer(peer.host, [(plane, address) for plane, address in peer.ports.items() if plane in own])
    return DatagramNetwork(
        endpoint=endpoint,
        peers={peer.host: peer.name for peer in peers},
        carrier=wiring.port_watch(config.planes),
        rtt_ns=config.rtt_ns,
        read_remote=PortGroupAttributes.from_json if grouped else RcAttributes.from_json,
        rx=wiring.receiver(by_address),
        tx=wiring.sender_set(
            {address: own[plane] for peer in peers for plane, address in peer.ports.items() if plane in own},
            CLASS_DATA,
        ),
    )
