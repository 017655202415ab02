"""Events of an endpoint for its application, read with `Endpoint.poll_event`."""

from __future__ import annotations

from dataclasses import dataclass

from mrc_testbed.hosts.common.events import QpEvent
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.mrc.portstate import PortState


@dataclass(slots=True)
class EvChanged:
    """One path to one peer changed state.

    `trigger` names the cause (a `LossReason` or `EvInput` value). `first_lost_tx_ns` is when the packet whose loss
    caused it was sent, `last_tx_ns` when the last data packet was sent on this EV; both 0 where they mean nothing.
    """

    peer: int
    plane: int
    uplink: int
    old: EvState
    new: EvState
    trigger: str
    first_lost_tx_ns: int
    last_tx_ns: int


@dataclass(slots=True)
class PlaneChanged:
    """A plane has lost its last EV to this peer, or a port at either end (`usable` False), or has both again (True)."""

    peer: int
    plane: int
    usable: bool


@dataclass(slots=True)
class PortChanged:
    """A NIC port of a peer, or of this host (`peer` None), changed state."""

    peer: int | None
    plane: int
    state: PortState


@dataclass(slots=True)
class FloorHeld:
    """An EV lost a packet and stays in use all the same, because its plane has only `in_use` EVs left that may carry
    data. Said once until the plane has more again; `counters()["floor_held"]` counts every time."""

    peer: int
    plane: int
    uplink: int
    in_use: int
    trigger: str


@dataclass(slots=True)
class PathAnswered:
    """The EV probe that a controller asked for has come back. `request_id`: as `Endpoint.ask_path` returned it."""

    peer: int
    plane: int
    request_id: int
    rtt_ns: int


Event = PathAnswered | QpEvent | EvChanged | PlaneChanged | FloorHeld | PortChanged
