"""MRC for a daemon: the network that `configure` asks for."""

from __future__ import annotations

from mrc_testbed.hosts.control import Request
from mrc_testbed.hosts.fields import delay_of, speed_of
from mrc_testbed.hosts.mrc.config import EndpointConfig, QpAttributes
from mrc_testbed.hosts.mrc.denylist import Denylist
from mrc_testbed.hosts.mrc.endpoint import Endpoint
from mrc_testbed.hosts.mrc.settings import read_settings
from mrc_testbed.hosts.mrc.wire import CLASS_TRIMMABLE
from mrc_testbed.hosts.network import DatagramNetwork, PeerRow
from mrc_testbed.hosts.plugins import LoadedPlugins
from mrc_testbed.hosts.wiring import Wiring


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
