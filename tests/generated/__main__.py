"""Many seeds at once, in processes; of one that fails the scenario is written.

python -m tests.generated --seeds 1000              # seeds 1 to 1000 in virtual time, on all cores
sudo .venv/bin/python -m tests.generated --seeds 10 --kernel
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from mrc_testbed.testbed.cpus import usable_cpus
from mrc_testbed.testbed.errors import MissingCapability
from tests.generated.oracle import wrong_with
from tests.generated.scenario import cells_of, drawn_scenario

FAILED = Path("results/generated")


def try_seed(seed: int, kernel: bool = False, failed: Path = FAILED) -> list[str]:
    """What is wrong with the runs of a seed; the scenario is then a file below `failed`, which the first line names."""
    drawn = drawn_scenario(seed, kernel)
    wrong = []
    with TemporaryDirectory() as scratch:
        try:
            for cell in cells_of(drawn, Path(scratch) / "scenario.yaml"):
                wrong += wrong_with(cell.scenario, Path(scratch) / "results")
        except MissingCapability:
            pass  # this kernel lacks what the scenario needs, and it said so
        except Exception:
            wrong.append(traceback.format_exc())
    if not wrong:
        return []
    failed.mkdir(parents=True, exist_ok=True)
    file = failed / f"generated-{seed}.yaml"
    file.write_text(
        "".join(f"# {line}\n" for each in wrong for line in each.splitlines()) + drawn.text, encoding="utf-8"
    )
    for name, content in drawn.files.items():
        (failed / name).write_text(content, encoding="utf-8")
    return [f"seed {seed}: mrc-testbed run {file}", *wrong]


def main() -> int:
    """Exit status 0: no seed failed."""
    given = _arguments()
    began, failures = time.monotonic(), 0
    seeds = range(given.first, given.first + given.seeds)
    with ProcessPoolExecutor(1 if given.kernel else given.jobs) as pool:
        for wrong in pool.map(try_seed, seeds, [given.kernel] * len(seeds)):
            failures += bool(wrong)
            print("\n".join(wrong), end="\n" if wrong else "", flush=True)  # noqa: T201
    took = f"{time.monotonic() - began:.0f} s"
    print(f"seeds {given.first} to {seeds[-1]}: {failures} failed, in {took}")  # noqa: T201
    return 1 if failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.generated", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many; 100")
    parser.add_argument("--first", type=int, default=1, help="the first of them; 1")
    parser.add_argument("--jobs", type=int, default=usable_cpus(), help="processes; one a core")
    parser.add_argument("--kernel", action="store_true", help="on this kernel, one after the other; needs root")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
