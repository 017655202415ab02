"""A mistake in a scenario, by its path."""

from __future__ import annotations

from typing import NamedTuple

from mrc_testbed.testbed.scenario.text.source import KeyPath


class Mistake(NamedTuple):
    """One mistake at `path`. `at_key`: at the key, not its value; `column` counts from 0 inside the value's text."""

    path: KeyPath
    message: str
    at_key: bool = False
    column: int = 0
