"""What a sweep costs beside its runs: a cell through each engine, and gathering a thousand.

    .venv/bin/python benchmarks/sweep.py [--cells N] [--seconds S] [--only gather|overhead]

A cell is a stub that sleeps. `overhead` is the wall time of the whole command over that of the sleeping, a cell and
worker. Gathering reads cells as a real run left them, copied a thousand times with other figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from mrc_testbed.testbed.app.batch import Repetitions, load_cases
from mrc_testbed.testbed.scenario.cells.axes import Sweep
from mrc_testbed.testbed.sweep.folder import SweepFolder
from mrc_testbed.testbed.sweep.plan import plan_sweep

ROOT = Path(__file__).parents[1]
SMALL = ROOT / "tests" / "unit" / "small_virtual.yaml"
MAIN = (sys.executable, "-m", "mrc_testbed")
GATHERED = 1000
WORKERS = 2
MOST_OVERHEAD_S, MOST_GATHER_S, MOST_GATHER_MB = 0.3, 10.0, 500.0
_STUB = """#!/bin/sh
# SCENARIO --quiet --out OUT --cell FILE --tied 0
sleep {seconds}
printf '{{"verdict": "pass", "exit_code": 0, "reason": "", "another_try": false, "seconds": {seconds}, "run": null,
 "machine": {{"host": "stub"}}}}' > "$6"
"""


def planned(place: Path, name: str, cells: int, *axes: str) -> SweepFolder:
    """A sweep of a scenario on the kernel, whose cells go one at a time to each worker."""
    cases = load_cases([SMALL], (), None, Repetitions(cells, vary_seed=True, many=True), Sweep(axes))
    return plan_sweep(cases, place / name, {})


def timed(*words: str) -> tuple[float, float]:
    """Wall time of the command, and the most memory in MB of any so far. Ends the program if it fails."""
    began = time.monotonic()
    done = subprocess.run([*MAIN, "sweep", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


@contextmanager
def cluster(place: Path) -> Iterator[str]:
    """A scheduler with two workers on loopback."""
    about = place / "scheduler.json"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    begin = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    started = [subprocess.Popen([*begin, "--no-dashboard", "--scheduler-file", str(about)], cwd=ROOT, **quiet)]
    try:
        while not about.exists() or not about.read_text():
            time.sleep(0.1)
        address = json.loads(about.read_text())["address"]
        work = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
        for number in range(WORKERS):
            more = ["--resources", "fabric=1", "--no-dashboard", "--local-directory", str(place / f"w{number}")]
            started.append(subprocess.Popen([*work, *more], cwd=ROOT, **quiet))
        time.sleep(6)  # until both are there
        yield address
    finally:
        for process in started:  # a worker whose scheduler is gone takes its time to end
            process.kill()
            process.wait()


def overhead(place: Path, cells: int, seconds: float) -> None:
    """Of a cell, by engine."""
    stub = place / "stub.sh"
    stub.write_text(_STUB.format(seconds=seconds))
    command = ("--cell-command", f"/bin/sh {stub}", "--quiet")
    taken_s, _ = timed("run", str(planned(place, "local", cells).path), *command)
    told("local", taken_s / cells - seconds)
    with cluster(place) as address:
        taken_s, _ = timed("run", str(planned(place, "dask", cells).path), "--on", address, *command)
    told(f"dask, {WORKERS} workers", taken_s * WORKERS / cells - seconds)


def told(engine: str, overhead_s: float) -> None:
    """A line."""
    print(f"{engine}: {overhead_s:.3f} s of overhead a cell, {overhead_s / MOST_OVERHEAD_S:.2f} of what is allowed")


def gather(place: Path) -> None:
    """A thousand cells of two settings, on two machines."""
    folder = planned(place, "big", GATHERED // 2, "endpoint.ev_active=4,8")
    made = place / "cell.json"
    run = [*MAIN, "run", str(SMALL), "--virtual", "-q", "--out", str(place / "out"), "--cell", str(made)]
    subprocess.run(run, cwd=ROOT, capture_output=True, check=True)
    document, chance = json.loads(made.read_text()), Random(1)
    for number, cell in enumerate(folder.cells):
        settings = dict(document["run"]["settings"], **{"endpoint.ev_active": str(cell.settings["endpoint.ev_active"])})
        figures = {key: value * chance.uniform(0.9, 1.1) for key, value in document["run"]["figures"].items()}
        own = {"seed": cell.seed, "settings": settings, "figures": figures, "scenario_sha256": cell.sha256}
        machine = dict(document["machine"], host=f"vm{number % 2}")
        more = {"run": {**document["run"], **own, "world": "kernel"}, "machine": machine}
        folder.keep(cell, {**document, **more})
    taken_s, most_mb = timed("gather", str(folder.path), "--quiet")
    print(
        f"gather {len(folder.cells)} cells: {taken_s:.1f} s, {taken_s / MOST_GATHER_S:.2f} of what is allowed; "
        f"{most_mb:.0f} MB, {most_mb / MOST_GATHER_MB:.2f} of what is allowed"
    )


def main() -> None:
    """Three lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", choices=("gather", "overhead"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if given.only != "overhead":  # first: memory is told of the greatest command so far
            gather(Path(name))
        if given.only != "gather":
            overhead(Path(name), given.cells, given.seconds)


if __name__ == "__main__":
    main()
