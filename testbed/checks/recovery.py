"""How long senders took to leave paths that a fault broke, and how long they kept using them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import Outage, aftermath_ns, outages
from mrc_testbed.testbed.evidence.events import ASSUMED_BAD, EvChange
from mrc_testbed.topos.usid import PathId


@dataclass(frozen=True, slots=True)
class Recovery:
    """One EV retired because of a fault: the time that took, and how long data were sent on it in vain."""

    fault: str
    number: int
    change: EvChange
    duration_ns: int
    exposure_ns: int


@derived
def recoveries(record: RunRecord) -> list[Recovery]:
    """Every retired EV whose path crosses a link that lost packets then; for a fault of one sender, its EVs only.

    The clock starts when the first lost packet of the EV was sent, or when the fault was in place, whichever is later.
    A retirement counts until the aftermath of the heal is over, and later if the lost packet was sent during the fault;
    others have another cause. The exposure lasts from the injection, or from the workload's start if that was later
    (cold start), until the last data packet left on the EV; 0 if none did.
    """
    start_ns = record.start_ns or 0
    known = outages(record)
    after = aftermath_ns(record)
    found = []
    for change in record.ev_changes:
        if change.retired:
            links = set(path_links(record, change))
            cause = _cause(change, (outage for outage in known if _concerns(outage, change, links)), after)
            if cause is not None:
                since = max(change.first_lost_tx_ns, cause.injected_ns)
                exposed = change.last_tx_ns - max(cause.injected_ns, start_ns)
                took = change.t_ns - since
                found.append(Recovery(cause.fault, cause.number, change, max(0, took), max(0, exposed)))
    return found


@derived
def paths_out_at_end(record: RunRecord) -> set[tuple[str, str, int, int]]:
    """Paths whose last known state is ASSUMED_BAD, as `EvChange.path` names them."""
    last = {change.path: change.new for change in record.ev_changes}
    return {path for path, state in last.items() if state == ASSUMED_BAD}


def path_links(record: RunRecord, change: EvChange) -> list[str]:
    """Names of the links that an EV's packets may cross; none if the event names hosts outside the plan."""
    hosts = record.plan.host_by_name
    if change.host not in hosts or change.peer not in hosts:
        return []
    ends, path = (hosts[change.host], hosts[change.peer]), PathId(change.plane, change.uplink)
    return record.scenario.transport.may_cross(record.plan, *ends, path)


def _concerns(outage: Outage, change: EvChange, links: set[str]) -> bool:
    about = outage.occurrence.parameters
    ends = about.sender in ("", change.host) and about.peer in ("", change.peer)
    return ends and bool(links.intersection(outage.links))


def _cause(change: EvChange, known: Iterable[Outage], after_ns: int) -> Outage | None:
    """The latest occurrence that was active when the EV was retired, or when the packet was sent whose loss retired
    it."""
    causes = [outage for outage in known if _explains(outage, change, after_ns)]
    return max(causes, key=lambda outage: outage.injected_ns, default=None)


def _explains(outage: Outage, change: EvChange, after_ns: int) -> bool:
    if change.t_ns < outage.invoked_ns:
        return False
    return outage.window(after_ns).holds(change.t_ns) or outage.window(0).holds(change.first_lost_tx_ns)
