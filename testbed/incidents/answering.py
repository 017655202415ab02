"""Answers to a case, beside it: checked, one file a name, and never overwritten."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mrc_testbed.testbed.checks.answers import Answer, AnswersError, read_answers
from mrc_testbed.testbed.errors import Problem, UsageError
from mrc_testbed.testbed.incidents.blind import TOPOLOGY_FILE
from mrc_testbed.testbed.incidents.case import CaseFolder
from mrc_testbed.testbed.incidents.kinds import WHAT
from mrc_testbed.testbed.rundir.files import RecordError, open_plain, read_json, refuse_links, write_failed
from mrc_testbed.testbed.rundir.ownership import write_given

ANSWERS = "answers"
SUFFIX = ".jsonl"
MOST_ANSWER_BYTES = 16 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


def answer_file(case: CaseFolder, name: str) -> Path:
    """Where the answers of this name are. Raises UsageError for what is no name."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"--name {name}: 1 to 40 letters, digits, - and _, with a letter or a digit first")
    return case.folder / ANSWERS / f"{name}{SUFFIX}"


def names_in_fabric(case: CaseFolder) -> tuple[str, ...]:
    """What an answer may name: hosts, switches, links. Raises UsageError before the case was observed."""
    fabric = read_json(case.folder / TOPOLOGY_FILE) if "start_ns" in case.about() else None
    if fabric is None:
        raise UsageError(f"{case.folder}: was not run yet; `incident observe {case.folder}` does")
    try:
        return tuple(str(one["name"]) for key in ("hosts", "switches", "links") for one in fabric[key])
    except (KeyError, TypeError):
        raise RecordError(
            case.folder / TOPOLOGY_FILE, "lacks hosts, switches or links; observe the case again"
        ) from None


def checked(case: CaseFolder, source: str, lines: Sequence[str]) -> list[Answer]:
    """Answers in lines of JSON. `source`: what mistakes call them. Raises AnswersError with all mistakes, UsageError
    where there is no answer at all."""
    answers = read_answers(source, lines, names_in_fabric(case), WHAT)
    lasts_s = float(case.about()["lasts_s"])
    late = [one for one in answers if one.t_s > lasts_s]
    if late:
        number = next(n for n, line in enumerate(reversed(lines)) if line.strip())
        text = f"{late[-1].t_s:g} s: the case ends at {lasts_s:g} s; times count from the workload's start"
        raise AnswersError([Problem(source, len(lines) - number, 1, "t_s", text)])
    if not answers:
        raise UsageError(f'{source}: has no answer; write a line such as {{"t_s": 2, "state": "healthy"}}')
    return answers


def free_name(case: CaseFolder, name: str) -> Path:
    """The file for the answers of a name that has not answered yet. Raises UsageError, RecordError."""
    path = answer_file(case, name)
    refuse_links(case.folder, ANSWERS, path.name)
    if path.exists():
        raise UsageError(f"{path}: {name} has answered before; take another --name, or remove that file")
    return path


def keep_answers(case: CaseFolder, name: str, source: str, lines: Iterable[str]) -> list[Answer]:
    """Check answers, and put them beside the case. Raises UsageError where this name has answered before, AnswersError,
    RunError where they cannot be written."""
    path = free_name(case, name)
    kept = [line.strip() for line in lines]
    answers = checked(case, source, kept)
    try:
        write_given(path, "".join(f"{line}\n" for line in kept if line))
    except OSError as error:
        raise write_failed(path, error) from error
    return answers


def read_answer_lines(path: Path) -> list[str]:
    """The lines of a file of answers. Raises UsageError where there is none, RecordError for what is no plain file, or
    too long."""
    try:
        with open_plain(path, MOST_ANSWER_BYTES) as file:
            return answer_lines(str(path), file.read(MOST_ANSWER_BYTES))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


def answer_lines(source: str, content: bytes) -> list[str]:
    """Bytes as lines. Raises UsageError for what is no UTF-8, or too long."""
    if len(content) > MOST_ANSWER_BYTES:
        raise UsageError(f"{source}: has more than {MOST_ANSWER_BYTES} bytes; answer when something has changed")
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{source}:{line}: is not UTF-8; answers are lines of JSON") from None


def answers_to(case: CaseFolder) -> Mapping[str, list[Answer]]:
    """All that are beside the case, by name. Raises as `keep_answers`, as somebody may have changed them."""
    refuse_links(case.folder, ANSWERS)
    folder = case.folder / ANSWERS
    files = sorted(path for path in folder.glob(f"*{SUFFIX}") if _NAME.fullmatch(path.stem)) if folder.is_dir() else []
    return {path.stem: checked(case, str(path), read_answer_lines(path)) for path in files}
