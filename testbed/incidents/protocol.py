"""The conversation of a program with a case: a JSON object a line, asked and answered in turn.

    {"tool": "wait", "s": 2}              -> {"ok": true, "now_s": 2.0, "left_s": 14.0, "over": false, "events": 3}
    {"tool": "answer", "state": "unsure"} -> {"ok": true, "t_s": 2.0}

The tools are a fixed list. What is wrong with a line is said, and the conversation goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.incidents.observer import Facts, Observer, UnknownThing
from mrc_testbed.testbed.launcher.said import NotAnObject, read_object
from mrc_testbed.testbed.rundir.files import any_values

MOST_LOOKS = 10_000
MOST_BYTES = 64 << 20
MOST_LINE_BYTES = 1 << 20
_LOOKS = ("host", "switch", "link", "events", "probes")
_FREE = ("wait", "now")
_GOES_ON = "`wait`, `now` and `answer` go on"


class BadRequest(Exception):
    """A line that asks for nothing that there is; the text says what is wrong and what would do."""


@dataclass(frozen=True, slots=True)
class LookBudget:
    """How often a program may look, and how many bytes it may be told."""

    looks: int = MOST_LOOKS
    most_bytes: int = MOST_BYTES


TakeAnswer = Callable[[Mapping[str, Any], float], None]
"""Takes an answer at a time, in seconds. Raises BadRequest."""


class Conversation:
    """With one program. `log`: a line for each request, for observer.jsonl."""

    def __init__(self, observer: Observer, answer: TakeAnswer, budget: LookBudget) -> None:
        self._observer = observer
        self._answer = answer
        self._budget = budget
        self.looks = self.told_bytes = 0
        self.log: list[Facts] = []
        self._tools: Mapping[str, tuple[Callable[..., Facts], Mapping[str, type]]] = {
            "topology": (observer.topology, {}),
            "now": (observer.now, {}),
            "wait": (self._wait, {"s": float}),
            "host": (observer.host, {"host": str}),
            "switch": (observer.switch, {"switch": str}),
            "link": (self._link, {"link": str, "s": float}),
            "events": (observer.events, {"since_s": float}),
            "probes": (observer.probes, {"since_s": float}),
        }

    def reply(self, line: str) -> str:
        """The line that answers a line."""
        tool, arguments, told = "", {}, {}
        try:
            request = _request(line)
            tool, arguments = str(request.get("tool")), {key: request[key] for key in request if key != "tool"}
            told = {"ok": True, **self._do(tool, arguments)}
        except (BadRequest, UnknownThing) as error:
            told = {"ok": False, "error": str(error)}
        text = as_line(told)
        self.told_bytes += len(text) + 1
        shown = arguments if len(line) < MOST_LINE_BYTES else {}
        entry = {"t_s": self._observer.now_s, "tool": tool, **({"asked": shown} if shown else {}), "bytes": len(text)}
        self.log.append({**entry, **({"error": told["error"]} if "error" in told else {})})
        return text

    def _do(self, tool: str, arguments: Mapping[str, Any]) -> Facts:
        if tool == "answer":
            self._answer(arguments, self._observer.now_s)
            return {"t_s": self._observer.now_s}
        if tool not in self._tools:
            known = [*self._tools, "answer"]
            raise BadRequest(
                f"there is no tool {tool!r}{did_you_mean(tool, known) or '; there are ' + ', '.join(known)}"
            )
        do, wanted = self._tools[tool]
        values = [_value(tool, arguments, key, kind) for key, kind in wanted.items()]
        for key in arguments.keys() - wanted.keys():
            raise BadRequest(f"{tool}: unknown key {key!r}; {_written(tool, wanted)}")
        self._charge(tool)
        with any_values(self._observer.folder):
            return do(*values)

    def _charge(self, tool: str) -> None:
        if tool not in _FREE and self.told_bytes >= self._budget.most_bytes:
            raise BadRequest(f"the budget of {self._budget.most_bytes} bytes is used up; {_GOES_ON}")
        if tool in _LOOKS:
            if self.looks >= self._budget.looks:
                raise BadRequest(f"the budget of {self._budget.looks} looks is used up; {_GOES_ON}")
            self.looks += 1

    def _wait(self, seconds: float) -> Facts:
        if seconds <= 0:
            raise BadRequest(f"wait: s must be more than 0, such as 0.5; got {seconds:g}")
        return self._observer.wait(seconds)

    def _link(self, name: str, seconds: float) -> Facts:
        if seconds <= 0:
            raise BadRequest(f"link: s must be more than 0, such as 1; got {seconds:g}")
        return self._observer.link(name, seconds)


def as_line(value: Mapping[str, Any]) -> str:
    """A JSON object on a line."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _request(line: str) -> dict[str, Any]:
    if len(line) >= MOST_LINE_BYTES:
        raise BadRequest(f"a line has at most {MOST_LINE_BYTES} bytes")
    try:
        return read_object(line)
    except NotAnObject as error:
        raise BadRequest(f'{error}; write a line such as {{"tool": "wait", "s": 1}}') from None


def _value(tool: str, arguments: Mapping[str, Any], key: str, kind: type) -> Any:
    value = arguments.get(key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12
    if isinstance(value, str) if kind is str else is_number:
        return value
    wanted = "a name" if kind is str else "a number of seconds"
    raise BadRequest(f"{tool}: {key} must be {wanted}, not {json.dumps(value)}; {_written(tool, {key: kind})}")


def _written(tool: str, wanted: Mapping[str, type]) -> str:
    examples = {"host": "h3", "switch": "p0-t1-2", "link": "p0-t0-0:p0-t1-2", "s": 1, "since_s": 0}
    return f"write {as_line({'tool': tool, **{key: examples[key] for key in wanted}})}"
