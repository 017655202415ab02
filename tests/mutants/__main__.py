"""Mutants of the judges, and the tests that must notice them. Exit status 1: a mutant survives without a reason in
survivors.toml, or too few were killed.

python -m tests.mutants                          # all of them
python -m tests.mutants --minutes 10 --seed 7    # as many as ten minutes allow, drawn by a seed
python -m tests.mutants --room expect --only _bound
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time

from tests.mutants.exchange import ROOT
from tests.mutants.reasons import FILE, read_reasons
from tests.mutants.results import closing
from tests.mutants.run import Judges, Limits, try_all

ROOMS = ("evidence", "checks", "expect", "mapper", "compare")
TESTS = (
    *(f"tests/unit/{room}" for room in (*ROOMS, "incidents", "metrics", "report")),
    "tests/oracles",
    "tests/windows",
)
"""Of the rooms themselves, and of those that use them most."""


def judges_of(rooms: tuple[str, ...] = ROOMS) -> Judges:
    """The rooms that judge; all of their tests, for each of them."""
    return Judges(tuple(f"testbed/{room}" for room in rooms), TESTS, ROOT / ".venv" / "mutants")


def main() -> int:
    """Both kinds of mutants in turn, then what came of all."""
    given = _arguments()
    rooms = tuple(given.room.split(",")) if given.room else ROOMS
    wanted = [place for place in judges_of(rooms).places() if given.only in str(place.mutant)]
    if given.minutes:
        random.Random(given.seed).shuffle(wanted)
        _tell(f"{len(wanted)} mutants, a sample of {given.minutes:g} minutes: SEED={given.seed}")
    limits = Limits(given.jobs, 60 * given.minutes or float("inf"))
    results = try_all(judges_of(), wanted, limits, _tell)
    lines, good = closing(results, read_reasons(FILE.read_text(encoding="utf-8")))
    _tell("\n".join(lines))
    return 0 if good else 1


def _tell(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--room", default="", help=f"some of {', '.join(ROOMS)}, with commas between; usual: all")
    parser.add_argument("--only", default="", help="mutants whose file, function or text has this in it")
    parser.add_argument("--minutes", type=float, default=0, help="a sample, for that long; usual: all mutants")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6, help="of the sample; usual: a new one")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="children side by side")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
