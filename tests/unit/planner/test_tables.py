"""Tables of a plan on terminals of any width: nothing of them vanishes."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from mrc_testbed.testbed.planner.arithmetic.balls import Crowding
from mrc_testbed.testbed.planner.arithmetic.design import NicCable
from mrc_testbed.testbed.planner.arithmetic.parts import load_parts
from mrc_testbed.testbed.planner.arithmetic.question import Question, designs
from mrc_testbed.testbed.planner.report.balls import show_crowding
from mrc_testbed.testbed.planner.report.designs import ROWS, show_designs

MADE = designs(Question([10_000, 131_072], 800, [4, 8], ["51.2T"], [], [], "dsp", NicCable.OPTICS), load_parts())


def shown(width: int) -> list[str]:
    output = StringIO()
    show_designs(MADE, Console(file=output, width=width, highlight=False))
    return output.getvalue().split("[1] switch watts")[0].splitlines()


@pytest.mark.parametrize("width", [70, 80, 100, 110, 160])
def test_columns_and_digits_are_whole_at_every_width(width: int) -> None:
    lines = shown(width)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert "…" not in text
    assert text.count("mark") == text.count("a NIC of 800G a GPU") > 0
    assert text.count("derived") >= len(ROWS)
    for cell in ("2,097,152-4,194,304", "8 planes x 100G", "12.9-14 MW", "no: <= 65,536"):
        assert cell in text, cell


def test_a_terminal_too_narrow_for_one_design_loses_no_digit() -> None:
    lines = shown(40)
    assert max(map(len, lines)) <= 40
    assert "…" not in "\n".join(lines)


def test_a_table_of_balls_loses_no_digit_either() -> None:
    output = StringIO()
    show_crowding([Crowding(256, 2048, 19.76, 16.0, 19.43, 24.0, 1.32)], Console(file=output, width=50))
    assert "…" not in output.getvalue()


def test_a_wide_terminal_has_three_designs_in_a_table() -> None:
    heads = [line.count("GPUs") for line in shown(130) if "GPUs" in line and "room" not in line]
    assert max(heads) == 3
