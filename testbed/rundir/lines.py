"""The lines of history.jsonl, events.jsonl and map.jsonl: their keys are written here, and nowhere else in the code.

The recorder takes these keys alone, and the pandas frames have them as columns. A line has those that it needs; what
the type of a column says with `?` may be missing, a text is empty then. docs/results.md says what they mean.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypedDict

from mrc_testbed.testbed.faults.schedule import FaultStep
from mrc_testbed.testbed.mapper.mapper import MapChange
from mrc_testbed.testbed.rundir.tables import ClockNs, Table, columns_of


class Party(StrEnum):
    """Who is to look for the fault: what a check or figure tells of, where it does not hold or is not known.

    NETWORK: the network or the transport. PROGRAM: a program or plugin of the user. SCENARIO: what it asks cannot be
    known of such a run. MACHINE: this machine, or the testbed on it.
    """

    NETWORK = "network"
    PROGRAM = "program"
    SCENARIO = "scenario"
    MACHINE = "machine"


HistoryFields = TypedDict(
    "HistoryFields",
    {
        "i": int,
        "t_ns": ClockNs,
        "op": str,
        "type": str,
        "phase": str,
        "fault": str,
        "kind": str,
        "target": str,
        "cycle": int | None,
        "links": str | list[str],
        "hosts": str | list[str],
        "how": str,
        "from": str,
        "to": str,
        "by": str,
        "error": str,
        "late": bool | None,
        "machine": bool | None,
        "who": str,
        "fix": str,
    },
    total=False,
)
"""A line of history.jsonl. A list of names is a text in the frame."""
Event = TypedDict(
    "Event",
    {
        "t_ns": ClockNs,
        "host": str,
        "event": str,
        "peer": str,
        "plane": int | None,
        "uplink": int | None,
        "from": str,
        "to": str,
        "trigger": str,
        "first_lost_tx_ns": Annotated[int | None, "clock ns"],
        "last_tx_ns": Annotated[int | None, "clock ns"],
        "usable": bool | None,
        "state": str,
        "carrier": int | None,
        "in_use": Annotated[int | None, "EVs"],
        "qp": str,
        "reason": str,
        "begin_ns": Annotated[int | None, "clock ns"],
        "end_ns": Annotated[int | None, "clock ns"],
    },
    total=False,
)
"""A line of events.jsonl, but for snapshots and steps."""


class MapFields(TypedDict, total=False):
    t_ns: ClockNs
    op: str
    component: str
    direction: str
    loss: Annotated[float, "share of packets"]
    gain: Annotated[float, "nats"]
    since_ns: Annotated[int | None, "clock ns"]
    last_ns: Annotated[int | None, "clock ns"]
    alike: str | list[str]
    sure: float
    evidence: str | list[str]
    hosts: str | list[str]
    why: str


"""A line of map.jsonl. A list of names is a text in the frame."""


class SnapshotFields(TypedDict):
    """What every line of a snapshot begins with; the frame has a column a counter behind it."""

    t_ns: ClockNs
    host: str


HISTORY = Table("history", "history.jsonl", columns_of(HistoryFields))
MAP = Table("map", "map.jsonl", columns_of(MapFields))
EVENTS = Table("events", "events.jsonl", columns_of(Event))
SNAPSHOTS = Table("snapshots", "events.jsonl", columns_of(SnapshotFields), open_ended=True)


def map_fields(change: MapChange) -> MapFields:
    """What the mapper says."""
    found: MapFields = {"t_ns": change.t_ns, "op": change.action.value, "component": change.name}
    if change.direction:
        found["direction"] = change.direction
    return {
        **found,
        "loss": round(change.loss, 6),
        "gain": round(change.gain, 3),
        "since_ns": change.since_ns,
        "last_ns": change.last_ns,
        "alike": list(change.alike),
        "sure": round(change.sure, 6),
        "evidence": [witness.value for witness in change.witnesses],
        "hosts": list(change.seers),
    }


def step_fields(step: FaultStep) -> HistoryFields:
    """What the history says of a fault that is injected or healed."""
    one, how = step.occurrence, step.occurrence.parameters
    found: HistoryFields = {
        "op": step.action.value,
        "fault": one.fault,
        "kind": one.kind,
        "target": ",".join(one.targets),
        "cycle": one.number,
        "links": list(one.links),
    }
    if one.hosts:
        found["hosts"] = list(one.hosts)
    if how.words:
        found["how"] = how.words
    if how.sender:
        found["from"] = how.sender
    if how.peer:
        found["to"] = how.peer
    return found
