"""What the runner hears of a virtual host is what it would read in a line of JSON."""

from __future__ import annotations

import json
from enum import IntEnum
from typing import Any

import pytest

from mrc_testbed.testbed.virtual.heard import heard


class _Number(IntEnum):
    THREE = 3


CASES: tuple[Any, ...] = (
    {"event": "snapshot", "t_ns": 1 << 70, "counters": {"data_sent": 0, "share": 0.1}, "down": None, "last": True},
    {"qps": (("a", 1), ["b", (2, 3)]), "empty": [], "none": {}},
    {"by number": {1: "one", 2: {"deep": (1,)}}, "enum": _Number.THREE},
    [1.5, "é", {"a": {None: 1}}],
)


@pytest.mark.parametrize("value", CASES)
def test_it_is_what_json_would_say(value: Any) -> None:
    found = heard(value)
    assert found == json.loads(json.dumps(value))
    assert repr(found) == repr(json.loads(json.dumps(value)))


def test_it_is_a_copy() -> None:
    inside = [1]
    found = heard({"rows": {"first": inside}})
    inside.append(2)
    assert found == {"rows": {"first": [1]}}


def test_what_json_has_no_text_for_is_refused() -> None:
    with pytest.raises(TypeError):
        heard({"event": {"data": b"1"}})
