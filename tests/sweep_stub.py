"""Takes the place of `mrc-testbed run` in a cell: does what STUB_PLAN says of its seed, and writes down that it was
there.

A line in STUB_LOG when it begins and one when it ends: worker, seed, its process and that of its child.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from mrc_testbed.testbed.launcher.tied import end_with

CODES = {"pass": 0, "fail": 1, "inconclusive": 3, "interrupted": 130}
WORKER = os.environ.get("STUB_WORKER", "here")


def note(what: str, seed: int, child: int = 0) -> None:
    line = {"what": what, "worker": WORKER, "seed": seed, "pid": os.getpid(), "child": child, "at": time.monotonic()}
    with (Path(os.environ["STUB_LOG"]) / f"{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps({**line, "above": os.getppid()}) + "\n")


def verdict_of(action: str) -> str:
    """`spoilt-on:b`: inconclusive on that worker alone."""
    kind, _, worker = action.partition(":")
    if kind == "spoilt-on":
        return "inconclusive" if worker in ("", WORKER) else "pass"
    return kind if kind in CODES else "pass"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", type=Path)
    parser.add_argument("--quiet", action="store_true")
    for name in ("--out", "--cell"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--tied", type=int)
    asked = parser.parse_args()
    seed = int(re.findall(r"^seed: (\d+)", asked.scenario.read_text(), re.MULTILINE)[0])
    action = json.loads(os.environ.get("STUB_PLAN", "{}")).get(str(seed), "pass")
    child = subprocess.Popen(["sleep", "600"])

    def end(verdict: str) -> NoReturn:
        child.kill()
        child.wait()
        machine = {"host": WORKER, "kernel": "stub", "cpus": 1, "pps": 1}
        content = {"verdict": verdict, "exit_code": CODES[verdict], "reason": "" if verdict == "pass" else "as planned"}
        more = {"another_try": verdict == "inconclusive", "seconds": 0.3, "machine": machine, "run": None}
        asked.cell.write_text(json.dumps(content | more))
        note("end", seed)
        sys.exit(CODES[verdict])

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: end("interrupted"))
    end_with(asked.tied)
    note("begin", seed, child.pid)
    if action == "kill-worker":
        os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60 if action in ("slow", "kill-worker") else float(os.environ.get("STUB_S", "0.3")))
    end(verdict_of(action))


main()
