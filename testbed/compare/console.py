"""A comparison on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrc_testbed.testbed.compare.comparison import Comparison
from mrc_testbed.testbed.compare.sequence import SequenceDiff
from mrc_testbed.testbed.compare.sequence_words import sequence_lines
from mrc_testbed.testbed.compare.table import WIDTH, render_comparison

if TYPE_CHECKING:
    from rich.console import Console


def show_comparison(comparison: Comparison, sequences: SequenceDiff | None, console: Console) -> None:
    """The difference of the sequences, if any, then the tables, at least as wide as they need."""
    from rich.text import Text

    console.width = max(console.width, WIDTH)
    if sequences:
        for line in sequence_lines(sequences):
            console.print(Text(f"- {line}", style="bold red" if line.startswith("NOT") else "none"))
        console.print()
    console.print(render_comparison(comparison))
