"""What was predicted before each run, kept beside the runs: a prediction that came later is told, and costs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.folders import make_own
from mrc_testbed.testbed.lessons.lesson import Answers
from mrc_testbed.testbed.lessons.work import Work
from mrc_testbed.testbed.rundir.files import read_json, write_failed, write_json
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.rundir.results import began_s

FILE = "predictions.json"
_STAMP_S = 1.0
"""The name of a run has whole seconds."""


def _predicted(work: Work, answers: Answers) -> dict[str, Any]:
    return {one.name: answers.get(one.name) for one in work.lesson.questions if one.predicted}


def note_predictions(work: Work, answers: Answers, now_s: float) -> None:
    """A run begins now. The first predictions stay: who predicts again after a run has seen one. Raises RunError where
    this machine does not let it be written, UsageError where another file is in the way."""
    path = work.runs / FILE
    try:
        make_own(path.parent)
        known = read_json(path) or {}
        for name, given in _predicted(work, answers).items():
            if given is not None:
                known.setdefault(name, {"given": given, "at_s": now_s})
        write_json(path, known)
    except OSError as error:
        if isinstance(error, FileExistsError | NotADirectoryError | IsADirectoryError):
            raise UsageError(f"{error.filename or path}: cannot be written: {error.strerror}") from error
        raise write_failed(path, error) from error
    give((path.parent, path))


def late_predictions(work: Work, answers: Answers, runs: Sequence[Path]) -> Iterable[str]:
    """A sentence for those that are not what was noted before these runs, or, where nothing was noted, that were
    written after the first of them began."""
    known = read_json(work.runs / FILE) or {}
    begun = min((began_s(folder) for folder in runs), default=None)
    if begun is None:
        return
    late = list(_late(_predicted(work, answers), known, begun, _written_s(work)))
    if late:
        were = "was" if len(late) == 1 else "were"
        yield f"{', '.join(late)} {were} written or changed after the run; no points are lost"


def _late(predicted: Answers, known: dict[str, Any], begun_s: float, written_s: float) -> Iterator[str]:
    for name, given in predicted.items():
        noted = known.get(name)
        if given is None:
            continue
        if isinstance(noted, dict):
            if noted.get("given") != given:
                yield name
        elif written_s > begun_s + _STAMP_S:
            yield name


def _written_s(work: Work) -> float:
    try:
        return work.answers_file.stat().st_mtime
    except OSError:
        return 0.0
