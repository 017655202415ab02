"""Where an incident happens: a fabric and a workload, drawn without a look at what will break. Pure.

So neither says anything of it, and the share of cases without an incident is the same in each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mrc_testbed.testbed.incidents.dice import Dice
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.load.effective import plain_text

LASTS_S = 16.0
"""How long an observer sees of a case, in run time."""
SPARE = 1.25
"""By how much longer the workload takes, by estimates; a real one is up to a tenth shorter."""
BUSY = 0.4
"""The chance of a neighbour's incast beside the workload: busy, and no fault."""
_FABRICS: Sequence[Mapping[str, Any]] = (
    {"planes": 4, "t0_groups": 2, "t1": 4, "hosts_per_t0": 4},
    {"planes": 4, "t0_groups": 2, "t1": 2, "hosts_per_t0": 2},
    {"planes": 2, "t0_groups": 2, "t1": 4, "hosts_per_t0": 4},
    {"planes": 2, "t0_groups": 3, "t1": 4, "hosts_per_t0": 2},
    {"planes": 2, "t0_groups": 2, "t1": 8, "hosts_per_t0": 3},
    {"planes": 2, "family": {"clos3": {"pods": 2, "t0": 2, "t1": 2, "t2": 4, "hosts_per_t0": 2}}},
    {"planes": 2, "family": {"rail": {"rails": 2, "nodes": 4, "spine": 2}}},
)
"""At most 8 hosts, and at least two of everything, so that each kind of incident fits each of them."""
_RTTS = ("20ms", "40ms")
_MESSAGE = "64KiB"
_ANY = [{"allreduce": {"size": "64KiB", "iterations": 1}}]


class CaseSetting(NamedTuple):
    """`data`: a scenario without faults. `busy`: a neighbour's incast is part of it. `scenario`: the same, loaded."""

    data: Mapping[str, Any]
    busy: bool
    scenario: Scenario


def draw_setting(dice: Dice, lasts_s: float = LASTS_S, busy: bool | None = None) -> CaseSetting:
    """The setting of a draw; `busy`: as said, or None: as drawn."""
    drawn = dice.of("busy").often(BUSY)
    with_incast = drawn if busy is None else busy
    head = {
        "name": "case",
        "seed": dice.of("seed").whole(1, (1 << 53) - 1),
        "world": "virtual",
        "fabric": {**dice.of("fabric").one(_FABRICS), "rtt": dice.of("rtt").one(_RTTS)},
        "endpoint": {"icrc": True},
        "mapper": {"period": "10 rtt"},
    }
    hosts = [host.name for host in load_scenario_text(plain_text({**head, "workload": _ANY})).plan().hosts]
    jobs = [_job(dice.of("job"), head, hosts, lasts_s)]
    if with_incast:
        jobs.append(_incast(dice.of("incast"), hosts, jobs[0], lasts_s))
    data = {**head, "workload": jobs}
    scenario = load_scenario_text(plain_text(data))
    data["time_limit"] = f"{round(scenario.estimate_ns / 1e6) + 1}ms"
    return CaseSetting(data, with_incast, scenario)


def _job(dice: Dice, head: Mapping[str, Any], hosts: list[str], lasts_s: float) -> dict[str, Any]:
    """Training, or flows between half of the hosts."""
    kind = dice.one(["allreduce", "allreduce", "all-to-all", "write"])
    if kind == "write":
        half = len(hosts) // 2
        pairs = [f"{source}->{target}" for source, target in zip(hosts[:half], hosts[half:], strict=False)]
        return {"write": {"pairs": pairs, "message": _MESSAGE, "for": f"{lasts_s * SPARE:g}s"}}
    # Neighbours of a ring are below one T0, or below two that change at each hop.
    order = hosts if dice.often(0.5) else [host for pair in zip(*_halves(hosts), strict=False) for host in pair]
    size = dice.one(["256KiB", "512KiB", "1MiB"])
    step = [{"compute": f"{dice.whole(50, 200)}ms"}, {kind: {"size": size}}]
    job = {"hosts": order if len(order) == len(hosts) else hosts, "step": step}
    alone = load_scenario_text(plain_text({**head, "workload": [{"train": {**job, "steps": 10}}]}))
    return {"train": {**job, "steps": max(round(lasts_s * SPARE * 10e9 / alone.estimate_ns), 2)}}


def _halves(hosts: list[str]) -> tuple[list[str], list[str]]:
    half = len(hosts) // 2
    return hosts[:half], hosts[half:]


def _incast(dice: Dice, hosts: list[str], job: Mapping[str, Any], lasts_s: float) -> dict[str, Any]:
    """Two to four to one, for most of the time, between hosts that no flow of `job` is between."""
    taken = {frozenset(pair.split("->")) for pair in job.get("write", {}).get("pairs", ())}
    target = dice.one(hosts)
    free = [host for host in hosts if host != target and frozenset((host, target)) not in taken]
    senders = dice.some(free, min(dice.whole(2, 4), len(free)))
    begin_s, length_s = lasts_s * dice.within(0.05, 0.3), lasts_s * dice.within(0.5, 0.8)
    when = {"start": f"{round(begin_s * 1000)}ms", "for": f"{round(length_s * 1000)}ms"}
    return {"incast": {"to": target, "from": senders, "message": _MESSAGE, **when}}
