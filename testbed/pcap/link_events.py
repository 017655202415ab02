"""Events on and around one link, in words: faults, EVs whose path crosses it, its NIC port, QPs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from mrc_testbed.testbed.checks.record import HistoryLine, RunRecord
from mrc_testbed.testbed.checks.recovery import path_links
from mrc_testbed.testbed.evidence.events import ASSUMED_BAD, EvChange, PortChange
from mrc_testbed.topos.nodes import Link

_DONE = {"inject": "begins", "heal": "has healed"}


class LinkEvent(NamedTuple):
    """At `t_ns` of CLOCK_MONOTONIC."""

    t_ns: int
    text: str


def link_events(record: RunRecord, link: Link) -> list[LinkEvent]:
    """All events in time order. Faults and QP errors are those of the whole run; ECN's SKIP is left out."""
    found = [*_workload(record), *_faults(record, link), *_evs(record, link), *_ports(record, link), *_errors(record)]
    return sorted(found, key=lambda each: each.t_ns)


def _workload(record: RunRecord) -> Iterator[LinkEvent]:
    if record.start_ns is not None:
        yield LinkEvent(record.start_ns, "the workload begins")
    if record.workload_done:
        yield LinkEvent(record.end_ns, "the workload is done")


def _faults(record: RunRecord, link: Link) -> Iterator[LinkEvent]:
    titles = {occurrence.key: occurrence.title for occurrence in record.occurrences}
    counts = Counter(occurrence.fault for occurrence in record.occurrences)
    for line in record.history:
        if line.type == "ok" and line.op in _DONE:
            title = titles.get((line.fault, line.number), f"{line.kind} {line.target}")
            here = " (this link)" if link.name in line.links else ""
            which = _number(line, counts[line.fault])
            yield LinkEvent(line.t_ns, f"fault {line.fault}{which} {_DONE[line.op]}: {title}{here}")


def _number(line: HistoryLine, occurrences: int) -> str:
    """Number of the occurrence if there are several, counted from 1 for people."""
    return f", cycle {line.number + 1} of {occurrences}," if occurrences > 1 else ""


def _evs(record: RunRecord, link: Link) -> Iterator[LinkEvent]:
    for change in record.ev_changes:
        words = _change(change)
        if words and link.name in path_links(record, change):
            name = f"EV {change.plane}/{change.uplink} to {change.peer}"
            yield LinkEvent(change.t_ns, f"{name} {words}")


def _change(change: EvChange) -> str:
    if change.retired:
        return f"retired by {change.host}{_losses(change)}"
    if change.restored:
        return f"back in use at {change.host}"
    if change.new == "DENIED":
        return f"denied at {change.host}"
    return (
        f"allowed again at {change.host}, on probation" if (change.old, change.new) == ("DENIED", ASSUMED_BAD) else ""
    )


def _losses(change: EvChange) -> str:
    sent = (("its first lost packet", change.first_lost_tx_ns), ("the last data on it", change.last_tx_ns))
    told = [f"{what} left {_about(change.t_ns - at_ns)} before" for what, at_ns in sent if at_ns]
    return f": {', '.join(told)}" if told else ""


def _about(duration_ns: int) -> str:
    """To a tenth of a millisecond."""
    return f"{duration_ns / 1e6:.1f} ms"


def _ports(record: RunRecord, link: Link) -> Iterator[LinkEvent]:
    """Of a NIC link: the state of the port as its host and its peers see it."""
    if not link.is_host_link:
        return
    owner = link.near.node
    for change in record.port_changes:
        if change.plane == link.plane and owner in (change.host if not change.peer else "", change.peer):
            yield LinkEvent(change.t_ns, _port(change, owner))


def _port(change: PortChange, owner: str) -> str:
    if change.peer:
        return f"{change.host} considers the port of {owner} in plane {change.plane} {change.state}"
    return f"{owner} sees its own port in plane {change.plane} {change.state}"


def _errors(record: RunRecord) -> Iterator[LinkEvent]:
    for error in record.qp_errors:
        yield LinkEvent(error.t_ns, f"a QP of {error.host} to {error.peer or 'a peer'} FAILED: {error.reason}")
