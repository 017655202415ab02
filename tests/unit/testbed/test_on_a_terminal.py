"""What a person sees of a command on a terminal: its colours are obeyed, and no sign takes the place of a character."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mrc_testbed.testbed import cli
from tests.screens import FakeTerminal
from tests.unit.recorded import record_run

ROOT = Path(__file__).parents[3]
SHOWN_IN_ITS_PLACE = "\N{REPLACEMENT CHARACTER}"
PLAN = ["plan", "--gpus", "1024", "--nic", "800G", "--planes", "8", "--switch", "51.2T"]
Shown = Callable[..., list[str]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    """Call a command in this process, on a terminal of 80 columns. Returns all lines of its screen."""
    terminal = FakeTerminal(80, 400)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)

    def called(*arguments: str) -> list[str]:
        monkeypatch.setattr(sys, "stdout", terminal.file)
        monkeypatch.setattr(sys, "stderr", terminal.file)
        monkeypatch.setattr(sys, "argv", ["mrc-testbed", *arguments])
        terminal.screen.reset()
        with terminal.watched(), pytest.raises(SystemExit):
            cli.main()
        return terminal.above + terminal.rows

    yield called
    terminal.close()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return record_run(tmp_path / "results" / "20260801T000000Z-small")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["scenarios"],
        ["doctor"],
        ["lesson", "show", "1"],
        ["validate", "quickstart"],
        ["topo", "show", "quickstart"],
        PLAN,
        ["report", "RUN"],
        ["results", "RESULTS"],
        ["decode", "--dissector"],
        ["worlds", "--help"],
    ],
    ids=" ".join,
)
@pytest.mark.nightly(keep=2)
def test_its_colours_are_obeyed(shown: Shown, run: Path, arguments: list[str]) -> None:
    places = {"RUN": str(run), "RESULTS": str(run.parent)}
    lines = shown(*(places.get(word, word) for word in arguments))
    assert lines
    assert not [line for line in lines if SHOWN_IN_ITS_PLACE in line or "[1m" in line]
