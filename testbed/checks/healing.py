"""How endpoints recovered from each cycle of each fault: losses, left paths, return. Pure.

The content of recovery.json. An unknown value carries its reason and is never zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mrc_testbed.testbed.checks.amounts import MeasuredDuration, Times
from mrc_testbed.testbed.checks.counting import lost_by
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.goodput_series import (
    FollowedGoodput,
    Return,
    followed_goodput,
    since_injection,
    undisturbed,
    worst_return,
)
from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.recovery import Recovery, paths_out_at_end, recoveries
from mrc_testbed.testbed.checks.routes import NOT_HEALED, route_back
from mrc_testbed.testbed.checks.scope import about_flows
from mrc_testbed.testbed.checks.unmet import met_outages
from mrc_testbed.testbed.checks.windows import KnownBetween, NoData, Outage, aftermath_ns, outages
from mrc_testbed.testbed.evidence.events import PortChange
from mrc_testbed.testbed.expect import EVERYBODY

RECOVERY_FILE = "recovery.json"
NONE_RETIRED = "no EV was retired by it"
DOWN, UP = "DOWN", "UP"

Series = list[FollowedGoodput] | str
"""Goodput over time, or why it is unknown."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Data packets declared lost in the window of an occurrence, to the grain of the snapshots: in all and by QP that
    sent data. None: unknown, for the reason `why`."""

    packets: int | None = None
    qps: int | None = None
    qp_max: int | None = None
    qp_mean: float | None = None
    why: str = ""
    qp_at_most: int | None = None
    """What the worst QP lost at most, where snapshots leave it open."""

    def as_dict(self) -> dict[str, Any]:
        """For recovery.json."""
        figures = {"packets": self.packets, "qps": self.qps, "per_qp_max": self.qp_max, "per_qp_mean": self.qp_mean}
        return {**figures, **({"why": self.why} if self.why else {})}


@dataclass(frozen=True, slots=True)
class AfterHeal:
    """What returned, in times since the heal: goodput, the retired EVs, planes that hosts had left, routes of BGP."""

    goodput: MeasuredDuration
    restored: Times
    planes: Times
    routes: MeasuredDuration


@dataclass(frozen=True, slots=True)
class Healing:
    """One occurrence. Times count from its injection (at cold start: from the workload's start).

    `first_lost`: send times of packets whose loss retired an EV; `last_sent`: of the last ones on those EVs; `retired`:
    their recovery. `fell`: goodput was below 95 % of the clean median in its window, None: not known. `lowest`:
    the lowest goodput until it was back, as a share of the clean median. `told`: hosts that left a plane because a peer
    reported its port, each with its peer.
    """

    outage: Outage
    first_lost: Times
    last_sent: Times
    retired: Times
    goodput: MeasuredDuration
    fell: bool | None
    lowest: float | None
    losses: Losses
    told: Times
    after: AfterHeal


@derived
def healings(record: RunRecord) -> list[Healing]:
    """Every injected occurrence of every fault, in time order."""
    series = _goodput_series(record)
    return [_healing(record, outage, series) for outage in outages(record)]


def recovery_document(record: RunRecord) -> dict[str, Any]:
    """The content of recovery.json."""
    grain = "stretches of 100 ms" if about_flows(record, EVERYBODY) else "job steps"
    return {
        "base_rtt_ns": record.base_rtt_ns,
        "goodput_grain": grain,
        "cycles": [_as_dict(record, healing) for healing in healings(record)],
    }


def _goodput_series(record: RunRecord) -> Series:
    """Goodput over time, or why it is unknown."""
    try:
        return followed_goodput(record, EVERYBODY)
    except NoData as lacking:
        return str(lacking)


def _healing(record: RunRecord, outage: Outage, series: Series) -> Healing:
    since = max(outage.injected_ns, record.start_ns or 0)
    retired = [one for one in recoveries(record) if (one.fault, one.number) == (outage.fault, outage.number)]
    lost_ns = [one.change.first_lost_tx_ns for one in retired if one.change.first_lost_tx_ns]
    told = [change.t_ns - since for change in _port_changes(record, outage, DOWN) if change.t_ns >= since]
    back = _return(record, series, outage)
    return Healing(
        outage,
        Times([max(0, sent_ns - since) for sent_ns in lost_ns], NONE_RETIRED),
        Times([one.exposure_ns for one in retired], NONE_RETIRED),
        Times([one.duration_ns for one in retired], NONE_RETIRED),
        _back(back),
        back.fell if isinstance(back, Return) else None,
        back.lowest if isinstance(back, Return) else None,
        _losses(record, outage),
        Times(told, "no peer reported a port"),
        _after_heal(record, outage, retired, series),
    )


def _after_heal(record: RunRecord, outage: Outage, retired: Sequence[Recovery], series: Series) -> AfterHeal:
    healed = outage.healed_ns
    if healed is None:
        unknown = MeasuredDuration(None, NOT_HEALED)
        return AfterHeal(unknown, Times((), NOT_HEALED), Times((), NOT_HEALED), unknown)
    planes = [change.t_ns - healed for change in _port_changes(record, outage, UP)]
    return AfterHeal(
        _back(_return(record, series, outage, healed)),
        _restored(record, retired, healed),
        Times(planes, "no peer's port came back"),
        route_back(record, outage),
    )


def _return(record: RunRecord, series: Series, outage: Outage, healed_ns: int | None = None) -> Return | str:
    """Since the injection or the heal, of what fell in the window of the occurrence."""
    if isinstance(series, str):
        return series
    try:
        if outage not in met_outages(record):
            return "no packet met it"
        span = since_injection(record, outage) if healed_ns is None else undisturbed(record, healed_ns)
        return worst_return(series, span, outage.window(aftermath_ns(record)).end)
    except NoData as lacking:
        return str(lacking)


def _back(found: Return | str) -> MeasuredDuration:
    if isinstance(found, str):
        return MeasuredDuration(None, found)
    seen = f"not within 5 % of clean in the {found.known_ns / 1e9:.3g} s until the next fault or the end"
    return MeasuredDuration(found.after_ns, "" if found.after_ns is not None else seen)


def _restored(record: RunRecord, retired: Sequence[Recovery], healed_ns: int) -> Times:
    """The first return of each of these EVs after the heal; of one that came back before it, as on a detour, there is
    none."""
    left_ns = {one.change.path: one.change.t_ns for one in retired}
    paths, back_ns = left_ns.keys(), dict[tuple[str, str, int, int], int]()
    for change in record.ev_changes:
        if change.restored and change.path in paths and change.t_ns >= left_ns[change.path]:
            back_ns.setdefault(change.path, change.t_ns)
    first = {path: t_ns - healed_ns for path, t_ns in back_ns.items() if t_ns >= healed_ns}
    # One that came back and was lost again later is out for another reason.
    out = len((paths - back_ns.keys()) & paths_out_at_end(record))
    still_open = f"{out} of {len(paths)} EVs did not come back" if out else ""
    return Times(list(first.values()), "no EV came back after the heal" if retired else NONE_RETIRED, still_open)


def _port_changes(record: RunRecord, outage: Outage, state: str) -> list[PortChange]:
    """Port states reported to hosts because of this occurrence, during it or after its heal; each port once."""
    time = outage.window(aftermath_ns(record)) if state == DOWN else _after(record, outage)
    found: dict[tuple[str, str, int], PortChange] = {}
    for change in record.port_changes:
        concerns = any(link.startswith(f"{change.peer}:p{change.plane}-") for link in outage.links)
        if change.peer and concerns and change.state == state and time.holds(change.t_ns):
            found.setdefault((change.host, change.peer, change.plane), change)
    return list(found.values())


def _after(record: RunRecord, outage: Outage) -> Interval:
    """From the heal until the next occurrence of the same fault."""
    healed = outage.healed_ns or 0
    again = [one.invoked_ns for one in outages(record) if one.fault == outage.fault and one.invoked_ns > healed]
    return Interval(healed, min(again, default=float("inf")))


def _losses(record: RunRecord, outage: Outage) -> Losses:
    try:
        each = lost_by(record, outage)
    except KnownBetween as found:
        return Losses(why=str(found), qp_at_most=round(max(found.most)))
    except NoData as lacking:
        return Losses(why=str(lacking))
    return Losses(sum(each), len(each), max(each), sum(each) / len(each))


def _as_dict(record: RunRecord, one: Healing) -> dict[str, Any]:
    outage = one.outage
    return {
        **{"fault": outage.fault, "cycle": outage.number, "kind": outage.kind, "target": outage.target},
        "injected_ms": _since_start(record, outage.injected_ns),
        "healed_ms": None if outage.healed_ns is None else _since_start(record, outage.healed_ns),
        "first_loss": one.first_lost.figure("min").as_dict(record),
        "last_sent": one.last_sent.figure("max").as_dict(record),
        "evs_retired": one.retired.as_dict(record, p50="p50", p100="p100"),
        "goodput_back": one.goodput.as_dict(record),
        "goodput_fell": one.fell,
        "goodput_lowest": None if one.lowest is None else round(one.lowest, 4),
        "lost": one.losses.as_dict(),
        "peers_told": one.told.as_dict(record, p100="p100"),
        "after_heal": {
            "goodput_back": one.after.goodput.as_dict(record),
            "evs_restored": one.after.restored.as_dict(record, first="min", last="max"),
            "planes_back": one.after.planes.as_dict(record, p100="p100"),
            "route_back": one.after.routes.as_dict(record),
        },
    }


def _since_start(record: RunRecord, t_ns: int) -> float:
    return round((t_ns - (record.start_ns or 0)) / 1e6, 3)
