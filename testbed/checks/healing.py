"""How the run met each cycle of each fault: what was lost, who left which paths when, when all was back. Pure.

The content of recovery.json. Where something is not known there is the reason instead, never a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from testbed.checks.amounts import Figure, of_all
from testbed.checks.counting import lost_between
from testbed.checks.derived import derived
from testbed.checks.expect import Window
from testbed.checks.pulse import Beat, Return, pulse, returned, undisturbed
from testbed.checks.record import EvChange, PortChange, RunRecord
from testbed.checks.recovery import Recovery, recoveries
from testbed.checks.windows import Interval, NoData, Outage, aftermath_ns, outages
from testbed.scenario import FlowSet

RECOVERY_FILE = "recovery.json"
NONE_RETIRED = "no EV was retired by it"
NOT_HEALED = "it was not healed"
DOWN, UP = "DOWN", "UP"


@dataclass(frozen=True, slots=True)
class Losses:
    """Data packets taken for lost in the window of a cycle, to the grain of the snapshots: in all and by QP that sent
    data. None: not known, for the reason `why`."""

    packets: int | None = None
    qps: int | None = None
    qp_max: int | None = None
    qp_mean: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Healing:
    """One cycle. Times count from its injection being in place (at cold start: from the workload's start), those
    behind `after_heal` from its heal.

    `first_loss`: the first packet sent whose loss retired an EV; `last_sent`: the last one sent on such an EV. `told`:
    hosts that left a plane because a peer told them of its port, each with its peer; `planes_back` likewise.
    `lowest`: the lowest goodput until it was back, as a share of the clean median.
    """

    outage: Outage
    first_loss: Figure
    last_sent: Figure
    evs_retired: int
    retired_p50: Figure
    retired_p100: Figure
    goodput_back: Figure
    lowest: float | None
    losses: Losses
    told: int
    told_p100: Figure
    goodput_back_after_heal: Figure
    evs_restored: int
    restored_first: Figure
    restored_last: Figure
    planes_back: int
    planes_back_p100: Figure


@derived
def healings(record: RunRecord) -> list[Healing]:
    """Every cycle of every fault that was injected, in order of time."""
    beats = _beats(record)
    return [_healing(record, outage, beats) for outage in outages(record)]


def recovery_document(record: RunRecord) -> dict[str, Any]:
    """The content of recovery.json."""
    grain = "stretches of 100 ms" if isinstance(record.scenario.job, FlowSet) else "job steps"
    return {
        "base_rtt_ns": record.base_rtt_ns,
        "goodput_grain": grain,
        "cycles": [_as_dict(record, healing) for healing in healings(record)],
    }


def _beats(record: RunRecord) -> list[Beat] | str:
    """Goodput over time, or why it is not known."""
    try:
        return pulse(record, Window())
    except NoData as lacking:
        return str(lacking)


def _healing(record: RunRecord, outage: Outage, beats: list[Beat] | str) -> Healing:
    since = max(outage.injected_ns, record.start_ns or 0)
    retired = [one for one in recoveries(record) if (one.fault, one.cycle) == (outage.fault, outage.cycle)]
    lost_ns = [one.change.first_lost_tx_ns for one in retired if one.change.first_lost_tx_ns]
    back = _return(record, beats, since)
    told = [change.t_ns - since for change in _port_changes(record, outage, DOWN) if change.t_ns >= since]
    took = [one.duration_ns for one in retired]
    healed = outage.healed_ns
    restored = [] if healed is None else _restored(record, retired, healed)
    planes = [] if healed is None else [change.t_ns - healed for change in _port_changes(record, outage, UP)]
    after = Figure(None, NOT_HEALED) if healed is None else _back(_return(record, beats, healed))
    never = NOT_HEALED if healed is None else "no EV came back after the heal" if retired else NONE_RETIRED
    return Healing(
        outage,
        of_all([max(0, sent - since) for sent in lost_ns], "min", NONE_RETIRED),
        of_all([one.exposure_ns for one in retired], "max", NONE_RETIRED),
        len(retired),
        of_all(took, "p50", NONE_RETIRED),
        of_all(took, "p100", NONE_RETIRED),
        _back(back),
        back.lowest if isinstance(back, Return) else None,
        _losses(record, outage),
        len(told),
        of_all(told, "p100", "no peer told of a port"),
        after,
        len(restored),
        of_all(restored, "min", never),
        of_all(restored, "max", never),
        len(planes),
        of_all(planes, "p100", NOT_HEALED if healed is None else "no peer's port came back"),
    )


def _return(record: RunRecord, beats: list[Beat] | str, since_ns: float) -> Return | str:
    if isinstance(beats, str):
        return beats
    try:
        return returned(beats, undisturbed(record, since_ns))
    except NoData as lacking:
        return str(lacking)


def _back(found: Return | str) -> Figure:
    if isinstance(found, str):
        return Figure(None, found)
    seen = f"not within 5 % of clean in the {found.known_ns / 1e9:.3g} s until the next fault or the end"
    return Figure(found.after_ns, "" if found.after_ns is not None else seen)


def _restored(record: RunRecord, retired: Sequence[Recovery], healed_ns: int) -> list[int]:
    """When each of these EVs came back first, after the heal."""
    paths = {_path(one.change) for one in retired}
    first: dict[tuple[str, str, int, int], int] = {}
    for change in record.ev_changes:
        if change.restored and change.t_ns >= healed_ns and _path(change) in paths:
            first.setdefault(_path(change), change.t_ns - healed_ns)
    return list(first.values())


def _path(change: EvChange) -> tuple[str, str, int, int]:
    return change.host, change.peer, change.plane, change.uplink


def _port_changes(record: RunRecord, outage: Outage, state: str) -> list[PortChange]:
    """What hosts were told of ports that this cycle took down, while it was on, or after its heal; each port once."""
    time = outage.window(aftermath_ns(record)) if state == DOWN else _after(record, outage)
    found: dict[tuple[str, str, int], PortChange] = {}
    for change in record.port_changes:
        concerns = any(link.startswith(f"{change.peer}:p{change.plane}-") for link in outage.links)
        if change.peer and concerns and change.state == state and time.holds(change.t_ns):
            found.setdefault((change.host, change.peer, change.plane), change)
    return list(found.values())


def _after(record: RunRecord, outage: Outage) -> Interval:
    """From the heal until the same fault comes again."""
    healed = outage.healed_ns or 0
    again = [one.invoked_ns for one in outages(record) if one.fault == outage.fault and one.invoked_ns > healed]
    return Interval(healed, min(again, default=float("inf")))


def _losses(record: RunRecord, outage: Outage) -> Losses:
    try:
        each = lost_between(record, outage.window(aftermath_ns(record)))
    except NoData as lacking:
        return Losses(why=str(lacking))
    return Losses(sum(each), len(each), max(each), sum(each) / len(each))


def _as_dict(record: RunRecord, one: Healing) -> dict[str, Any]:
    start = record.start_ns or 0
    outage, losses = one.outage, one.losses
    healed = None if outage.healed_ns is None else round((outage.healed_ns - start) / 1e6, 3)
    lost = {"packets": losses.packets, "qps": losses.qps, "per_qp_max": losses.qp_max, "per_qp_mean": losses.qp_mean}

    def told(figure: Figure) -> dict[str, Any]:
        return figure.as_dict(record)

    return {
        **{"fault": outage.fault, "cycle": outage.cycle, "kind": outage.kind, "target": outage.target},
        "injected_ms": round((outage.injected_ns - start) / 1e6, 3),
        "healed_ms": healed,
        "first_loss": told(one.first_loss),
        "last_sent": told(one.last_sent),
        "evs_retired": {"number": one.evs_retired, "p50": told(one.retired_p50), "p100": told(one.retired_p100)},
        "goodput_back": told(one.goodput_back),
        "goodput_lowest": None if one.lowest is None else round(one.lowest, 4),
        "lost": {**lost, **({"why": losses.why} if losses.why else {})},
        "peers_told": {"number": one.told, "p100": told(one.told_p100)},
        "after_heal": {
            "goodput_back": told(one.goodput_back_after_heal),
            "evs_restored": {
                **{"number": one.evs_restored, "first": told(one.restored_first), "last": told(one.restored_last)}
            },
            "planes_back": {"number": one.planes_back, "p100": told(one.planes_back_p100)},
        },
    }
