"""What the planner refuses is told in one line."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.planner.arithmetic.parts import load_parts
from tests.unit.calls import Call


def refused_options(call: Call, options: str) -> str:
    """What is said of options of `plan`."""
    ended = call("plan", *options.split())
    assert ended.status == ExitCode.USAGE
    assert len(ended.err.strip().splitlines()) == 1
    return ended.err


def refused_parts(text: str) -> str:
    """What is said of a file my.toml of the user's numbers."""
    with pytest.raises(UsageError) as caught:
        load_parts(text, "my.toml")
    assert "\n" not in str(caught.value)
    return str(caught.value)
