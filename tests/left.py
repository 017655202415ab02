"""Processes whose command has a mark in it, of whatever session and namespace."""

from __future__ import annotations

import time
from pathlib import Path

from tests.hangs import HANGS_S


def alive(mark: str) -> list[int]:
    """Pids with this mark; keepers are among them, as their command names the program."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def assert_gone(mark: str) -> None:
    """Soon."""
    until_s = time.monotonic() + HANGS_S / 4
    while left := alive(mark):
        assert time.monotonic() < until_s, left
        time.sleep(0.01)
