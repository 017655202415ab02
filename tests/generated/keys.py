"""A way to draw a value for every key of the language, by section and key.

Which keys there are is not said here: the models are walked (`mapping`), and a key without an entry is a KeyError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any, get_args

from pydantic.fields import FieldInfo

from mrc_testbed.testbed.scenario.model.captures import LARGEST_SNAP_BYTES, LEAST_MOST_BYTES, LEAST_SNAP_BYTES
from mrc_testbed.testbed.scenario.model.families import FLAT, keys_of
from mrc_testbed.testbed.scenario.model.step_models import StepItem, StepPart
from mrc_testbed.testbed.scenario.model.switch_ports import USES, SwitchPorts
from mrc_testbed.testbed.scenario.text.denylist import Denial
from mrc_testbed.testbed.scenario.text.fields import COLD_START, Model
from mrc_testbed.testbed.scenario.text.units import format_size
from mrc_testbed.testbed.transports.base import Chooser
from mrc_testbed.testbed.workloads.sizes import SIZES, read_cdf
from tests.generated.data_files import flows_file, graph_file, sizes_file
from tests.generated.sketch import MS, PACKETS, Sketch
from tests.generated.wiring import written_keys

Draw = Callable[[Sketch, FieldInfo], Any]
"""A value as YAML has it; None: the key is left out."""


def mapping(
    sketch: Sketch, section: str, model: type[Model], always: Iterable[str] = (), never: Iterable[str] = ()
) -> dict[str, Any]:
    """Keys of a model: what is required, `always`, and some of the others."""
    found = {}
    for name, field in model.model_fields.items():
        key = field.alias or name
        if key not in never and (field.is_required() or key in always or sketch.often(0.25)):
            value = KEYS[section][key](sketch, field)
            if value is not None:
                found[key] = value
    return found


def _words(sketch: Sketch, field: FieldInfo) -> Any:
    """Of a field of type Literal."""
    return sketch.one([word for word in get_args(field.annotation) if word is not type(None)])


def _choice_of_uplinks(sketch: Sketch, field: FieldInfo) -> Any:
    """Packet by packet where packets leave switches a choice."""
    if sketch.spoken.names_paths or sketch.spoken.of_kernel:
        return "hash"
    word = _words(sketch, field)
    sketch.adaptive = word == "adaptive"
    return word


def _listed(sketch: Sketch, field: FieldInfo) -> Any:
    """Of a field whose schema lists the words, as those that plugins add to do: with another transport the usual one,
    as others are refused there."""
    if not sketch.spoken.has_paths:
        return field.default
    schema = next(each for each in field.metadata if hasattr(each, "json_schema"))
    return sketch.one(schema.json_schema["enum"])


def _entropies(sketch: Sketch, _: FieldInfo) -> int | str:
    """Of a transport whose EVs switches hash: a few a plane."""
    if sketch.spoken.chooser is not Chooser.ENTROPY or sketch.often(0.3):
        return "auto"
    return sketch.one([1, 3, 8]) * sketch.planes


def _whole(least: int, most: int) -> Draw:
    return lambda sketch, _: sketch.dice.randint(least, most)


def _of(*values: Any) -> Draw:
    return lambda sketch, _: sketch.one(values)


def _time(least_ns: float, most_ns: float) -> Draw:
    return lambda sketch, _: sketch.time(least_ns, most_ns)


def _in_rtts(least: float, most: float, *words: str) -> Draw:
    """Some T, of at least 10 ms together, or a word."""

    def draw(sketch: Sketch, _: FieldInfo) -> str:
        unit = max(sketch.rtt_ns, 10 * MS)
        return sketch.one(words) if words and sketch.often(0.3) else sketch.time(least * unit, most * unit)

    return draw


def _flag(sketch: Sketch, _: FieldInfo) -> bool:
    return sketch.often(0.5)


def _share(sketch: Sketch, _: FieldInfo) -> str:
    return sketch.share()


def _named(stem: str) -> Draw:
    return lambda sketch, _: sketch.name(stem)


def _fixed(attribute: str) -> Draw:
    """What the sketch has decided."""
    return lambda sketch, _: getattr(sketch, attribute)


def _size(sketch: Sketch, _: FieldInfo) -> str:
    return f"{sketch.job_bytes()}B"


def _message(sketch: Sketch, _: FieldInfo) -> str:
    return sketch.one(["1KiB", "4KiB", "20000B", "32KiB", "100KB"])


# --- fabric and endpoints


def _of_fabric(key: str) -> Draw:
    """A key of the family that is written in `fabric` itself."""
    return lambda sketch, _: written_keys(sketch.family).get(key) if sketch.flat else None


def _levels(sketch: Sketch, _: FieldInfo) -> Any:
    """A word, or levels in order."""
    if sketch.often(0.4):
        return sketch.one([use for use in USES if use != "plain" or (sketch.kernel and sketch.transport != "tcp")])
    found = mapping(sketch, "switch", SwitchPorts, always=("drop",), never=("use",))
    return found


def _denylist(sketch: Sketch, _: FieldInfo) -> Any:
    name = denied_path(sketch)
    return [name if sketch.often(0.5) else {**mapping(sketch, "denial", Denial), "path": name}]


def denied_path(sketch: Sketch) -> str:
    """A plane, or a switch above the T0s."""
    planes = [f"p{plane}" for plane in range(sketch.planes)]
    return sketch.one([*planes, *(switch.name for switch in sketch.plan.switches if switch.tier)])


def _some_hosts(sketch: Sketch, _: FieldInfo) -> Any:
    return "all" if sketch.often(0.3) else sketch.some(sketch.hosts)


# --- workload


def _job_hosts(sketch: Sketch, _: FieldInfo) -> Any:
    """Of those that are free; `all` when nobody has any."""
    together = not sketch.taken and sketch.often(0.5)
    chosen = sketch.hosts if together else sketch.some(sketch.free_hosts, 2)
    sketch.ranks = len(chosen)
    sketch.taken |= set(chosen)
    return "all" if together else chosen


def _axes(sketch: Sketch, _: FieldInfo) -> Any:
    """Whose product is the number of ranks."""
    first = sketch.one([size for size in range(1, sketch.ranks + 1) if sketch.ranks % size == 0])
    sketch.axes = {"inner": first, "outer": sketch.ranks // first}
    assert prod(sketch.axes.values()) == sketch.ranks
    return dict(sketch.axes)


def _over(sketch: Sketch, _: FieldInfo) -> str | None:
    usable = [name for name, size in sketch.axes.items() if size > 1]
    sketch.over = sketch.one(usable) if usable else None
    return sketch.over


def _local(sketch: Sketch, _: FieldInfo) -> str | None:
    """Where the collective is one of all hosts, drawn before: some of them need the network."""
    usable = [name for name, size in sketch.axes.items() if size < sketch.ranks]
    return sketch.one(usable) if usable and not sketch.over else None


def _micro_batches(sketch: Sketch, _: FieldInfo) -> int:
    return sketch.dice.randint(1, 4)


def _step(sketch: Sketch, _: FieldInfo) -> Any:
    parts = [one_part(sketch, StepPart) for _ in range(sketch.dice.randint(1, 3))]
    if all("compute" in part for part in parts):
        parts.append({"allreduce": {"size": _size(sketch, _)}})
    return parts


def one_part(sketch: Sketch, model: type[Any]) -> dict[str, Any]:
    """A part of a step: of any kind that the model has."""
    kind = sketch.one(list(model.kinds()))
    if kind == "compute":
        return {kind: sketch.time(1, 20 * MS)}
    if kind == "together":
        return {kind: [one_part(sketch, StepItem) for _ in range(sketch.dice.randint(1, 3))]}
    sketch.over = None
    return {kind: mapping(sketch, "exchange", model.models()[kind])}


def _sending_host(sketch: Sketch, _: FieldInfo) -> str:
    return sketch.one(sketch.hosts)


def pair(sketch: Sketch, src: str = "", dst: str = "") -> str | None:
    """Two hosts between which nothing flows yet; with either end given."""
    free = [
        (one, other)
        for one in ([src] if src else sketch.hosts)
        for other in ([dst] if dst else sketch.hosts)
        if one != other and not {(one, other), (other, one)} & sketch.pairs
    ]
    if not free:
        return None
    chosen = sketch.one(free)
    sketch.pairs.add(chosen)
    return "->".join(chosen)


def _packets(sketch: Sketch, _: FieldInfo) -> str:
    """A message that fills its packets."""
    return f"{sketch.one([1, 2, 8, 31]) * sketch.payload}B"


def _bins(sketch: Sketch, _: FieldInfo) -> dict[str, str]:
    sizes = sorted(sketch.dice.sample(range(1, 20 * sketch.payload), sketch.dice.randint(1, 3)))
    return {sketch.name("bin"): f"{size}B" for size in sizes}


def _sizes(sketch: Sketch, _: FieldInfo) -> str:
    """A file, or a published distribution where its flows have few packets."""
    if sketch.payload == 4096 and sketch.often(0.1):
        sketch.mean_bytes = SIZES["hadoop"].mean
        return "hadoop"
    name = sizes_file(sketch)
    sketch.mean_bytes = max(1.0, read_cdf(sketch.files[name]).mean)
    return name


def _load(sketch: Sketch, _: FieldInfo) -> str:
    sketch.load = sketch.one([30, 60, 80, 100])
    return f"{sketch.load}%"


def _for_some_flows(sketch: Sketch, _: FieldInfo) -> str:
    """So that some begin, and not more than the packets of a run."""
    flows = min(sketch.dice.randint(8, 30), max(8, int(PACKETS * sketch.payload / sketch.mean_bytes)))
    line = sketch.rate_bps * sketch.planes / 8 * sketch.load / 100
    gap_ns = sketch.mean_bytes / line * 10**9 / len(sketch.senders)
    return f"{max(1, int(flows * gap_ns))}ns"


# --- faults


def _begin(sketch: Sketch, field: FieldInfo) -> str:
    cold = not _later(field) and sketch.often(0.15)
    return COLD_START if cold else sketch.time(0, 1.2 * sketch.estimate_ns)


def _later(field: FieldInfo) -> bool:
    """Whether it may not begin before the workload: its schema has no such word."""
    schema = next(each for each in field.metadata if hasattr(each, "json_schema"))
    return COLD_START not in str(schema.json_schema)


def _lasting(sketch: Sketch, _: FieldInfo) -> str:
    return sketch.time(2 * MS, max(5 * MS, 0.6 * sketch.estimate_ns))


def _period(sketch: Sketch, _: FieldInfo) -> str:
    return sketch.time(20 * MS, max(30 * MS, 0.4 * sketch.estimate_ns))


def _slow_rate(sketch: Sketch, _: FieldInfo) -> str | None:
    kbit = sketch.rate_bps // 1000
    return f"{sketch.dice.randint(100, max(kbit - 1, 100))}kbit"


def _a_link(sketch: Sketch, _: FieldInfo) -> str | None:
    """Any; parts.py lets it end where the other one does."""
    return sketch.one(sketch.plan.links).name if sketch.plan.links else None


def _often(sketch: Sketch, _: FieldInfo) -> str:
    """A few in the time of the workload."""
    seconds = max(sketch.estimate_ns / 10**9, 0.05)
    a_second = sketch.dice.uniform(1, 4) / seconds
    return sketch.one([f"{a_second:.3f}/s", f"{a_second * 60:.2f}/min", f"{a_second * 3600:.1f}/h"])


_ARRIVING: Mapping[str, Draw] = {
    "start": _time(1000, 200 * MS),
    "message": _packets,
    "name": _named("flows"),
    "qps": _of(1, 2, 4, 5),
    "depth": _of(1, 2, 8, 64),
    "bins": _bins,
}
KEYS: Mapping[str, Mapping[str, Draw]] = {
    "fabric": {
        "oam": _words,
        "planes": _fixed("planes"),
        **{key: _of_fabric(key) for key in keys_of(FLAT)},
        "family": lambda sketch, _: None if sketch.flat else {sketch.family.word: written_keys(sketch.family)},
        "port_rate": lambda sketch, _: f"{sketch.rate_bps // 1000}kbit",
        "rtt": lambda sketch, _: f"{sketch.rtt_ns // 1000}us",
        "switch": _levels,
        "routes": _of("talking", "all"),
        "layout": _of("as-written", "folded"),
    },
    "switch": {
        "ecn": lambda sketch, _: sorted(round(sketch.dice.uniform(0, 2), 2) for _ in range(2)),
        "trim": lambda sketch, _: round(sketch.dice.uniform(0.1, 3), 2),
        "trim_last_hop": lambda sketch, _: round(sketch.dice.uniform(0.1, 3), 2),
        "drop": lambda sketch, _: round(sketch.dice.uniform(3, 8), 2),
    },
    "endpoint": {
        "payload": lambda sketch, _: format_size(sketch.payload),
        "mpr": _whole(2, 255),
        "dynamic_mpr": _whole(0, 2),
        "max_wimm": _of(1, 2, 8, 64),
        "trim_nack": _flag,
        "timeout": _in_rtts(8, 30, "auto"),
        "linear_tries": _whole(0, 7),
        "exponential_tries": _whole(0, 8),
        "reorder_time": _in_rtts(0, 4, "auto", "0s"),
        "reorder_packets": _of(0, 1, 3, 16),
        "reinfer": _flag,
        "entropies": _entropies,
        "ev_active": _of(1, 2, 5, 16, 128),
        "ev_min_active": lambda sketch, _: 1 if sketch.often(0.5) else "auto",
        "ev_selection": _listed,
        "busy_port": _of("wait", "pass"),
        "probe_interval": _in_rtts(1, 8, "auto"),
        "allow_to": _of("good", "probes"),
        "bad_after_losses": _whole(1, 4),
        "probe_class": _of("data", "control"),
        "probe_successes": _whole(1, 6),
        "congestion_control": _listed,
        "icrc": _flag,
        "denylist": _denylist,
        "preset": _of("testbed", "production"),
        "dscp": _of({"data": 1, "retransmission": 1, "control": 3}, {"no_trim": 5}),
    },
    "trimming": {
        "size": _of("headers", "128B", "256B"),
        "dscp": _of(12, 48),
        "dscp_last_hop": _of(16, 48),
        "queue": _words,
        "rewrite_length": lambda sketch, _: sketch.kernel or sketch.often(0.5),
    },
    "controller": {"after": _of("never", "20ms", "300ms"), "command": lambda sketch, _: None},
    "mapper": {
        "period": lambda sketch, _: (
            sketch.one(["10 rtt", "5 rtt", "40 rtt"]) if sketch.rtt_ns else sketch.time(100 * MS, 500 * MS)
        ),
        "owners": _of(1, 2),
        "evidence": _of(["endpoints"], ["probes"], ["endpoints", "probes"]),
        "deny": _of("nothing", "lossy NIC links", "NIC links", "all"),
        "above": _of("1%", "5%"),
        "hold": _time(100 * MS, 900 * MS),
    },
    "denial": {"path": lambda sketch, _: denied_path(sketch), "hosts": _some_hosts},
    "roce": {
        "recovery": _words,
        "planes": _of("in-turn"),  # another one needs the right recovery and layout
        "timeout": _whole(16, 19),
        "retries": _whole(2, 7),
        "congestion_control": _words,
        "failover": _words,
        "port_recovery": _flag,
        "retry_hold": _time(100 * MS, 900 * MS),
        "buffers": lambda sketch, _: sketch.one(["lossy", "deep"] if sketch.kernel else ["lossy", "deep", "pfc"]),
        "xoff": lambda sketch, _: sketch.one([0.5, 1, 4]),
        "xon": lambda sketch, _: sketch.one([0.1, 0.5]),
    },
    "tcp": {
        "congestion_control": _of("cubic", "reno"),
        "rto_min": _time(5 * MS, 300 * MS),
        "connections": _whole(1, 3),
    },
    "ecmp": {
        "hash": _words,
        "choose": _choice_of_uplinks,
        "far_links": lambda sketch, _: (
            sketch.one(["unknown", "known"]) if sketch.adaptive and not sketch.kernel else None
        ),
        "repath": lambda sketch, field: None if sketch.adaptive else _flag(sketch, field),
        "hosts": lambda sketch, field: None if sketch.adaptive else _words(sketch, field),
        "seed": _whole(0, 9),
    },
    "bgp": {
        "hold": _of({"keepalive": "1s", "hold": "3s"}),
        "bfd": _of("off", {"interval": "300ms"}),
        "routes": _words,
        "carries": _words,
        "t1_as": _words,
    },
    "virtual": {"busy": _time(1000, 200_000), "lateness": _time(0, 200_000)},
    "job": {
        "hosts": _job_hosts,
        "name": _named("job"),
        "steps": _fixed("rounds"),
        "iterations": _fixed("rounds"),
        "warm_up": _whole(0, 2),
        "compute": _time(1000, 30 * MS),
        "allreduce": _size,
        "size": _size,
        "qps": _of(1, 1, 2, 5),
        "message": _message,
        "micro_batches": _micro_batches,
        "parallel": _axes,
        "step": _step,
    },
    "exchange": {
        "over": _over,
        "local": _local,
        "size": _size,
        "qps": _of(1, 1, 2, 5),
        "message": _message,
        "micro_batches": _micro_batches,
        "compute": _time(1000, 10 * MS),
    },
    "flow": {
        "for": lambda sketch, _: sketch.time(1.6 * sketch.least_for_ns, 2 * sketch.least_for_ns),
        "start": _time(1000, 200 * MS),
        "message": _of("1KiB", "4KiB", "8KiB", "20000B"),
        "name": _named("flow"),
        "bytes": lambda sketch, _: f"{sketch.dice.randint(1, 50) * 4096}B",
        "warm_up": lambda sketch, _: sketch.time(1000, 0.5 * sketch.least_for_ns),
        "qps": _of(1, 1, 2, 4),
        "depth": _of(1, 2, 8, 64),
        "bidirectional": _flag,
        "victims": lambda sketch, _: [one] if (one := pair(sketch)) else None,
    },
    "trace": {
        **_ARRIVING,
        "file": lambda sketch, _: flows_file(sketch, sketch.trace_pairs, sketch.stretch),
        "stretch": _fixed("stretch"),
    },
    "poisson": {
        **_ARRIVING,
        "sizes": _sizes,
        "load": _load,
        "for": _for_some_flows,
        "hosts": lambda sketch, _: "all" if sketch.senders == sketch.hosts else sketch.senders,
    },
    "graph": {
        "hosts": _job_hosts,
        "name": _named("job"),
        "file": lambda sketch, _: graph_file(sketch, sketch.ranks, sketch.stretch),
        "iterations": _fixed("rounds"),
        "warm_up": _whole(0, 2),
        "stretch": _fixed("stretch"),
    },
    "latency": {
        "for": lambda sketch, _: sketch.time(20 * MS, 300 * MS),
        "start": _time(1000, 200 * MS),
        "message": _of("2B", "4KiB", "20000B"),
        "name": _named("ping"),
        "bidirectional": _flag,
        "iterations": _whole(1, 40),
        "warm_up": _whole(0, 5),
    },
    "fault": {
        "at": _begin,
        "name": _named("fault"),
        "for": _lasting,
        "period": _period,
        "count": _whole(1, 4),
        "duty": _of(0.2, 0.5, 0.9),
        "jitter": _of("10%", "50%"),
        "ports": _whole(1, 4),
        "first": _whole(0, 2),
        "loss": _share,
        "share": _share,
        "direction": _words,
        "control": _words,
        "from": _sending_host,
        "to": _sending_host,
        "rate": _slow_rate,
        "boot": _lasting,
        "hosts": _some_hosts,
        "times": _often,
        "by": _a_link,
        "with": _a_link,
        "marks": _words,
        "drop": lambda sketch, _: round(sketch.dice.uniform(0.05, 2.9), 2),
        "per_packet": _time(10_000, 2 * MS),
    },
    "capture": {
        "before": _time(0, 300 * MS),
        "after": _time(0, 300 * MS),
        "snap": lambda sketch, _: f"{sketch.dice.randint(LEAST_SNAP_BYTES, LARGEST_SNAP_BYTES)}B",
        "most": lambda sketch, _: f"{sketch.dice.randint(LEAST_MOST_BYTES, 4 * LEAST_MOST_BYTES)}B",
    },
    "paper": {
        "figure": _of("4", "9a", "12, 13", "table 4.2"),
        "reports": _of("bandwidth stays at line rate"),
        "source": _of("arXiv 2605.21187"),
        "beside": lambda *_: {"other": "about half"},
        "shows": lambda sketch, _: [sketch.dice.randrange(sketch.shown)] if sketch.shown else None,
    },
    "scenario": {
        "about": _of("Whatever may come.", "Ein Gerät: 10 µs {x} # y"),
        "seed": _whole(0, (1 << 63) - 1),
        "qps": _whole(1, 3),
        "time_limit": lambda sketch, _: f"{60 + 20 * sketch.estimate_ns // 10**9}s",
    },
}
"""By section, then by key. Sections of several models have the keys of all of them."""
