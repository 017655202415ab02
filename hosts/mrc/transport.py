"""MRC for a daemon: the networks that `configure` asks for, over SRv6 and over switches that hash."""

from __future__ import annotations

from typing import Protocol

from mrc_testbed.hosts.control import CommandError, Fields, Request
from mrc_testbed.hosts.fields import swift_of
from mrc_testbed.hosts.mrc.config import EndpointConfig, QpAttributes
from mrc_testbed.hosts.mrc.denylist import Denylist, ObeysDenials
from mrc_testbed.hosts.mrc.endpoint import Endpoint
from mrc_testbed.hosts.mrc.path_log import CountsPaths, PathLog
from mrc_testbed.hosts.mrc.settings import read_settings
from mrc_testbed.hosts.network import DatagramNetwork, PeerPorts, PeerRow, Ports, read_ports
from mrc_testbed.hosts.plugins import LoadedPlugins
from mrc_testbed.hosts.transport import DatagramEndpoint
from mrc_testbed.hosts.udp import PORT, Source, Way
from mrc_testbed.hosts.wiring import Wiring

FIRST_PORT = 0xC000
"""Of the UDP source ports that are EVs: 49152, where ports for private use begin (RFC 6335)."""


def mrc(request: Request, plugins: LoadedPlugins, wiring: Wiring) -> DatagramNetwork:
    """EVs over SRv6: an address for each path, one socket to send and one to receive."""
    config = _config(request)
    peers = [PeerRow.read(row, config.planes) for row in request.rows("peers")]
    endpoint = Endpoint(config, plugins.plugins)
    for peer in peers:
        endpoint.add_peer(peer.host, peer.paths)
    return network_of(endpoint, config, peers, request, wiring)


class ChoosesPaths(DatagramEndpoint, ObeysDenials, CountsPaths, Protocol):
    """An endpoint that names the path of each packet."""


def network_of(
    endpoint: ChoosesPaths, config: EndpointConfig, peers: list[PeerRow], request: Request, wiring: Wiring
) -> DatagramNetwork:
    """An endpoint that speaks MRC over paths of SRv6, with its sockets and its denylist."""
    denylist = Denylist(endpoint, {peer.name: peer.host for peer in peers}, {peer.host: peer.paths for peer in peers})
    if request.has("denylist"):
        denylist.deny(request.rows("denylist"))
    names = {peer.host: peer.name for peer in peers}
    return DatagramNetwork(
        endpoint=endpoint,
        peers=names,
        carrier=wiring.port_watch(config.planes),
        rtt_ns=config.rtt_ns,
        read_remote=QpAttributes.from_json,
        denylist=denylist,
        path_log=PathLog(endpoint, names),
        rx=wiring.receiver({(peer.address, peer.udp_port): peer.host for peer in peers}),
        tx=wiring.sender(request.text("address"), config.udp_port, config.data_class),
    )


def mrc_hashed(request: Request, plugins: LoadedPlugins, wiring: Wiring) -> DatagramNetwork:
    """EVs over switches that hash: a source port for each EV, and a socket for each source port."""
    config = _config(request, FIRST_PORT)
    own = read_ports(request.rows("ports"))
    endpoint = Endpoint(config, plugins.plugins)
    names: dict[int, str] = {}
    sources: dict[Source, int] = {}
    towards: dict[str, str] = {}
    for row in request.rows("peers"):
        peer = PeerPorts.read(row)
        ways = _ways(row, peer.ports, own)
        endpoint.add_peer(peer.host, ways, [way[0] for _, _, way in ways])
        names[peer.host] = peer.name
        sources |= {(address,): peer.host for address in peer.ports.values()}
        towards |= {address: own[plane] for plane, address in peer.ports.items() if plane in own}
    return DatagramNetwork(
        endpoint=endpoint,
        peers=names,
        carrier=wiring.port_watch(config.planes),
        rtt_ns=config.rtt_ns,
        read_remote=QpAttributes.from_json,
        path_log=PathLog(endpoint, names),
        rx=wiring.receiver(sources),
        tx=wiring.sender_set(towards, config.data_class),
    )


def _config(request: Request, udp_port: int = 0) -> EndpointConfig:
    """`udp_port`: the source port of all EVs; 0: as the request has it."""
    return EndpointConfig(
        host=request.number("host"),
        planes=request.number("planes", 1),
        udp_port=udp_port or request.number("udp_port", 1),
        rtt_ns=request.number("rtt_ns"),
        port_rate_bps=request.number("port_rate_bps", 1),
        seed=request.number("seed"),
        swift=swift_of(request),
        **read_settings(request),
    )


def _ways(row: Fields, ports: Ports, own: Ports) -> list[tuple[int, int, Way]]:
    """`evs` of a peer, [[plane, number], ...]: each as (plane, number, where to send). EV[31:16] travels as the flow
    label, which tells the receiver which EV it is; switches hash the source port. Raises CommandError."""
    try:
        return [
            (plane, number, (FIRST_PORT + (plane << 8 | number), (ports[plane], PORT, plane << 8 | number, 0)))
            for plane, number in row["evs"]
            if plane in own
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise CommandError(f"peer {row.get('name')}: evs must be [[plane, number], ...]: {error!r}") from None
