"""The committed table is what the code does."""

from pathlib import Path

import pytest

from tests.sim.results import table

pytestmark = pytest.mark.slow


def test_the_table_of_results_is_up_to_date():
    committed = (Path(__file__).parent / "results.txt").read_text()
    assert table() == committed, "behaviour changed: python -m tests.sim.results > tests/sim/results.txt, and say why"
