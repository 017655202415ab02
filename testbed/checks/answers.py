"""Answers to "what is broken", as programs, students and the mapper give them: lines of JSON, each until the next.

    {"t_s": 12.4, "state": "incident", "p": 0.9, "incidents": [{"where": ["p0-t0-0:p0-t1-2"], "what": "link-loss",
     "direction": "up", "since_s": 8.0, "amount": 0.05, "p": 0.8}], "evidence": "not scored"}

Times count from the start of the workload. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

from pydantic import Field, ValidationError

from mrc_testbed.testbed.errors import ExitCode, Problem, TestbedError
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.mapper.mapper import MapAction, MapChange
from mrc_testbed.testbed.mapper.suspects import Direction
from mrc_testbed.testbed.rundir.files import parse_json
from mrc_testbed.testbed.scenario.load.wording import mistake_of
from mrc_testbed.testbed.scenario.text.fields import Model

_S = 1e9


class AnswerState(StrEnum):
    """What an answer says of the whole fabric."""

    INCIDENT = "incident"
    HEALTHY = "healthy"
    UNSURE = "unsure"


class Incident(Model):
    """Something that is broken, in the opinion of who answers."""

    where: tuple[str, ...] = Field(min_length=1, description="hosts, NIC ports, links, switches", examples=["[h3]"])
    what: str | None = Field(default=None, description="a kind of fault; null: not said", examples=["link-loss"])
    direction: Direction | None = Field(default=None, description="of a link that loses one way", examples=["up"])
    since_s: float | None = Field(default=None, allow_inf_nan=False, description="since when", examples=[8.0])
    amount: float | None = Field(default=None, ge=0, le=1, description="the share of packets lost", examples=[0.05])
    p: float = Field(default=1.0, ge=0, le=1, description="how sure that is", examples=[0.8])


class Answer(Model):
    """All that is taken for broken from `t_s` on, until the next answer."""

    t_s: float = Field(ge=0, allow_inf_nan=False, description="seconds since the workload began", examples=[12.4])
    state: AnswerState = Field(description="incident, healthy or unsure", examples=["incident"])
    p: float = Field(default=1.0, ge=0, le=1, description="how sure that is", examples=[0.9])
    incidents: tuple[Incident, ...] = Field(default=(), description="what is broken", examples=["[]"])
    evidence: Any = Field(default=None, description="not scored", examples=["in words"])

    @property
    def places(self) -> dict[str, Incident]:
        """What is named, each with its incident."""
        return {name: one for one in self.incidents for name in one.where}


class AnswersError(TestbedError):
    """Answers with mistakes; `problems` holds all of them."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


def read_answers(file: str, lines: Iterable[str], places: Collection[str], kinds: Collection[str]) -> list[Answer]:
    """Lines of JSON, empty ones left out. `places`: names of the fabric; `kinds`: words that `what` may have. Raises
    AnswersError with every mistake: what is no JSON or no answer, names what is not there, or comes twice."""
    answers: list[Answer] = []
    problems: list[Problem] = []
    last_line = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            answer, found = read_answer(line, places, kinds)
            if answer and answers and answer.t_s <= answers[-1].t_s:
                twice = (
                    f"line {last_line} answers for {answers[-1].t_s:g} s; give one answer for a time, the latest last"
                )
                found = [*found, (1, "t_s", twice)]
            if answer and not found:
                answers.append(answer)
                last_line = number
            problems += [Problem(file, number, column, path, text) for column, path, text in found]
    if problems:
        raise AnswersError(problems)
    return answers


def read_answer(
    line: str, places: Collection[str], kinds: Collection[str]
) -> tuple[Answer | None, list[tuple[int, str, str]]]:
    """One line, and what is wrong with it: column, path and message. None where it is no answer at all."""
    try:
        content = parse_json(line)
    except ValueError as error:
        column = error.colno if isinstance(error, json.JSONDecodeError) else 1
        return None, [(column, "answer", f"is not JSON: {getattr(error, 'msg', error)}; write one object a line")]
    if not isinstance(content, dict):
        return None, [(1, "answer", 'must be an object, such as {"t_s": 2, "state": "healthy"}')]
    try:
        answer = Answer.model_validate(content)
    except ValidationError as error:
        mistakes = (mistake_of(each, Answer) for each in error.errors(include_url=False))
        return None, [(1, ".".join(map(str, one.path)) or "answer", one.message) for one in mistakes]
    return answer, [(1, path, message) for path, message in _wrong(answer, places, kinds)]


def _wrong(answer: Answer, places: Collection[str], kinds: Collection[str]) -> Iterator[tuple[str, str]]:
    """What the fabric does not have, what comes twice, and a state that its incidents contradict."""
    seen: dict[str, str] = {}
    for number, incident in enumerate(answer.incidents):
        for item, name in enumerate(incident.where):
            path = f"incidents.{number}.where.{item}"
            if name not in places:
                yield path, f"there is no {name!r} in this fabric{did_you_mean(name, places)}"
            elif name in seen:
                yield path, f"{name} comes twice; {seen[name]} has it; leave one of them out"
            seen.setdefault(name, path)
        if incident.what is not None and incident.what not in kinds:
            known = did_you_mean(incident.what, kinds) or f"; one of {', '.join(kinds)}, or null"
            yield f"incidents.{number}.what", f"unknown kind {incident.what!r}{known}"
    if answer.state is AnswerState.HEALTHY and answer.incidents:
        yield "state", "healthy, and yet there are incidents; write `incident` or `unsure`, or leave them out"


def answers_of_map(
    changes: Iterable[MapChange], start_ns: int, quiet: AnswerState = AnswerState.HEALTHY
) -> list[Answer]:
    """What the mapper says, as answers. `quiet`: the state while it accuses nobody, as from the begin. It does not say
    what kind of fault it is."""
    standing: dict[tuple[str, Direction | None], Incident] = {}
    answers = {0.0: Answer(t_s=0.0, state=quiet)}
    for change in changes:
        key = change.name, change.direction
        if change.action is MapAction.ACCUSE:
            standing[key] = _incident(change, start_ns)
        elif standing.pop(key, None) is None:
            continue
        t_s = max((change.t_ns - start_ns) / _S, 0.0)
        state = AnswerState.INCIDENT if standing else quiet
        # A link may be accused in both directions, one after the other; the later one counts.
        places = {incident.where: incident for incident in standing.values()}
        answers[t_s] = Answer(t_s=t_s, state=state, incidents=tuple(places.values()))
    return list(answers.values())


def _incident(change: MapChange, start_ns: int) -> Incident:
    return Incident(
        where=(change.name,),
        direction=change.direction,
        since_s=(change.since_ns - start_ns) / _S,
        amount=min(change.loss, 1.0),
        p=change.sure,
    )
