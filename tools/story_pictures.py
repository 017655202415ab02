"""Draws the pictures of docs/stories.md from runs: `story_pictures.py RESULTS`, with the results of `make stories`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
from svg_chart import Panel, Series, drawing

from testbed.report.frames.run import Run, load_run
from testbed.rundir.results import run_folders
from testbed.scenario.shipped import shipped

DOCS = Path(__file__).parents[1] / "docs/stories"
GRAIN_S = 0.5
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
    stories = {one.path.stem for one in shipped() if one.group == "stories"}
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
    variant = run.scenario.variant or "mrc"
    for short, word in (
        ("mrc", "MRC"),
        ("tcp", "TCP"),
        ("roce-lossy", "RoCE, lossy"),
        ("roce-deep", "RoCE, deep buffers"),
    ):
        if variant.startswith(short):
            more = variant.removeprefix(short).strip("-").replace("-", " ")
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


def _moments(done: pd.DataFrame, op: str) -> list[list[object]]:
    return done[done["op"] == op][["fault", "cycle", "t_s"]].values.tolist()


def _steps(run: Run, name: str, job: str = "") -> Series:
    """How long each step took, at its end."""
    steps = run.steps[run.steps["job"] == job] if job else run.steps
    return Series(name, list(zip(steps["end_s"], steps["duration_s"], strict=True)))


def _step_panel(title: str, series: Sequence[Series], bands: Sequence[tuple[float, float]] = ()) -> Panel:
    return Panel(title, "time, s", "step time, s", series, bands)


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
    """Speed as a share of what is usual when nothing is broken."""
    panels = []
    for cell, run in runs.items():
        job, flows = _job_speed(run), _flow_speed(run)
        title = f"Speed over what is usual: {cell}"
        panels.append(Panel(title, "time, s", "share", [job, flows], _bands(run)))
    return panels


def _job_speed(run: Run) -> Series:
    usual = run.figure("step_time.median clean").value or 1.0
    return Series("synchronous job", [(row.end_s, usual / row.duration_s) for row in run.steps.itertuples()])


def _flow_speed(run: Run) -> Series:
    turns = run.flows.groupby(run.flows["begin_s"] // GRAIN_S)["bytes"].sum()
    rates = turns[(turns > 0).cummax()].iloc[2:-2]
    return Series(
        "independent flows together", [(turn * GRAIN_S, value / rates.median()) for turn, value in rates.items()]
    )


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


PICTURES: dict[str, Callable[[Runs], list[Panel]]] = {
    "lost-nic-port": _one_line_each("One of four NIC ports of h0 is down"),
    "reboot-at-noon": _one_line_each("Four T1 switches reboot in turn"),
    "two-jobs": _two_jobs,
    "synchronous": _synchronous,
    "hundreds-of-paths": _paths,
    "far-apart": _far_apart,
}
"""By name of the story: the panels of its picture."""

if __name__ == "__main__":
    main(Path(sys.argv[1]))
