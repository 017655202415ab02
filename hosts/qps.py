"""The QPs of a daemon by the names that the runner gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mrc_testbed.hosts.common.errors import PeerAttributeError, QpStateError
from mrc_testbed.hosts.control import CommandError, Fields, number_in, text_in
from mrc_testbed.hosts.network import Network
from mrc_testbed.hosts.operations import ProgramError
from mrc_testbed.hosts.transport import EndpointLike, RemoteQp


@dataclass(slots=True)
class NamedQp:
    """A QP by its name on this host. `remote_address` is the first byte of the peer's region, None until connected."""

    name: str
    peer: int
    qpn: int
    remote_address: int | None = None


class NamedQps:
    """Opens, connects, resets and destroys QPs by name. What cannot be done raises CommandError and changes nothing."""

    def __init__(self, network: Network) -> None:
        self._endpoint = network.endpoint
        self._read_remote = network.read_remote
        self._peers = network.peers
        self.by_name: dict[str, NamedQp] = {}
        self.names: dict[int, str] = {}
        """By QP number."""

    def open(self, rows: list[Any]) -> dict[str, Fields]:
        """`[{id, peer, region_bytes}]`; returns this side's attributes by name. Opens all, or none where one fails."""
        wanted = [(text_in(row, "id"), number_in(row, "peer"), number_in(row, "region_bytes")) for row in rows]
        for number, (name, peer, _) in enumerate(wanted):
            if name in self.by_name or any(name == other for other, *_ in wanted[:number]):
                raise CommandError(f"QP {name} is already open")
            if peer not in self._peers:
                raise CommandError(f"QP {name}: unknown peer, host {peer}")
        opened: dict[str, Fields] = {}
        try:
            for name, peer, region_bytes in wanted:
                attributes = self._endpoint.open_qp(peer, region_bytes)
                self.by_name[name] = NamedQp(name, peer, attributes.qpn)
                self.names[attributes.qpn] = name
                opened[name] = attributes.as_json()
        except BaseException:
            self.destroy([self.by_name[name] for name in opened])
            raise
        return opened

    def connect(self, table: Fields) -> None:
        """`{name: the peer's attributes}`."""
        remotes = [(self._to_connect(name), self._remote(name, fields)) for name, fields in table.items()]
        for qp, remote in remotes:
            self._endpoint.connect_qp(qp.qpn, remote)
            qp.remote_address = remote.region_address

    def _to_connect(self, name: str) -> NamedQp:
        qp = self.by_name.get(name)
        if qp is None or qp.remote_address is not None:
            raise CommandError(f"QP {name} is not open" if qp is None else f"QP {name} is already connected")
        return qp

    def _remote(self, name: str, fields: Any) -> RemoteQp:
        try:
            return self._read_remote(fields)
        except (KeyError, IndexError, TypeError) as error:
            raise CommandError(f"QP {name}: missing or malformed remote attribute {error}") from None
        except PeerAttributeError as error:
            raise CommandError(f"QP {name}: {error}") from None

    def find(self, names: list[Any]) -> list[NamedQp]:
        """Those of these names, each once."""
        unknown = [str(name) for name in names if type(name) is not str or name not in self.by_name]
        if unknown:
            raise CommandError(f"QP {', '.join(unknown)} is not open")
        return [self.by_name[name] for name in dict.fromkeys(names)]

    def reset(self, qps: list[NamedQp]) -> dict[str, Fields]:
        """Returns the new attributes of this side by name."""
        attributes: dict[str, Fields] = {}
        for qp in qps:
            attributes[qp.name] = self._endpoint.reset_qp(qp.qpn).as_json()
            qp.remote_address = None
        return attributes

    def destroy(self, qps: list[NamedQp]) -> None:
        """Their names may be opened again."""
        for qp in qps:
            self._endpoint.destroy_qp(qp.qpn)
            del self.by_name[qp.name], self.names[qp.qpn]

    def adopt(self, qpn: int, name: str, peer: int) -> None:
        """A program's QP is connected; its name is no other's."""
        self.by_name[name] = NamedQp(name, peer, qpn, 0)
        self.names[qpn] = name

    def disown(self, qpn: int) -> None:
        """A program's QP is gone."""
        del self.by_name[self.names.pop(qpn)]

    def unconnected(self) -> list[str]:
        """Names of those that no `connect` has named."""
        return [qp.name for qp in self.by_name.values() if qp.remote_address is None]

    def named(self, by_number: Mapping[int, Any]) -> dict[str, Any]:
        """The same by name."""
        return {self.names[qpn]: value for qpn, value in by_number.items()}

    def packets(self) -> dict[str, Fields]:
        """Peer, packets sent and lost of each QP that was ever connected."""
        packets = self._endpoint.qp_packets()
        return {
            name: {"peer": self._peers[qp.peer], **packets[qp.qpn]._asdict()}
            for name, qp in self.by_name.items()
            if qp.qpn in packets
        }

    def flows(self) -> dict[str, list[Fields]]:
        """What switches hash of each QP's packets, where it is they who choose its path, or its paths."""
        return {
            name: [flow._asdict() for flow in flows] for name, flows in self.named(self._endpoint.qp_flows()).items()
        }


class QpTransport:
    """A program's writes and regions, by QP name."""

    def __init__(self, endpoint: EndpointLike, qps: Mapping[str, NamedQp], peers: Mapping[int, str]) -> None:
        self._endpoint = endpoint
        self._qps = qps
        self._peers = peers
        self._wr_id = 0

    def region(self, qp: str) -> memoryview:
        """This side's registered memory. Raises KeyError for an unknown QP."""
        return self._endpoint.region(self._qps[qp].qpn)

    def peer(self, qp: str) -> str:
        """The name of the host at the other end."""
        return self._peers[self._qps[qp].peer]

    def take_placed(self, qp: str, mark_ns: int) -> int:
        """Payload bytes placed in the region, as the endpoint's `take_placed`."""
        return self._endpoint.take_placed(self._qps[qp].qpn, mark_ns)

    def post_write(self, qp: str, data: memoryview, remote_offset: int, immediate: int | None) -> None:
        """Queue a write into the peer's region."""
        self._wr_id += 1
        target = self._qps[qp]
        if target.remote_address is None:
            raise ProgramError(f"QP {qp} is not connected")
        try:
            self._endpoint.post_write(target.qpn, data, target.remote_address + remote_offset, self._wr_id, immediate)
        except QpStateError:  # its `qp_error` was reported: the program waits, the runner decides
            return
