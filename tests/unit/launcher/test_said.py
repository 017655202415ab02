"""A line of a program is a JSON object of bounded depth, or there is one sentence about it."""

from __future__ import annotations

import json
import time

import pytest

from mrc_testbed.testbed.launcher.said import MOST_DEPTH, NotAnObject, read_object


def nested(depth: int) -> str:
    return '{"a": ' * depth + "1" + "}" * depth


def test_as_deep_as_allowed_is_read() -> None:
    assert json.dumps(read_object(nested(MOST_DEPTH))) == nested(MOST_DEPTH)
    assert read_object('{"a": "' + "[{" * 500 + '\\"' + "[" * 500 + '"}')
    assert read_object('{"a": [' + ", ".join(["[[]]"] * 500) + "]}")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"[" * 200_000, "JSON of more than 64 brackets within brackets"),
        (nested(MOST_DEPTH + 1), "JSON of more than 64 brackets within brackets"),
        (b'{"a": ' * 200_000, "JSON of more than 64 brackets within brackets"),
        (b"\xff", "not JSON: Expecting value"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON: Exceeds the limit"),
        ("[1]", "not a JSON object"),
        ('"' * 100_001, "not JSON"),
    ],
)
def test_else_it_is_said(line: str | bytes, says: str) -> None:
    began = time.process_time()
    with pytest.raises(NotAnObject, match=says):
        read_object(line)
    assert time.process_time() - began < 5
