"""Runs programs that the user has built elsewhere, one after the other, each in a scenario with faults.

Exit status: 0 all passed, 1 one failed, 2 a path is wrong, 3 the machine kept no time, 4 the machine lacks something.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from mrc_testbed.testbed.errors import ExitCode, TestbedError, UsageError
from mrc_testbed.testbed.fabric.verbs_library import libraries
from mrc_testbed.testbed.rundir.results import run_folders

from .kinds import Kind, kind_of
from .scenario import CLIENT, SERVER, write_scenario

COMMAND = str(Path(sys.executable).with_name("mrc-testbed"))
TRIES = 2
"""More of them for a run that the machine spoiled."""
HOW = 'name what you have built: make test-thirdparty PROGRAMS="/path/mrc_example /path/libnccl-net.so"'
_WORDS = {0: "PASS", 1: "FAIL", 3: "inconclusive", 4: "not run"}
_MOST_SERIOUS = (130, 1, 4, 2, 3, 0)
_FIGURES = {
    Kind.BENCHMARK: re.compile(r"^ *(?P<size>\d+) +\d+ +(?P<rate>\d+\.\d+) +\d+\.\d+ *$", re.MULTILINE),
    Kind.PLUGIN: re.compile(r"^sent (?P<size>\d+ messages), .*: (?P<rate>[0-9.]+) MB/s", re.MULTILINE),
}
"""Lines of the client's output."""
_UNITS = {Kind.BENCHMARK: ("B", "Gb/s"), Kind.PLUGIN: ("", "MB/s")}


def run_program(path: Path, kind: Kind, out: Path) -> tuple[int, str]:
    """The status of its run, and a line that tells it."""
    before = set(run_folders(out)) if out.is_dir() else set()
    with tempfile.TemporaryDirectory() as folder:
        scenario = write_scenario(Path(folder) / "scenario", path, kind)
        command = [COMMAND, "run", str(scenario), "--out", str(out), "--retry-inconclusive", str(TRIES)]
        status = subprocess.run(command, check=False).returncode
    made = sorted(set(run_folders(out)) - before) if out.is_dir() else []
    figures = f"{_figures(made[-1], kind)}, {made[-1]}" if made else "no run"
    return status, f"{_WORDS.get(status, f'status {status}')}  {path}, {kind.value}: {figures}"


def _figures(folder: Path, kind: Kind) -> str:
    """What is in the server's memory, and what the client printed."""
    try:
        counted = json.loads((folder / "counters.json").read_text(encoding="utf-8"))["hosts"][SERVER]["counters"]
        printed = (folder / f"programs/{CLIENT}.log").read_text(encoding="utf-8", errors="replace")
    except (OSError, KeyError):
        return "no figures"
    of, unit = _UNITS[kind]
    told = [f"{row['size']} {of}".strip() + f" at {row['rate']} {unit}" for row in _FIGURES[kind].finditer(printed)]
    return ", ".join((f"{counted['verbs_in_bytes'] / 1e6:.1f} MB", *told))


def main(words: list[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="tests.thirdparty", description=__doc__)
    parser.add_argument("programs", nargs="*", type=Path, help="executables, and plugins of NCCL's network interface")
    parser.add_argument("--libraries", action="store_true", help="only print the folder of the libraries to link with")
    parser.add_argument("--out", type=Path, default=Path("results/thirdparty"), help="folder of the runs")
    given = parser.parse_args(words)
    try:
        if given.libraries:
            sys.stdout.write(f"{libraries()}\n")
            return ExitCode.PASS
        if not given.programs:
            raise UsageError(HOW)
        kinds = [(path, kind_of(path)) for path in given.programs]
        ended = [run_program(path, kind, given.out) for path, kind in kinds]
    except TestbedError as error:
        sys.stderr.write(f"test-thirdparty: {error}\n")
        return error.exit_code
    sys.stdout.write("".join(f"{line}\n" for _, line in ended))
    statuses = [status for status, _ in ended]
    return next((each for each in _MOST_SERIOUS if each in statuses), ExitCode.FAIL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
