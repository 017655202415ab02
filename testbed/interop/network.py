"""What `configure` makes on the host of a program: its endpoint, which is the program, and the host's sockets."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any
from zlib import crc32

from mrc_testbed.hosts.common.pacer import Pacer
from mrc_testbed.hosts.control import Request
from mrc_testbed.hosts.mrc.config import FRAME_BYTES, EndpointConfig
from mrc_testbed.hosts.mrc.settings import read_settings
from mrc_testbed.hosts.mrc.transport import network_of
from mrc_testbed.hosts.mrc.wire import DATA_HEADER_BYTES
from mrc_testbed.hosts.network import DatagramNetwork, PeerRow
from mrc_testbed.hosts.plugins import LoadedPlugins
from mrc_testbed.hosts.wiring import Wiring
from mrc_testbed.testbed.interop.endpoint import ContractEndpoint
from mrc_testbed.testbed.interop.program import ContractProgram
from mrc_testbed.testbed.interop.tape import Tape

TRANSPORT = "contract"
"""What `configure` calls it."""
KEY = "subject"
"""The field of `configure` with the number of the program in SUBJECTS."""
SUBJECTS: dict[int, JudgedProgram] = {}
"""Programs that are running, by number: `configure` is JSON and can name one only so."""
_numbers = count(1)
"""A number is not given twice."""


@dataclass(slots=True)
class JudgedProgram:
    """A program that is judged, and what it did."""

    program: ContractProgram
    twice_every: int = 0
    """Each packet whose number is a multiple of it is given to the program twice; 0: none."""
    tape: Tape = field(default_factory=Tape)
    number: int = field(default_factory=lambda: next(_numbers))


def plugin_fields(subject: JudgedProgram) -> dict[str, Any]:
    """What `configure` of its host has beside the usual."""
    row = {"name": TRANSPORT, "kind": "transport", "module": __name__, "attribute": "make"}
    return {"transport": TRANSPORT, KEY: subject.number, "plugins": [row]}


def make(request: Request, plugins: LoadedPlugins, wiring: Wiring) -> DatagramNetwork:
    """As mrc_testbed.hosts.mrc.transport.mrc, but the program makes the packets."""
    subject = SUBJECTS[request.number(KEY)]
    config = EndpointConfig(
        host=request.number("host"),
        planes=request.number("planes", 1),
        udp_port=request.number("udp_port", 1),
        rtt_ns=request.number("rtt_ns"),
        port_rate_bps=request.number("port_rate_bps", 1),
        seed=request.number("seed"),
        **read_settings(request),
    )
    peers = [PeerRow.read(row, config.planes) for row in request.rows("peers")]
    subject.program.ask("configure", now_ns=0, **_told(config, peers))
    paths = {peer.host: {(plane, uplink): way for plane, uplink, way in peer.paths} for peer in peers}
    packet_bytes = config.payload_bytes + DATA_HEADER_BYTES
    burst_ns = Pacer(config.planes, config.port_rate_bps, packet_bytes, FRAME_BYTES, True).burst_ns
    endpoint = ContractEndpoint(subject.program, subject.tape, paths, burst_ns, subject.twice_every)
    return network_of(endpoint, config, peers, request, wiring)


def _told(config: EndpointConfig, peers: list[PeerRow]) -> dict[str, Any]:
    """The request `configure` of the contract. Its seed is not that of the run, from which hosts make their data."""
    return {
        "host": config.host,
        "planes": config.planes,
        "udp_port": config.udp_port,
        "rtt_ns": config.rtt_ns,
        "port_rate_bps": config.port_rate_bps,
        "seed": crc32(b"contract %d" % config.seed),
        "payload_bytes": config.payload_bytes,
        "mpr": config.mpr,
        "max_wimm": config.max_wimm,
        "switches_trim": config.switches_trim,
        "icrc": config.icrc,
        "timeout": config.timeout,
        "linear_tries": config.linear_tries,
        "exponential_tries": config.exponential_tries,
        "tsr_unit_ns": 1 << config.stamp_shift,
        "dscp_data": config.dscp_data,
        "dscp_retransmission": config.dscp_retransmission,
        "dscp_no_trim": config.dscp_no_trim,
        "dscp_control": config.dscp_control,
        "dscp_trimmed": config.dscp_trimmed,
        "dscp_trimmed_last_hop": config.dscp_trimmed_last_hop,
        "peers": [{"peer": peer.host, "paths": [[plane, uplink] for plane, uplink, _ in peer.paths]} for peer in peers],
    }
