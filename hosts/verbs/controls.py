"""What a controller asks of its host: ports switched off and on, EVs denied and probed, their states told.

The state is the host's, and outlives the controller.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Protocol

from mrc_testbed.hosts.mrc.endpoint import Endpoint
from mrc_testbed.hosts.mrc.events import EvChanged, PathAnswered
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.network import Network
from mrc_testbed.hosts.verbs.connection import ProgramConnection
from mrc_testbed.hosts.verbs.facts import HostFacts
from mrc_testbed.hosts.verbs.messages import FORMS, RecordKind
from mrc_testbed.hosts.verbs.refusal import Malformed, RequestRefused, refusals

_STATES = {EvState.GOOD: 1, EvState.SKIP: 1, EvState.ASSUMED_BAD: 2, EvState.DENIED: 4}
"""As the API has them; one in SKIP is passed over for congestion, and good."""
DOWN, UP, DISABLED = 0, 1, 2
_EVERY_PEER = bytes(16)


class ControllerProgram(Protocol):
    """Who asks."""

    connection: ProgramConnection


class Controls:
    """Of one host. Requests raise `RequestRefused`."""

    def __init__(self, network: Network, facts: HostFacts) -> None:
        self._network = network
        self._facts = facts
        self._gids = {number: gid for gid, number in facts.gids.items()}
        self._watching: list[ControllerProgram] = []
        self._asked: dict[tuple[int, int], tuple[ControllerProgram, int, int]] = {}
        """Who asked for a probe, by peer and request id, with the token and the EV."""

    def serve(self, asking: ControllerProgram, kind: RecordKind, record: memoryview, now_ns: int) -> int | None:
        """Carry out a request; returns the `value` of its REPLY, None for none."""
        fields = FORMS[kind].unpack(record)
        match kind:
            case RecordKind.QUERY_PORT:
                return self._port(self._plane(fields["port"]))
            case RecordKind.MODIFY_PORT:
                return self._switch(self._plane(fields["port"]), bool(fields["enabled"]), now_ns)
            case RecordKind.MODIFY_EV:
                return self._modify(fields["dgid"], fields["ev"], bool(fields["denied"]), now_ns)
            case RecordKind.QUERY_EVS:
                return self._list(asking, fields["dgid"])
            case RecordKind.WATCH_EVS:
                return self._watch(asking, bool(fields["on"]))
            case RecordKind.PROBE:
                self._probe(asking, fields["dgid"], fields["ev"], fields["token"], now_ns)
                return None
            case _:
                raise Malformed(f"{kind.name} from a program")

    def forget(self, asking: ControllerProgram) -> None:
        """It has gone."""
        self._watching = [each for each in self._watching if each is not asking]
        self._asked = {key: asked for key, asked in self._asked.items() if asked[0] is not asking}

    def take_event(self, event: object) -> list[ControllerProgram]:
        """Tell those who watch; returns who was told."""
        match event:
            case EvChanged():
                record = self._state(event.peer, event.plane, event.uplink, event.new)
                for each in self._watching:
                    each.connection.tell(record)
                return self._watching
            case PathAnswered():
                return self._answered(event)
            case _:
                return []

    # Ports

    def _plane(self, port: int) -> int:
        if not 1 <= port <= self._facts.planes:
            raise RequestRefused(
                errno.EINVAL, f"{self._facts.name} has ports 1 to {self._facts.planes}, and no port {port}"
            )
        return port - 1

    def _port(self, plane: int) -> int:
        if plane in self._network.disabled:
            return DISABLED
        return DOWN if plane in self._network.without_carrier else UP

    def _switch(self, plane: int, enabled: bool, now_ns: int) -> int:
        self._endpoint()  # others keep a QP on the port that it is bound to, whatever happens to it
        self._network.switch_port(plane, enabled, now_ns)
        return self._port(plane)

    # EVs

    def _endpoint(self) -> Endpoint:
        endpoint = self._network.endpoint
        if not isinstance(endpoint, Endpoint):
            raise RequestRefused(errno.ENOTSUP, "the transport of this run has no EVs: its hosts do not choose paths")
        return endpoint

    def _peers(self, gid: bytes) -> list[int]:
        if gid == _EVERY_PEER:
            return list(self._network.peers)
        number = self._facts.gids.get(gid)
        if number not in self._network.peers:
            raise RequestRefused(errno.EINVAL, f"no peer of {self._facts.name} has the GID {gid.hex(':', 2)}")
        return [number]

    def _modify(self, gid: bytes, ev: int, denied: bool, now_ns: int) -> int:
        endpoint, path = self._endpoint(), (ev >> 8, ev & 0xFF)
        for peer in self._peers(gid):
            with refusals(errno.ENOENT):
                if denied:
                    endpoint.deny(peer, [path])
                else:
                    endpoint.allow(peer, [path], now_ns)
        return 0

    def _list(self, asking: ControllerProgram, gid: bytes) -> int:
        records = [record for peer in self._peers(gid) for record in self._states(self._endpoint(), peer)]
        for record in records:
            asking.connection.tell(record)
        return len(records)

    def _states(self, endpoint: Endpoint, peer: int) -> Iterator[bytes]:
        for (plane, uplink), state in endpoint.ev_states(peer):
            yield self._state(peer, plane, uplink, state)

    def _state(self, peer: int, plane: int, uplink: int, state: EvState) -> bytes:
        return FORMS[RecordKind.EV_STATE].pack(
            ev=plane << 8 | uplink, dgid=self._gids.get(peer, _EVERY_PEER), state=_STATES[state], port=plane + 1
        )

    def _watch(self, asking: ControllerProgram, on: bool) -> int:
        self._endpoint()
        self._watching = [each for each in self._watching if each is not asking] + ([asking] if on else [])
        return 0

    def _probe(self, asking: ControllerProgram, gid: bytes, ev: int, token: int, now_ns: int) -> None:
        endpoint = self._endpoint()
        peers = self._peers(gid)
        if len(peers) != 1:
            raise RequestRefused(errno.EINVAL, "a probe goes to one host")
        with refusals(errno.ENOENT):
            request_id = endpoint.ask_path(peers[0], (ev >> 8, ev & 0xFF), now_ns)
        self._asked[peers[0], request_id] = asking, token, ev

    def _answered(self, event: PathAnswered) -> list[ControllerProgram]:
        asked = self._asked.pop((event.peer, event.request_id), None)
        if asked is None:
            return []
        asking, token, ev = asked
        asking.connection.tell(
            FORMS[RecordKind.PROBED].pack(ev=ev, token=token, rtt_ns=event.rtt_ns, port=event.plane + 1)
        )
        return [asking]
