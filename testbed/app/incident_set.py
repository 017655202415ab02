"""A set of cases: drawn, run, answered by the mapper and scored, several at once; the same each time.

A draw that nothing came of is no case, and the next draw of its seed takes its place. In virtual time alone, as a
kernel carries one run at a time.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.app.incidents import observe
from mrc_testbed.testbed.checks.answers import Answer
from mrc_testbed.testbed.checks.fabric_map import map_answers
from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.incidents.answering import answer_file, answers_to, keep_answers
from mrc_testbed.testbed.incidents.case import CaseFolder, make_case
from mrc_testbed.testbed.incidents.draw import MOST_ATTEMPTS, draw_case
from mrc_testbed.testbed.incidents.observed import observed_record
from mrc_testbed.testbed.incidents.scoring import CaseScore, scored, truth_of
from mrc_testbed.testbed.incidents.totals import ScoreTotals, by_harm, by_kind
from mrc_testbed.testbed.interrupts import held_back, let_through
from mrc_testbed.testbed.launcher.tied import end_with_parent
from mrc_testbed.testbed.rundir.files import read_json, write_failed
from mrc_testbed.testbed.rundir.lock import NoLocks, locked
from mrc_testbed.testbed.rundir.ownership import write_given
from mrc_testbed.testbed.version import NAME, commit

MAPPER = "mapper"
"""Whose answers they are."""
SCORES_FILE, SET_FILE, LOCK_FILE = "scores.json", "set.json", "lock"


@dataclass(frozen=True, slots=True)
class SetScore:
    """Of a case of a set. `redrawn`: draws of its seed before it that nothing came of."""

    seed: int
    redrawn: int
    score: CaseScore

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"seed": self.seed, "redrawn": self.redrawn, **self.score.document()}


def score_set(
    folder: Path, seeds: Sequence[int], jobs: int, seen: Callable[[SetScore], None], kind: str | None = None
) -> list[SetScore]:
    """Cases of these seeds in a folder, and their scores in `scores.json` of it. What is there of a set that was broken
    off, or had fewer seeds, is not run again. `seen`: told of each, in order.

    Raises UsageError for a folder with something else, or in which a set is being made; RunError for a seed that gives
    no case.
    """
    _open_set(folder, kind)
    found = []
    with _alone_in(folder):
        for one in _each(partial(_scored_seed, folder, kind), seeds, jobs):
            seen(one)
            found.append(one)
    path = folder / SCORES_FILE
    try:
        write_given(path, json.dumps(set_document(found), indent=1) + "\n")
    except OSError as error:
        raise write_failed(path, error) from error
    return found


def _open_set(folder: Path, kind: str | None) -> None:
    asked = {"kind": kind, "version": metadata.version(NAME), "commit": commit()}
    if folder.is_dir() and (there := read_json(folder / SET_FILE)) is not None:
        if other := [key for key in asked if there.get(key) != asked[key]]:
            words = f"{other[0]} {there.get(other[0])!r}, not {asked[other[0]]!r}"
            raise UsageError(f"{folder}: has a set of {words}; name another folder, or remove it")
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already; name another folder, or remove it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_given(folder / SET_FILE, json.dumps(asked) + "\n")
    except OSError as error:
        raise write_failed(folder / SET_FILE, error) from error


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Workers of a command that was killed hold it until they have ended, too."""
    try:
        with ExitStack() as held:
            with suppress(NoLocks):
                held.enter_context(locked(folder / LOCK_FILE))
            yield
    except BlockingIOError:
        raise UsageError(f"{folder}: another `incident set` is at work there; wait for its end") from None


def set_document(found: Sequence[SetScore]) -> dict[str, Any]:
    """As JSON has it."""
    scores = [one.score for one in found]
    return {
        "cases": [one.document() for one in found],
        "by_kind": {word: totals.document() for word, totals in by_kind(scores).items()},
        "by_harm": {word: totals.document() for word, totals in by_harm(scores).items()},
        "totals": ScoreTotals(scores).document(),
    }


def _each(work: Callable[[int], SetScore], seeds: Sequence[int], jobs: int) -> Iterator[SetScore]:
    if jobs == 1:
        yield from map(work, seeds)
        return
    processes = get_context("fork" if "fork" in get_all_start_methods() else "spawn")
    with ProcessPoolExecutor(jobs, processes, _follow_the_command) as pool:
        try:
            with held_back():
                found = pool.map(work, seeds)
            yield from found
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _follow_the_command() -> None:
    """Ctrl-C is for the command, and its end is ours."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()
    let_through()


def _scored_seed(folder: Path, kind: str | None, seed: int) -> SetScore:
    """The case of a seed, answered by the mapper."""
    attempt = 0
    for redrawn in range(MOST_ATTEMPTS):
        draft = draw_case(seed, kind, attempt=attempt)
        case = CaseFolder(folder.resolve() / draft.id)
        if answer_file(case, MAPPER).exists():
            return SetScore(seed, redrawn, scored(truth_of(case), MAPPER, answers_to(case)[MAPPER]))
        _remove(case)
        make_case(draft, folder)
        if observe(case).counts:
            answers = answered_by_mapper(case)
            return SetScore(seed, redrawn, scored(truth_of(case), MAPPER, answers))
        _remove(case)
        attempt = draft.attempt + 1
    raise RunError(f"seed {seed}: nothing came of {MOST_ATTEMPTS} draws; take other seeds")


def _remove(case: CaseFolder) -> None:
    """Removes a case and its truth, also where a kill has left one of them."""
    for folder in (case.folder, case.truth):
        if folder.exists():
            shutil.rmtree(folder)


def answered_by_mapper(case: CaseFolder) -> list[Answer]:
    """What the mapper says of a case by what its hosts told, kept beside it."""
    answers = map_answers(observed_record(case))
    lines = [answer.model_dump_json(exclude_none=True) for answer in answers]
    return keep_answers(case, MAPPER, MAPPER, lines)
