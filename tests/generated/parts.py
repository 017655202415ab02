"""The lists of a scenario: workload, faults, captures, expectations."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from mrc_testbed.testbed.expect.metrics import known_metrics
from mrc_testbed.testbed.expect.vocabulary import OPERATORS, UNITS, By, Dimension, Metric, Windows
from mrc_testbed.testbed.scenario.faults.chaos import Chaos, parts
from mrc_testbed.testbed.scenario.faults.classes import CLASSES, allowed
from mrc_testbed.testbed.scenario.faults.kinds.losses import LinkRate
from mrc_testbed.testbed.scenario.faults.names import Target
from mrc_testbed.testbed.scenario.faults.registry import KINDS
from mrc_testbed.testbed.scenario.model.arrival_models import ARRIVAL_KINDS, PoissonEntry
from mrc_testbed.testbed.scenario.model.captures import Capture
from mrc_testbed.testbed.scenario.model.flow_models import FLOW_KINDS, Between, Incast, Latency
from mrc_testbed.testbed.scenario.model.graph_model import GraphEntry
from mrc_testbed.testbed.scenario.model.step_models import STEP_KINDS, Alone, Train
from tests.generated.keys import mapping, pair
from tests.generated.sketch import Sketch

# --- workload

_SHORT_FORM = ("compute", "allreduce", "qps")
_LONG_FORM = ("step", "parallel")


def workload(sketch: Sketch) -> list[dict[str, Any]]:
    """Flows, jobs of steps, or both; each job has hosts of its own."""
    flows = sketch.dice.randint(1, 3) if sketch.has_flows else 0
    jobs = 0 if flows and sketch.often(0.6) else sketch.dice.randint(1, 2)
    found = [entry for _ in range(jobs) if (entry := _job(sketch))]
    found += [entry for _ in range(flows) if (entry := _flow(sketch))]
    sketch.dice.shuffle(found)
    return found


def _job(sketch: Sketch) -> dict[str, Any] | None:
    if len(sketch.free_hosts) < 2:
        return None
    kind = sketch.one([*STEP_KINDS, Train.kind, GraphEntry.kind])
    sketch.axes = {}
    sketch.ranks, sketch.rounds = len(sketch.free_hosts), sketch.dice.randint(1, 4)
    if kind == GraphEntry.kind:
        always, never = _stretched(sketch)
        return {kind: mapping(sketch, kind, GraphEntry, ("hosts", *always), never)}
    model = STEP_KINDS[kind]
    if issubclass(model, Alone):
        return {kind: mapping(sketch, "job", model, always=("hosts",))}
    short = sketch.often(0.4)
    always, never = (_SHORT_FORM, _LONG_FORM) if short else (("step",), _SHORT_FORM)
    return {kind: mapping(sketch, "job", Train, ("hosts", *always), never)}


def _flow(sketch: Sketch) -> dict[str, Any] | None:
    """A permutation or an incast first of all, because pairs are used up."""
    kind = sketch.one([*FLOW_KINDS, *ARRIVAL_KINDS])
    if kind in ARRIVAL_KINDS:
        return _arriving(sketch, kind)
    model = FLOW_KINDS[kind]
    ends = _ends(sketch, model)
    if ends is None:
        return None
    section = kind if kind == Latency.kind else "flow"
    length = sketch.one([key for key in ("for", "bytes", "iterations") if _has(model, key)])
    others = {"for", "bytes", "iterations", *ENDS} - {length}
    # A warm-up and a start are in the time that a flow of `bytes` would need.
    never = {*others, "warm_up"} if length == "bytes" else others
    found = {**ends, **mapping(sketch, section, model, always=(length,), never=never)}
    if found.get("bidirectional") and "from" in found:
        sketch.pairs.add((found["to"], found["from"]))
    return {kind: found}


def _arriving(sketch: Sketch, kind: str) -> dict[str, Any] | None:
    """Flows of a file between some pairs, or at random among some hosts between which nothing flows yet. Each with a
    name, as two of a kind must have."""
    model = ARRIVAL_KINDS[kind]
    if issubclass(model, PoissonEntry):
        busy = {end for one in sketch.pairs for end in one}
        free = [host for host in sketch.hosts if host not in busy]
        if len(free) < 2:
            return None
        sketch.senders = free if sketch.often(0.5) else sketch.some(free, 2)
        sketch.pairs |= set(permutations(sketch.senders, 2))
        return {kind: mapping(sketch, kind, model, ("hosts", "name"))}
    before = set(sketch.pairs)
    for _ in range(sketch.dice.randint(1, 4)):
        pair(sketch)
    sketch.trace_pairs = sorted(sketch.pairs - before)
    always, never = _stretched(sketch)
    return {kind: mapping(sketch, kind, model, ("name", *always), never)} if sketch.trace_pairs else None


def _stretched(sketch: Sketch) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Decide about the key `stretch` before the file is drawn: always there, or never."""
    sketch.stretch = sketch.one([1, 1, 8, 0.5])
    return ((), ("stretch",)) if sketch.stretch == 1 else (("stretch",), ())


ENDS = ("from", "to", "pairs")


def _has(model: type[Any], key: str) -> bool:
    return any((field.alias or name) == key for name, field in model.model_fields.items())


def _ends(sketch: Sketch, model: type[Any]) -> dict[str, Any] | None:
    if issubclass(model, Incast):
        target = sketch.one(sketch.hosts)
        senders = [host for host in sketch.hosts if host != target and pair(sketch, host, target)]
        return {"to": target, "from": senders if len(senders) > 1 else senders[0]} if senders else None
    if not issubclass(model, Between):  # a permutation: between all
        if sketch.pairs:
            return None
        sketch.pairs |= {(one, other) for one in sketch.hosts for other in sketch.hosts}
        return {}
    chosen = [one for _ in range(sketch.dice.randint(1, 3)) if (one := pair(sketch))]
    if len(chosen) != 1 or sketch.often(0.3):
        return {"pairs": chosen} if chosen else None
    source, _, to = chosen[0].partition("->")
    return {"from": source, "to": to}


# --- faults


def faults(sketch: Sketch) -> list[dict[str, Any]]:
    """Up to four of any kinds, chaos among them."""
    return [_fault(sketch) for _ in range(sketch.one([0, 1, 1, 2, 3, 4]))]


def _fault(sketch: Sketch) -> dict[str, Any]:
    kind = sketch.one([*KINDS, Chaos.kind, Chaos.kind])
    if kind == Chaos.kind:
        named = mapping(sketch, "fault", Chaos, always=("name",), never=(kind,))
        found = {**named, kind: _chaos(sketch)}
    else:
        named = mapping(sketch, "fault", KINDS[kind], always=("name",), never=(kind,))
        found = {**named, kind: _targets(sketch, KINDS[kind].target)}
        _lead_by_neighbours(sketch, kind, found)
    sketch.faults.append(found["name"])
    return found


def _lead_by_neighbours(sketch: Sketch, kind: str, found: dict[str, Any]) -> None:
    """Where two links are named that must end at one switch, mostly let them."""
    link = sketch.plan.link_by_name.get(found[kind]) if isinstance(found[kind], str) else None
    if link is None or not sketch.often(0.8):
        return
    for key in {"by", "with"} & found.keys():
        switch = link.far.node if link.is_host_link or found.get("direction") == "down" else link.near.node
        found[key] = sketch.one(sketch.plan.links_of(switch)).name


def _chaos(sketch: Sketch) -> dict[str, Any]:
    known = parts()
    return {kind: _chaos_part(sketch, known[kind]) for kind in sketch.dice.sample(list(known), sketch.one([1, 2, 3]))}


def _chaos_part(sketch: Sketch, part: type[Any]) -> Any:
    needed = {LinkRate.kind: "rate", "ev-loss": "from", "host-slow": "per_packet"}.get(part.model.kind, "times")
    found = mapping(sketch, "fault", part, always=(needed,), never=("of",))
    if sketch.often(0.4):
        found["of"] = _targets(sketch, part.model.target, several=False)
    return found["times"] if list(found) == ["times"] else found


def _targets(sketch: Sketch, target: Target, several: bool = True) -> Any:
    """Names, a pattern, a class, or a draw of these."""
    of_class = sketch.one(allowed(target, sketch.plan))
    names = CLASSES[of_class](sketch.plan)
    if not names or sketch.often(0.15):
        return of_class
    if sketch.often(0.3):
        return f"any {sketch.dice.randint(1, min(3, len(names)))} of {of_class}"
    if sketch.often(0.15):
        return f"{sketch.one(names)[:-1]}*"
    return sketch.dice.sample(names, min(2, len(names))) if several and sketch.often(0.3) else sketch.one(names)


def captures(sketch: Sketch) -> list[dict[str, Any]]:
    """Around faults, or all the time."""
    if not sketch.often(0.2):
        return []
    around = sketch.one(["run", "all", *sketch.faults])
    entry = mapping(sketch, "capture", Capture, never=("links", "around"))
    return [{"links": _targets(sketch, Target.LINK), "around": around, **entry}]


# --- expectations


def expectations(sketch: Sketch) -> list[Any]:
    """About any metrics, with any bound; whether they hold is not the point."""
    return [_line(sketch) for _ in range(sketch.dice.randint(0, 6))]


def _line(sketch: Sketch) -> Any:
    text = _expectation(sketch, sketch.one(list(known_metrics().values())))
    form = sketch.dice.random()
    if form < 0.1:
        return {sketch.transport: text}
    return {"warning": text} if form < 0.5 else text


def _expectation(sketch: Sketch, metric: Metric) -> str:
    figure = f"{metric.name}.{sketch.one(metric.stats)}" if metric.stats else metric.name
    whom = f" of {sketch.one(_members(sketch, metric))}" if metric.by and sketch.often(0.4) else ""
    window = "" if metric.windows is Windows.RUN else sketch.one(_windows(sketch))
    return f"{figure}{whom} {sketch.one(OPERATORS)} {_bound(sketch, metric)} {window}".strip()


def _members(sketch: Sketch, metric: Metric) -> list[str]:
    host, pairs = sketch.one(sketch.hosts), ["->".join(one) for one in sorted(sketch.pairs)]
    found = ["each host", host] if By.HOST in metric.by else []
    found += [f"{host}->{sketch.one(sketch.hosts)}", *pairs[:1]] if By.PAIR in metric.by else []
    found += ["each flow", *pairs[:2]] if By.FLOW in metric.by else []
    found += ["each job", "job-1"] if By.JOB in metric.by else []
    return [*found, *(name for name in sketch.names if not name.startswith("fault"))]


def _windows(sketch: Sketch) -> list[str]:
    found = ["", "", "clean", "during faults", "from 100ms to 600ms", "from 200ms for 300ms"]
    for name in sketch.faults[:2]:
        found += [f"during {name}", f"before {name}", f"after {name} heals", f"after {name} heals + 2 rtt for 100ms"]
        found.append(f"from {name} - 10ms to {name} heals + 1 rtt")
    return found


def _bound(sketch: Sketch, metric: Metric) -> str:
    if metric.has_clean and sketch.often(0.4):
        stat = f".{sketch.one(metric.stats)}" if metric.stats and sketch.often(0.5) else ""
        return f"{sketch.one([0.5, 1, 1.5, 20])} x clean{stat}" if sketch.often(0.5) else "90% of clean"
    units = [unit for unit in UNITS[metric.dimension] if unit or metric.dimension is Dimension.COUNT]
    return f"{sketch.one([0, 1, 3, 100, 0.25])} {sketch.one(units)}".strip()
