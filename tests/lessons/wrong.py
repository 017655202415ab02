"""For every kind of answer one that is wrong, whatever the run has; and whether a text tells the right one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from mrc_testbed.testbed.lessons.evidence import Evidence
from mrc_testbed.testbed.lessons.kinds import FreeText, PathAddress, RetiredEv, TargetOf
from mrc_testbed.testbed.lessons.kinds.choices import OneOf, SomeOf
from mrc_testbed.testbed.lessons.kinds.names import Named
from mrc_testbed.testbed.lessons.kinds.numbers import InRange, Value
from mrc_testbed.testbed.lessons.kinds.psns import FirstLost
from mrc_testbed.testbed.lessons.lesson import LessonQuestion
from mrc_testbed.topos.usid import outer_address, split_outer

_NEAR = 0.005


def wrong_answer(question: LessonQuestion, right: Any, evidence: Evidence) -> Any:
    match question.kind:
        case Value() as kind:
            truth = kind.own(evidence)
            return f"{truth + 3 * kind.tolerance.around(truth) + abs(truth) / 2 + 0.01:.9f}"
        case InRange() as kind:
            return 2 * kind.high - kind.low + 1
        case OneOf() as kind:
            return next(one for one in kind.choices if one not in kind.right)
        case SomeOf() as kind:
            return list(kind.choices) if set(kind.right) != set(kind.choices) else list(kind.choices[1:])
        case TargetOf() | Named():
            return "99"
        case PathAddress():
            path = split_outer(str(right))
            return outer_address(replace(path, plane=path.plane ^ 1))
        case RetiredEv():
            return "9/99"
        case FirstLost():
            return int(right) - 1
        case FreeText():
            return "-"
    raise AssertionError(f"no wrong answer is known of {question.kind}; add one in tests/lessons/wrong.py")


def gives_away(line: str, question: LessonQuestion, right: Any) -> bool:
    """Whether the right answer can be read off a line. A zero says nothing by itself: most counters are."""
    said = re.sub(r"\[[^]]*\]", "", line)  # names of runs
    numbers = list(map(float, re.findall(r"(?<![\w.=-])\d+(?:\.\d+)?(?![\w.])", said)))
    match question.kind:
        case Value():
            return any(number and abs(number - float(right)) <= _NEAR * abs(number) for number in numbers)
        case InRange(low=low, high=high):
            return any(low <= number <= high for number in numbers)
        case FreeText():
            return False
    words = map(str, right if isinstance(right, list) else [right])
    return any(re.search(rf"\b{re.escape(one)}\b", said, re.I) for one in words)
