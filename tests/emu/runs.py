"""Runs started as a user starts them, and what they leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.launcher.start import PASSED
from mrc_testbed.testbed.rundir.results import run_folders
from tests.retry import Inconclusive

COMMAND = [str(Path(sys.executable).with_name("mrc-testbed"))]
MARK = "MRC_TEST_RUN"
DAEMON = "mrc_testbed.hosts.forker"
"""In the command line of every daemon: that of the process which forked it."""
_FEW_PACKETS = 50
"""More than the probes of a warm-up and what receivers tell senders; far fewer than the data of a step."""
SMALL = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 20ms}
workload:
  - train: {hosts: all, steps: STEPS, compute: 20ms, allreduce: 256KiB}
expect:
  - qp_errors == 0
  - bytes_wrong == 0
  - data_on_bad_ev == 0
"""


class Run:
    """A `mrc-testbed run` in the background. Its processes are known by a mark in their environment."""

    def __init__(
        self,
        folder: Path,
        steps: int = 5,
        extra: str = "",
        wrapper: list[str] | None = None,
        options: tuple[str, ...] = (),
        scenario: str = SMALL,
    ) -> None:
        self.out = folder / "results"
        self.scenario = folder / "scenario.yaml"
        self.scenario.parent.mkdir(parents=True, exist_ok=True)
        self.scenario.write_text(scenario.replace("STEPS", str(steps)) + extra, encoding="utf-8")
        self.mark = uuid4().hex
        command = [*(wrapper or []), *COMMAND, "run", str(self.scenario), "--out", str(self.out), *options]
        self.process = subprocess.Popen(
            command,
            env={**os.environ, MARK: self.mark, PASSED: MARK},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.output = self.errors = ""

    def finish(self, timeout_s: float = 60) -> int:
        """Wait for its end; afterwards `output` and `errors` are there, and none of its processes."""
        self.output, self.errors = self.process.communicate(timeout=timeout_s)
        wait_for(lambda: not self.pids(), "the run's processes to be gone")
        return self.process.returncode

    def pids(self, what: str = "") -> list[int]:
        """Processes of this run, or those whose command line holds `what`."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                mine = entry.name.isdigit() and self.mark.encode() in (entry / "environ").read_bytes()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode() if mine else ""
            except OSError:
                continue
            if mine and what in command:
                found.append(int(entry.name))
        return sorted(found)

    def wait_until_step(self, step: int) -> None:
        """Until some rank has finished that step."""
        wait_for(lambda: any(f",{step}," in text for text in self._texts("completions.csv")), f"step {step}")

    def wait_until_flowing(self, flow: str) -> None:
        """Until the first data of that flow were told of."""
        wait_for(lambda: any(f",{flow}," in text for text in self._texts("messages.csv")), flow)

    def _texts(self, name: str) -> list[str]:
        return [path.read_text(encoding="utf-8") for path in self.out.glob(f"*/{name}")]

    @property
    def folder(self) -> Path:
        """The one run folder."""
        (only,) = run_folders(self.out)
        return only

    @property
    def verdict(self) -> dict[str, Any]:
        """verdict.json."""
        loaded: dict[str, Any] = json.loads((self.folder / "verdict.json").read_text(encoding="utf-8"))
        return loaded

    def history(self) -> list[dict[str, Any]]:
        """history.jsonl."""
        return [json.loads(line) for line in (self.folder / "history.jsonl").read_text(encoding="utf-8").splitlines()]

    def assert_passed_or_machine_was_busy(self) -> None:
        """Every check held. On a machine that did not keep time the verdict may be inconclusive, but for that alone.

        Raises Inconclusive when the machine was so late that a check did not hold, or is not known.
        """
        verdict = self.verdict
        held = {check["name"]: check.get("unbelieved") or check["status"] for check in verdict["checks"]}
        others = {name: status for name, status in held.items() if status != "pass"}
        late = ", ".join(lateness_of(verdict))
        if others and late and verdict["verdict"] == "inconclusive":
            raise Inconclusive(f"{late}, so nothing is known of {others}")
        assert not others, f"{others}\n{self.output}"
        assert (self.process.returncode, verdict["verdict"]) in ((0, "pass"), (3, "inconclusive"))


OF_THE_MACHINE = {
    *("timers late (p99)", "timers late (worst)", "waiting for a CPU", "CPU pressure"),
    *("socket drops", "kernel input drops", "packets handled late", "packets late on a link", "wall clock jumps"),
}
"""Figures of fidelity by which a machine that is too slow shows. The others would be the program's doing."""


def lateness_of(verdict: dict[str, Any]) -> Iterator[str]:
    """Everything in verdict.json that says that the machine did not keep time."""
    for figure in verdict["fidelity"]["figures"]:
        if not figure["ok"] and figure["name"] in OF_THE_MACHINE:
            yield f"{figure['name']} {figure['observed']} {figure['unit']}"
    for check in verdict["checks"]:
        why = check["why"] or ""
        if check["status"] == "inconclusive" and all(part.endswith(" late") for part in why.split("; ")):
            yield why


def assert_data_took_the_foretold_uplinks(run: Run) -> None:
    """Each uplink of a T0 that carried more than warm-up packets was foretold, and each that was foretold did."""
    environment = json.loads((run.folder / "environment.json").read_text(encoding="utf-8"))
    if environment["switch_ports"] != "port program":
        assert "uplinks" not in environment
        return
    plan = load_record(run.folder).plan
    foretold = {
        (f"p{row['plane']}-t0-{plan.host_by_name[row['from']].group}", f"up{row['uplink']}")
        for row in environment["uplinks"]
        if row["uplink"] is not None
    }
    ports = json.loads((run.folder / "counters.json").read_text(encoding="utf-8"))["ports"]
    data = {(node, port): row["out_data"] for node in ports for port, row in ports[node].items() if port[:2] == "up"}
    assert foretold == {where for where, packets in data.items() if packets > _FEW_PACKETS} != set()


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 40) -> None:
    """Poll until it holds; fail with what was waited for."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)
