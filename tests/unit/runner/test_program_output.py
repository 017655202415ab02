"""What a program prints: its lines, its last words, and what is kept of much."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.runner.program_output import LONGEST_LINE, TOLD_NS, Output


def output(folder: Path, read: bool = True) -> Output:
    return Output((folder / "h0.log").open("wb"), read)


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([b"a\nb\n"], ["a", "b"]),
        ([b"step 1 do", b"ne\nst", b"ep 2"], ["step 1 done", "step 2"]),
        ([b" 10%|#|\r 20%|##|\rdone\n"], [" 10%|#|", " 20%|##|", "done"]),
        ([b"a\r", b"\nb\r\n"], ["a", "", "b"]),
        ([b"x" * (LONGEST_LINE + 5) + b"\n"], ["x" * LONGEST_LINE, "xxxxx"]),
    ],
)
def test_a_line_ends_at_a_line_feed_or_a_carriage_return(pieces: list[bytes], lines: list[str], tmp_path: Path) -> None:
    one = output(tmp_path)
    assert [line for data in pieces for line in one.take(data)] + list(one.rest()) == lines


def test_last_words_are_short(tmp_path: Path) -> None:
    one = output(tmp_path)
    list(one.take(b"\0" * 2_000_000 + b"\nlast words\n\n"))
    assert one.last_lines[-1] == "last words"
    assert max(map(len, one.last_lines)) <= 203


def test_without_patterns_a_flood_is_kept_and_not_looked_at(tmp_path: Path) -> None:
    one = output(tmp_path, read=False)
    seen = list(one.take(b"chatter\n" * 8000))
    assert seen == ["chatter"] * 3
    one.close(held_ns=2 * TOLD_NS)
    text = (tmp_path / "h0.log").read_bytes()
    assert text.startswith(b"chatter\n" * 8000)
    assert b"[held back for 0.2 s: it printed faster than it is read]" in text
