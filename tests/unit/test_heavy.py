"""The order in which tests start (tests/heavy.py)."""

from __future__ import annotations

import pytest

from tests.heavy import dealt


@pytest.mark.parametrize(("heavy", "light", "workers"), [(5, 18, 4), (0, 7, 4), (4, 0, 2), (4, 3, 1), (9, 100, 4)])
def test_each_stretch_that_a_worker_gets_begins_with_its_heavy_tests(heavy: int, light: int, workers: int) -> None:
    ones, others = [f"heavy {n}" for n in range(heavy)], [f"light {n}" for n in range(light)]
    order = dealt(ones, others, workers)  # type: ignore[arg-type]
    assert sorted(order) == sorted(ones + others), "each once"
    rest = len(order)
    for worker in range(workers):
        length = rest // (workers - worker)
        rest -= length
        stretch, order = order[:length], order[length:]
        assert stretch[: len(ones[worker::workers])] == ones[worker::workers]
