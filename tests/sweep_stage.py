"""A scheduler, workers and sweeps for tests, all on loopback and gone with the test."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
MAIN = [sys.executable, "-m", "mrc_testbed"]
STUB = shlex.join([sys.executable, str(HERE / "sweep_stub.py")])
SCENARIO = """\
name: stub
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1}
workload: [{train: {hosts: all, steps: 4, compute: 20ms, allreduce: 64KiB}}]
expect: [qp_errors == 0]
"""


def wait_until(holds: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What it returns once that is true."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)
    return found


def is_there(pid: int) -> bool:
    """A process that runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@dataclass
class Stage:
    """A place for sweeps, schedulers and workers, which end with the test."""

    place: Path
    scenario: str = SCENARIO
    env: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    address: str = ""
    tls: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    """What each command begins with, such as `nsenter`."""

    def __post_init__(self) -> None:
        (self.place / "log").mkdir()
        (self.place / "stub.yaml").write_text(self.scenario)
        self.env = {**os.environ, "STUB_LOG": str(self.place / "log"), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}

    def plan(self, cells: int, *more: str) -> Path:
        """A sweep of seeds 1, 2, 3 ..."""
        folder = self.place / "sweep"
        asked = ["sweep", "plan", str(self.place / "stub.yaml"), "--seed", "1", "--repeat", str(cells), "--vary-seed"]
        done = self.call(*asked, "--out", str(folder), *more)
        assert done.returncode == 0, done.stderr
        return folder

    def call(self, *words: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """The command, to its end."""
        return subprocess.run(
            [*self.within, *MAIN, *words], env=self.env, capture_output=True, text=True, timeout=seconds, check=False
        )

    def sweep_run(self, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
        """`sweep run` with stubs, on the scheduler if there is one."""
        return self.call("sweep", "run", str(folder), *self.on, "--cell-command", STUB, *more)

    def begin_run(self, folder: Path, *more: str) -> subprocess.Popen[str]:
        """The same, not to its end."""
        return self.begin([*MAIN, "sweep", "run", str(folder), *self.on, "--cell-command", STUB, *more])

    @property
    def on(self) -> list[str]:
        """The options that name the engine."""
        return ["--on", self.address] if self.address else []

    def begin(self, command: list[str], **env: str) -> subprocess.Popen[str]:
        """A process that ends with the test."""
        log = (self.place / f"process-{len(self.started)}.log").open("w")
        process = subprocess.Popen(
            [*self.within, *command],
            env=self.env | env,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        log.close()
        self.started.append(process)
        return process

    def alone(self) -> None:
        """Everything from now on in a network namespace with nothing but loopback, so that nobody reaches it."""
        holder = self.begin(["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 600"])
        wait_until(lambda: (self.place / "process-0.log").read_text() == "up\n")
        self.within = ("nsenter", f"--net=/proc/{holder.pid}/ns/net")

    def scheduler(self, protocol: str = "tcp", host: str = "127.0.0.1", **env: str) -> subprocess.Popen[str]:
        """On a port of its own choice."""
        about = self.place / "scheduler.json"
        about.unlink(missing_ok=True)
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", f"{protocol}://{host}"]
        more = ["--port", "0", "--no-dashboard", "--scheduler-file", str(about), *self.tls]
        process = self.begin([*command, *more], **env)
        wait_until(about.exists)
        self.address = wait_until(lambda: _address(about))
        return process

    def worker(
        self, name: str, *more: str, nanny: bool = False, resources: str = "fabric=1", host: str = "127.0.0.1"
    ) -> subprocess.Popen[str]:
        """A worker, with a nanny that starts it again when it dies, or without. Waits until it is there."""
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--name", name, "--no-dashboard"]
        command += [] if nanny else ["--no-nanny"]
        command += [] if self.tls else ["--host", host]
        command += ["--nthreads", "1"] if "--nthreads" not in more else []
        command += ["--resources", resources] if resources else []
        command += ["--local-directory", str(self.place / f"scratch-{name}"), *self.tls, *more]
        number = len(self.started)
        process = self.begin(command, STUB_WORKER=name)
        log = self.place / f"process-{number}.log"
        wait_until(lambda: "Registered to" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        return process

    def lines(self, what: str = "begin") -> list[dict[str, Any]]:
        """What stubs wrote down, in the order of time."""
        texts = (path.read_text() for path in (self.place / "log").glob("*.jsonl"))
        found = [json.loads(line) for text in texts for line in text.splitlines() if line.endswith("}")]
        return sorted((line for line in found if line["what"] == what), key=lambda line: line["at"])

    def plays(self, **actions: str) -> None:
        """What stubs do, by seed: `s3="fail"`. For processes that are started afterwards."""
        self.env["STUB_PLAN"] = json.dumps({seed.removeprefix("s"): action for seed, action in actions.items()})

    def end(self) -> None:
        """Whole sessions: workers have children."""
        for process in reversed(self.started):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait()


def _address(path: Path) -> str:
    try:
        return str(json.loads(path.read_text())["address"])
    except (ValueError, KeyError):
        return ""


def results(folder: Path) -> dict[int, list[str]]:
    """The verdicts of all tries, by seed."""
    cells = [json.loads(line) for line in (folder / "cells.jsonl").read_text().splitlines()]
    found = {}
    for cell in cells:
        tries = sorted((folder / "cells" / cell["id"]).glob("[0-9]*"), key=lambda path: int(path.name))
        found[cell["seed"]] = [json.loads((path / "cell.json").read_text())["verdict"] for path in tries]
    return found
