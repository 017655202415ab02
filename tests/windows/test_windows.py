"""Windows and their sentences agree on every moment of random runs: 200 a day, 10 000 a night."""

from __future__ import annotations

import pytest

from tests.windows.oracle import disagreement

SEEDS, AT_ONCE = 10_000, 200


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_every_window_is_what_its_sentence_says(first: int) -> None:
    assert not list(filter(None, map(disagreement, range(first, first + AT_ONCE))))
