"""What is odd about programs of the user: a shell's syntax without a shell, files that no host has, numbers that nobody
finds. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.model.programs import UNNAMED_FIGURE
from mrc_testbed.testbed.scenario.model.workloads import NamedPrograms

_INTERPRETERS = re.compile(r"(ba|da|z)?sh|python[\d.]*|node|perl|ruby|Rscript|torchrun|lua")
_SCRIPT = re.compile(r"[\w./-]*\w\.(py|sh|js|mjs|pl|rb|R|lua)")
_PLAIN = "2.5"
_NUMBERS = ("nan", "inf", "-0.3", "1e-05")
"""What programs may print in place of it."""
_GROUP = re.compile(r"\((\?P<(?P<name>\w+)>)?(?P<of>[^()?][^()]*)\)")
"""A group of a pattern that has none inside."""
_OF_STEPS = ("step_time", "steps_done")


def program_warnings(scenario: Scenario) -> Iterator[str]:
    """A line for each, for people."""
    programs = scenario.job.programs
    for job in programs:
        for command in job.entry.all_commands:
            yield from (f"{job.name}: {words}" for words in command.shell)
            yield from _lacking_file(job, command)
        yield from _narrow_patterns(job)
    if programs and len(programs) == len(scenario.jobs) and not any(job.entry.step for job in programs):
        for wanted in scenario.expect:
            if wanted.metric.name in _OF_STEPS:
                yield f"{wanted.text}: nothing will be known of it: no program has `step`, the line that ends one"


def _lacking_file(job: NamedPrograms, command: Sequence[str]) -> Iterator[str]:
    """A script is not copied to hosts unless it is among `files`."""
    name = _script(command)
    path = PurePosixPath(name)
    if name and not path.is_absolute() and str(path) not in map(str, map(PurePosixPath, job.entry.files)):
        files = ", ".join((*job.entry.files, str(path)))
        yield f"{job.name}: {name} is not among `files`, so no host has it; write `files: [{files}]`"


def _script(command: Sequence[str]) -> str:
    """The file of the user that a command begins with; empty where it names none."""
    first, *rest = command
    if not _INTERPRETERS.fullmatch(PurePosixPath(first).name):
        return first if first.startswith(("./", "../")) else ""
    words = (word for word in rest if not word.startswith("-"))
    flags = [word for word in rest if word in ("-c", "-m", "-e", "-", "-s", "-p")]
    found = next(words, "")
    return found if not flags and _SCRIPT.fullmatch(found) else ""


def _narrow_patterns(job: NamedPrograms) -> Iterator[str]:
    """Patterns that find a plain number in their line and nothing in the same line where it is another one."""
    for pattern in job.entry.metric:
        for place in _GROUP.finditer(pattern):
            missed = [text for text in _NUMBERS if not re.fullmatch(place["of"], text)]
            if missed and re.fullmatch(place["of"], _PLAIN):
                wider = pattern.replace(place[0], f"<{place['name'] or UNNAMED_FIGURE}>")
                yield f"{job.name}: metric: {place[0]} does not see {', '.join(missed)}; write {wider!r}"
