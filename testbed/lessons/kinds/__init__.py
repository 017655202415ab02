"""The kinds of answers: each a class that reads its keys of check.yaml and judges what a student wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from mrc_testbed.testbed.lessons.kinds.choices import OneOf, SomeOf
from mrc_testbed.testbed.lessons.kinds.kind import AnswerKind, Judgement, Unusable
from mrc_testbed.testbed.lessons.kinds.names import Named, RetiredEv, TargetOf
from mrc_testbed.testbed.lessons.kinds.numbers import InRange, Value
from mrc_testbed.testbed.lessons.kinds.paths import PathAddress
from mrc_testbed.testbed.lessons.kinds.psns import FirstLost
from mrc_testbed.testbed.lessons.kinds.texts import FreeText
from mrc_testbed.testbed.lessons.reading import Keys

READERS: Mapping[str, Callable[[Keys], AnswerKind]] = MappingProxyType(
    {
        Value.word: Value.read,
        InRange.word: InRange.read,
        OneOf.word: OneOf.read,
        SomeOf.word: SomeOf.read,
        TargetOf.word: TargetOf.read,
        Named.word: Named.read,
        PathAddress.word: PathAddress.read,
        RetiredEv.word: RetiredEv.read,
        FirstLost.word: FirstLost.read,
        FreeText.word: FreeText.read,
    }
)
"""By the key that says which kind an answer is."""

__all__ = ["READERS", "AnswerKind", "FreeText", "Judgement", "PathAddress", "RetiredEv", "TargetOf", "Unusable"]
