"""`mrc-testbed exec`: what its words mean, and what it says where nothing is going on."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.app import execute
from mrc_testbed.testbed.errors import RunError, UsageError


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["--", "sh", "-c", "a b"], ["sh", "-c", "a b"]),
        (["ls", "-l"], ["sh", "-c", "ls -l"]),
        (['orted -mca x "y z"'], ["sh", "-c", 'orted -mca x "y z"']),
        (["a", "--", "b"], ["sh", "-c", "a -- b"]),
    ],
)
def test_words_behind_two_dashes_stand_as_they_are_others_are_a_line(words: list[str], command: list[str]) -> None:
    assert execute.command_of(words) == command


@pytest.mark.parametrize("words", [[], ["--"]])
def test_no_command_is_told(words: list[str]) -> None:
    with pytest.raises(UsageError, match="a command is missing, as in"):
        execute.command_of(words)


def test_a_command_that_is_too_long_and_a_run_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRC_EXEC", str(tmp_path / "exec"))
    with pytest.raises(UsageError, match="longer than 128 KiB: echo x"):
        execute.execute("h0", ["--", "echo", "x" * (1 << 17)], None, tmp_path)
    with pytest.raises(RunError, match="cannot reach the run: No such file or directory; try again"):
        execute.execute("h0", ["--", "true"], None, tmp_path)
