"""What a byte, a round trip and a start cost a program of the user, beside the testbed's own `write`.

    sudo .venv/bin/python -m benchmarks.programs [PAIRS]

One run of the quickstart's shape. In turn every 4 s a `write` sends from one host to another, and a program by TCP from
h0 to h4. CPU time of the whole machine (/proc/stat) is counted in the inner 2.5 s of each slice, over the payload that
arrived in them; what the machine does in slices without either is taken off. Then a program pings, when nothing else is
sent. Each host also has a program that prints at once: from the common start to that line is its start.

Prints the ratio of each pair of neighbouring slices with the limit of each figure, and ends with 1 if one is above it.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.believed import BusyTime

COMMAND = Path(sys.executable).with_name("mrc-testbed")
FLOWS = tuple((f"h{src}", f"h{dst}") for dst in (5, 6, 7) for src in (1, 2, 3))
"""Of one pair of hosts there can be one."""
PAIRS = 5
SLICE_S, EDGE_S = 4.0, 1.0
"""Length of a slice, and what of its begin is not measured; the last half second neither."""
T_MS = 40
MOST_TIMES, MOST_PING_MS, MOST_START_S = 1.25, 3.0, 1.0
SENDER = """\
import os, socket, sys, time
began, pairs, length = time.monotonic(), int(sys.argv[1]), float(sys.argv[2])
print("up=1", flush=True)
def at(s): time.sleep(max(0, began + s - time.monotonic()))
if os.environ["MRC_HOST"] == "h4":
    served, _ = socket.create_server(("", 5000)).accept()
    got, told = 0, time.monotonic()
    while data := served.recv(1 << 18):
        got += len(data)
        if time.monotonic() - told >= 0.05:
            told = time.monotonic()
            print(f"got={got}", flush=True)
elif os.environ["MRC_HOST"] == "h0":
    time.sleep(0.5)
    to, block = socket.create_connection(("h4", 5000)), bytes(1 << 16)
    for pair in range(pairs):
        at((3 * pair + 2) * length)
        while time.monotonic() < began + (3 * pair + 3) * length - 0.3:
            to.sendall(block)
elif os.environ["MRC_HOST"] == "h2":
    at(3 * pairs * length + 1)
    os.execvp("ping", ["ping", "-c", "20", "-i", "0.2", "h6"])
"""


def scenario_of(pairs: int) -> str:
    """Of each pair the slices nothing, `write`, program."""
    flows = "".join(
        f"  - write: {{from: {src}, to: {dst}, name: w{pair}, for: {SLICE_S - 0.3:g}s, "
        f"start: {(3 * pair + 1) * SLICE_S:g}s}}\n"
        for pair, (src, dst) in enumerate(FLOWS[:pairs])
    )
    return (
        f"name: programs\nfabric: {{planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, rtt: {T_MS}ms}}\n"
        f"workload:\n{flows}"
        f"  - programs:\n      command: python3 sender.py {pairs} {SLICE_S}\n      files: [sender.py]\n"
        "      metric: ['up=(?P<up>.)', 'got=(?P<got>[0-9]+)', 'time=(?P<ping>[0-9.]+) ms']\n"
        f"      timeout: {3 * pairs * SLICE_S + 20:g}s\n"
    )


def _rows(run: Path, name: str) -> Iterator[dict[str, str]]:
    with (run / name).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)


def measure(scenario: str, sender: str, folder: Path) -> tuple[Path, BusyTime]:
    """One run of a scenario with this sender.py, while the machine is watched."""
    (folder / "sender.py").write_text(sender, encoding="utf-8")
    (folder / "programs.yaml").write_text(scenario, encoding="utf-8")
    busy = BusyTime()
    try:
        command = [str(COMMAND), "run", str(folder / "programs.yaml"), "--out", str(folder / "out"), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        busy.end()
    if done.returncode not in (0, 3):
        raise SystemExit(f"{done.stdout}{done.stderr}")
    (run,) = (path.parent for path in (folder / "out").glob("2*/verdict.json"))
    return run, busy


def begin_of(run: Path) -> int:
    """When all began, in ns of the clock."""
    lines = map(json.loads, (run / "history.jsonl").read_text(encoding="utf-8").splitlines())
    return int(next(line["t_ns"] for line in lines if line["op"] == "workload" and line["type"] == "invoke"))


def ratios(run: Path, busy: BusyTime, pairs: int) -> Iterator[tuple[float, float]]:
    """Of each pair of slices: CPU microseconds a KB of `write`, and of the program."""
    start_ns = begin_of(run)
    received = [(int(row["end_ns"]), int(row["bytes"])) for row in _rows(run, "flows.csv")]
    printed = [(int(row["t_ns"]), float(row["value"])) for row in _rows(run, "printed.csv") if row["figure"] == "got"]

    def slice_of(number: int) -> tuple[int, int]:
        begin = start_ns + round((number * SLICE_S + EDGE_S) * 1e9)
        return begin, begin + round((SLICE_S - EDGE_S - 0.5) * 1e9)

    for pair in range(pairs):
        idle_s = busy.between(*slice_of(3 * pair))
        write, program = slice_of(3 * pair + 1), slice_of(3 * pair + 2)
        written = sum(size for t_ns, size in received if write[0] < t_ns <= write[1])
        within = [got for t_ns, got in printed if program[0] < t_ns <= program[1]]
        yield (
            (busy.between(*write) - idle_s) * 1e9 / written,
            (busy.between(*program) - idle_s) * 1e9 / (within[-1] - within[0]),
        )


def main() -> int:
    """Measure, print, compare with the limits."""
    pairs = min(int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS, len(FLOWS))
    with tempfile.TemporaryDirectory() as folder:
        run, busy = measure(scenario_of(pairs), SENDER, Path(folder))
        costs = list(ratios(run, busy, pairs))
        start_ns = begin_of(run)
        figures = [(row["figure"], int(row["t_ns"]), float(row["value"])) for row in _rows(run, "printed.csv")]
        reasons = json.loads((run / "verdict.json").read_text())["fidelity"]
    for write, program in costs:
        print(f"write {write:6.2f} us a KB   program {program:6.2f} us a KB   ratio {program / write:.2f}")
    times = statistics.median(program / write for write, program in costs)
    ping = statistics.median(value for figure, _, value in figures if figure == "ping") - T_MS
    start_s = max(t_ns - start_ns for figure, t_ns, _ in figures if figure == "up") / 1e9
    print(f"CPU a byte, program / write  {times:6.2f}     at most {MOST_TIMES}")
    print(f"ping, median less T          {ping:6.2f} ms  at most {MOST_PING_MS} ms")
    print(f"start of 8 programs          {start_s:6.2f} s   at most {MOST_START_S} s")
    if not reasons["ok"]:
        print("the machine did not keep time in this run")
    return int(times > MOST_TIMES or ping > MOST_PING_MS or start_s > MOST_START_S)


if __name__ == "__main__":
    sys.exit(main())
