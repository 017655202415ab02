"""Draws the pictures of docs/stories.md from runs: `story_pictures.py RESULTS`, with the results of `make stories`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mrc_testbed.testbed.report.frames.run import Run, load_run
from mrc_testbed.testbed.rundir.results import run_folders
from mrc_testbed.testbed.scenario.load.shipped import shipped
from mrc_testbed.testbed.workloads.fairness import line_rate, max_min_shares
from svg_chart import Panel, Series, drawing

DOCS = Path(__file__).parents[1] / "docs/stories"
GRAIN_S = 0.5
OF_PROGRAMS = {"train"}
"""Stories whose scenarios are in `programs`."""
Runs = Mapping[str, Run]
"""The newest run of each cell, by what the picture calls it."""


def main(results: Path) -> None:
    """Draw every story that has a run."""
    runs = _newest(results)
    DOCS.mkdir(exist_ok=True)
    for name, picture in PICTURES.items():
        if name in runs:
            (DOCS / f"{name}.svg").write_text(drawing(picture(runs[name])), encoding="utf-8")
            print(f"docs/stories/{name}.svg: {', '.join(run.name for run in runs[name].values())}")
        else:
            print(f"{name}: no run in {results}")


def _newest(results: Path) -> dict[str, dict[str, Run]]:
    """By story and cell the newest run that is believed."""
    stories = {one.path.stem for one in shipped() if one.group == "stories"} | OF_PROGRAMS
    found: dict[str, dict[str, Run]] = {}
    for folder in sorted(run_folders(results)):
        run = load_run(folder)
        if run.scenario.name in stories and run.verdict not in (None, "inconclusive"):
            found.setdefault(run.scenario.name, {})[_cell(run)] = run
    return found


def _cell(run: Run) -> str:
    """`RoCE, lossy, 16 QPs`: what the variant is, never RoCE alone; of a matrix what varies in it."""
    if run.scenario.name == "far-apart":
        return f"T = {run.scenario.fabric.rtt_ns / 1e6:g} ms"
    told = _VARIES.get(run.scenario.name)
    return _spoken(run) + (f", {told(run)}" if told else "")


_VARIES: dict[str, Callable[[Run], str]] = {
    "more-paths-worse-tail": lambda run: f"{run.scenario.fabric.t1} links",
    "tail-by-hosts": lambda run: f"{run.scenario.shape().hosts} hosts",
    "eight-seeds": lambda run: f"seed {run.scenario.seed}",
    "faster-compute": lambda run: f"compute {_compute_s(run) * 1e3:g} ms",
}
"""By story what its matrix varies."""


def _spoken(run: Run) -> str:
    variant = run.scenario.variant or "mrc"
    for short, word in (
        ("srv6", "MRC, SRv6"),
        ("hashed", "MRC, hashed"),
        ("blind", "MRC, hashed, oblivious"),
        ("reps", "MRC, hashed, recycled"),
        ("static", "MRC, static uSIDs"),
        ("hosts", "MRC, BGP beside"),
        ("usids", "MRC, uSIDs by BGP"),
        ("detours", "MRC, uSIDs by BGP with detours"),
        ("mrc", "MRC"),
        ("tcp", "TCP"),
        ("roce-lossy", "RoCE, lossy"),
        ("roce-deep", "RoCE, deep buffers"),
        ("roce-pfc", "RoCE, PFC"),
        ("roce-1", "RoCE, lossy"),
        ("roce-planes-balanced", "RoCE, planes balanced"),
    ):
        if variant.startswith(short):
            more = re.sub("qp|bgp|bfd", lambda known: known[0].upper(), variant.removeprefix(short))
            more = more.strip("-").replace("-", " ")
            died = f" ({run.judged.death.partition(':')[0]})" if run.judged and run.judged.death else ""
            return f"{word}{', ' if more else ''}{more}{died}"
    return variant


def _bands(run: Run, *faults: str) -> list[tuple[float, float]]:
    """From each injection to its heal, s."""
    done = run.history[run.history["type"] == "ok"]
    begun, healed = ({tuple(row[:2]): row[2] for row in _moments(done, op)} for op in ("inject", "heal"))
    return [(at, healed.get(key, _length_s(run))) for key, at in begun.items() if not faults or key[0] in faults]


def _length_s(run: Run) -> float:
    return (run.end_ns - (run.start_ns or 0)) / 1e9


def _moments(done: pd.DataFrame, op: str) -> list[list[Any]]:
    found: list[list[Any]] = done[done["op"] == op][["fault", "cycle", "t_s"]].values.tolist()
    return found


def _steps(run: Run, name: str, job: str = "") -> Series:
    """How long each step took, from its begin to its end."""
    steps = run.steps[run.steps["job"] == job] if job else run.steps
    rows = list(zip(steps["begin_s"], steps["end_s"], steps["duration_s"], strict=True))
    points = [point for begin, end, took in rows for point in ((begin, took), (end, took))]
    pauses = [2 * at for at in range(1, len(rows)) if rows[at][0] > rows[at - 1][1] + GRAIN_S]
    return Series(name, points, cuts=pauses)


def _step_panel(title: str, series: Sequence[Series], bands: Sequence[tuple[float, float]] = ()) -> Panel:
    return Panel(title, "time, s", "step time, s", series, bands)


def _blast_radius(runs: Runs) -> list[Panel]:
    run = next(iter(runs.values()))
    steps = [_steps(run, job.name, job.name) for job in run.scenario.jobs]
    return [_step_panel("Steps of two jobs; a host of job-b has no port left", steps, _bands(run))]


def _two_jobs(runs: Runs) -> list[Panel]:
    return [
        _step_panel(f"Steps of two jobs: {cell}", [_steps(run, job.name, job.name) for job in run.scenario.jobs])
        for cell, run in runs.items()
    ]


def _one_line_each(title: str) -> Callable[[Runs], list[Panel]]:
    def panels(runs: Runs) -> list[Panel]:
        first = next(iter(runs.values()))
        return [_step_panel(title, [_steps(run, cell) for cell, run in runs.items()], _bands(first))]

    return panels


def _synchronous(runs: Runs) -> list[Panel]:
    """What all hosts together deliver, as a share of their line rate."""
    panels = []
    for cell, run in runs.items():
        line = line_rate(run.scenario.shape()) * run.scenario.shape().hosts
        title = f"Goodput of all hosts over line rate: {cell}"
        panels.append(Panel(title, "time, s", "share", [_job_rate(run, line), _flow_rate(run, line)], _bands(run)))
    return panels


def _job_rate(run: Run, line: float) -> Series:
    rows = [(row.begin_s, row.end_s, row.bytes / row.duration_s / line) for row in run.steps.itertuples()]
    return Series("synchronous job", [point for begin, end, rate in rows for point in ((begin, rate), (end, rate))])


def _flow_rate(run: Run, line: float) -> Series:
    turns = run.flows.groupby(run.flows["begin_s"] // GRAIN_S)["bytes"].sum()
    sending = turns[(turns > 0).cummax()].iloc[2:-2]
    points = [(turn * GRAIN_S, moved / GRAIN_S / line) for turn, moved in sending.items()]
    return Series("independent flows", points)


def _paths(runs: Runs) -> list[Panel]:
    """Data packets of the sender on each of its paths."""
    panels = []
    for cell, run in runs.items():
        sent = run.paths[run.paths["host"] == "h0"]["packets"].tolist()
        panels.append(
            Panel(f"Data packets on each path: {cell}", "path", "packets", [Series("", list(enumerate(sent)), "dots")])
        )
    return panels


def _far_apart(runs: Runs) -> list[Panel]:
    ordered = sorted(runs.values(), key=lambda run: run.scenario.fabric.rtt_ns)
    figures = {
        "step, clean median": "step_time.median clean",
        "slowest step during the cut": "step_time.p100 during cut",
        "recovery, median": "recovery.p50",
    }
    series = [
        Series(name, [(at, run.figure(text).value or 0.0) for at, run in enumerate(ordered)], "bars")
        for name, text in figures.items()
    ]
    names = [cell for run in ordered for cell, one in runs.items() if one is run]
    return [Panel("The same job, further and further apart", "", "s", series, categories=names)]


def _goodput(title: str) -> Callable[[Runs], list[Panel]]:
    """What all flows of each cell deliver together."""

    def panels(runs: Runs) -> list[Panel]:
        first = next(iter(runs.values()))
        series = [Series(cell, _delivered(run)) for cell, run in runs.items()]
        return [Panel(title, "time, s", "Mb/s", series, _bands(first))]

    return panels


def _delivered(run: Run) -> list[tuple[float, float]]:
    turns = run.flows.groupby(run.flows["begin_s"] // GRAIN_S)["bytes"].sum()
    return [(turn * GRAIN_S, moved * 8 / 1e6 / GRAIN_S) for turn, moved in turns.items()]


def _shares(runs: Runs) -> list[Panel]:
    """The fair shares of all flows of each cell, the least first."""
    series = []
    for cell, run in runs.items():
        flows = [f"fair_share.mean of {flow.name}" for flow in run.scenario.flows.flows]
        shares = sorted(run.figure(text).value or 0.0 for text in flows)
        series.append(Series(cell, list(enumerate(shares))))
    order = [str(number + 1) for number in range(len(series[0].points))]
    title = "Eight flows, what each has of its fair share"
    return [Panel(title, "flow, the slowest first", "share", series, categories=order)]


def _greatest_loads(runs: Runs) -> list[Panel]:
    """The greatest load of a link over the mean of all, by the number of links."""
    title = "64 flows: the greatest load of a link over the mean"
    return [_by_size(runs, title, "uplink_share.max", lambda run: run.scenario.fabric.t1, "links")]


def _by_size(runs: Runs, title: str, figure: str, size_of: Callable[[Run], int], what: str, over: str = "") -> Panel:
    """Bars: a figure of each transport by a size of the fabric."""
    sizes = sorted({size_of(run) for run in runs.values()})
    by_cell: dict[str, list[tuple[float, float]]] = {}
    for run in runs.values():
        value = (run.figure(figure).value or 0.0) / ((run.figure(over).value if over else None) or 1.0)
        by_cell.setdefault(_spoken(run), []).append((sizes.index(size_of(run)), value))
    series = [Series(cell, points, "bars") for cell, points in by_cell.items()]
    return Panel(
        title, "", (over and "x a usual step") or "x mean", series, categories=[f"{one} {what}" for one in sizes]
    )


def _worst_steps(runs: Runs) -> list[Panel]:
    """The worst step over a usual one, by the number of hosts."""
    title = "One packet in 500 is lost: the worst step over a usual one"
    figures = ("step_time.p100 during loss", "step_time.median clean")
    return [_by_size(runs, title, figures[0], lambda run: run.scenario.shape().hosts, "hosts", over=figures[1])]


def _by_seed(runs: Runs) -> list[Panel]:
    """The usual step of each transport, a bar a seed."""
    by_cell: dict[str, list[tuple[float, float]]] = {}
    seeds = sorted({run.scenario.seed for run in runs.values()})
    for run in runs.values():
        step = run.figure("step_time.median").value or 0.0
        by_cell.setdefault(_spoken(run), []).append((seeds.index(run.scenario.seed), step))
    series = [Series(cell, points, "bars") for cell, points in by_cell.items()]
    names = [f"seed {seed}" for seed in seeds]
    return [Panel("The same job with eight seeds: its usual step", "", "s", series, categories=names)]


def _compute_s(run: Run) -> float:
    """What a step of the story faster-compute computes."""
    train = run.scenario.workload[0].train
    compute_ns = train.step[0].compute if train else None
    if compute_ns is None:
        raise SystemExit(f"{run.folder}: its first job does not begin with a computation")
    return compute_ns / 1e9


def _regret(runs: Runs) -> list[Panel]:
    """Of each network the share of a step that waits for it, and what it costs beside the whole one."""
    lengths = sorted({_compute_s(run) for run in runs.values()}, reverse=True)
    steps = {
        (run.scenario.variant, _compute_s(run)): run.figure("step_time.median").value or 0.0 for run in runs.values()
    }
    variants = list(dict.fromkeys(variant for variant, _ in steps))
    shares, costs = [], []
    for variant in variants:
        taken = [steps[variant, length] for length in lengths]
        waits = [1 - length / step for length, step in zip(lengths, taken, strict=True)]
        beside = [step / steps["whole", length] for length, step in zip(lengths, taken, strict=True)]
        shares.append(Series(str(variant), list(enumerate(waits)), "bars"))
        costs.append(Series(str(variant), list(enumerate(beside)), "bars"))
    names = [f"compute {length * 1e3:g} ms" for length in lengths]
    return [
        Panel("Share of a step that waits for the network", "", "share", shares, categories=names),
        Panel("A step, over that with the whole network", "", "x", costs, categories=names),
    ]


def _rails(runs: Runs) -> list[Panel]:
    """Steps, and the bytes that rail switches send up in one."""
    (steps,) = _one_line_each("A spine switch of one of two planes is dead for six seconds")(runs)
    sent = [(number, _sent_up(run) / 1e6) for number, run in enumerate(runs.values())]
    return [steps, Panel("Over the spine in a step", "", "MB", [Series("", sent, "bars")], categories=list(runs))]


def _sent_up(run: Run) -> float:
    """By T0s in a step, those of the warm-up among them."""
    seen = run.samples[(run.samples["t_s"] >= 0) & run.samples["node"].str.contains("-t0-")]
    ports = seen[seen["port"].str.startswith("up")].groupby(["node", "port"])["tx_bytes"]
    return float((ports.last() - ports.first()).sum()) / run.scenario.jobs[0].entry.total_steps


def _tiers(runs: Runs) -> list[Panel]:
    """What all flows deliver while switches are dead, and half a round trip of two bytes."""
    rates = [Series(cell, _delivered(run)) for cell, run in runs.items()]
    bands = [*_bands(runs["three-tiers"], "t2"), *_bands(runs["two-tiers"])]
    title = "A T2 (of three tiers), then a T1, then a T0 is dead for five seconds: goodput of all flows"
    pings = [(number, (run.figure("latency.median").value or 0.0) * 1e3) for number, run in enumerate(runs.values())]
    ping = Panel("A message of two bytes, one way", "", "ms", [Series("", pings, "bars")], categories=list(runs))
    return [Panel(title, "time, s", "Mb/s", rates, bands), ping]


def _beside_arithmetic(runs: Runs) -> list[Panel]:
    """Of each ratio what uplinks carry, and the slowest and the fastest flow, of line rate."""
    figures = ("slowest flow", "min"), ("mean", "mean"), ("fastest flow", "max")
    bars: dict[str, list[tuple[float, float]]] = {name: [] for name in ("arithmetic", *(name for name, _ in figures))}
    for number, run in enumerate(runs.values()):
        shape = run.scenario.shape()
        line = line_rate(shape)
        fair = min(max_min_shares(shape, {flow.name: flow.demand for flow in run.scenario.flows.flows}).values())
        bars["arithmetic"].append((number, fair / line))
        for name, figure in figures:
            value = run.figure(f"flow_goodput.{figure} from 3s to 19s").value or 0.0
            bars[name].append((number, value / line))
    series = [Series(name, points, "bars") for name, points in bars.items()]
    return [Panel("Four flows through fewer and fewer uplinks", "", "of line rate", series, categories=list(runs))]


def _uplink_loads(runs: Runs) -> list[Panel]:
    """What each uplink of the T0s carried of what it could, the least first, from a second on."""
    series = []
    for cell, run in runs.items():
        seen = run.samples[(run.samples["t_s"] >= 1) & (run.samples["t_s"] <= _length_s(run))]
        uplinks = seen[seen["node"].str.contains("-t0-") & seen["port"].str.startswith("up")]
        ports = uplinks.groupby(["node", "port"])
        carried = (ports["tx_bytes"].last() - ports["tx_bytes"].first()) * 8
        seconds = ports["t_s"].last() - ports["t_s"].first()
        loads = sorted(carried / seconds / run.scenario.shape().port_rate_bps)
        series.append(Series(cell, list(enumerate(loads, start=1))))
    return [Panel("What each uplink of two racks carries of its rate", "uplink, the least used first", "load", series)]


PICTURES: dict[str, Callable[[Runs], list[Panel]]] = {
    "one-flap-kills-a-job": _one_line_each("A NIC port is gone for three seconds"),
    "hash-collisions": _shares,
    "more-paths-worse-tail": _greatest_loads,
    "tail-by-hosts": _worst_steps,
    "eight-seeds": _by_seed,
    "faster-compute": _regret,
    "lost-nic-port": _one_line_each("One of four NIC ports of h0 is down"),
    "nic-port-with-failover": _one_line_each("One of four NIC ports of h0 is down for eleven seconds"),
    "slow-plane": _goodput("The uplinks of a rack in one of four planes carry a quarter for six seconds"),
    "seconds-of-rerouting": _goodput("A link loses its carrier for three seconds, and then is silent for twelve"),
    "routing-hides-it": _one_line_each("A far link loses its carrier, later it goes silent, each for four seconds"),
    "is-srv6-needed": _goodput(
        "For four seconds each: a link beside the senders is down, a far one, then a T1 is silent"
    ),
    "grey-switch": _goodput("A T1 forwards nothing for twelve seconds and talks on"),
    "train": _one_line_each("PyTorch's DDP: a cut, a rebooting T1, a lost NIC port"),
    "reboot-at-noon": _one_line_each("Four T1 switches reboot in turn"),
    "two-jobs": _two_jobs,
    "blast-radius": _blast_radius,
    "synchronous": _synchronous,
    "hundreds-of-paths": _paths,
    "far-apart": _far_apart,
    "central-controller": _one_line_each("A link to the receivers' T0 loses its carrier for four seconds"),
    "rails": _rails,
    "three-tiers": _tiers,
    "oversubscribed": _beside_arithmetic,
    "wrong-hash": _uplink_loads,
    "pause-storm": _one_line_each("Steps of a job; from 5 s to 11 s eleven other hosts send to another one"),
}
"""By name of the story: the panels of its picture."""

if __name__ == "__main__":
    main(Path(sys.argv[1]))
