"""The order in which tests start (tests/heavy.py)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.heavy import dealt, heads


@pytest.mark.parametrize(("heavy", "light", "workers"), [(5, 38, 4), (0, 7, 4), (4, 0, 2), (4, 3, 1), (9, 100, 3)])
def test_each_stretch_that_a_worker_gets_begins_with_its_heavy_tests(heavy: int, light: int, workers: int) -> None:
    kernel, pure = [f"kernel {n}" for n in range(heavy)], [f"pure {n}" for n in range(heavy)]
    first = heads(kernel, pure, workers)  # type: ignore[arg-type]
    others = [f"light {n}" for n in range(light)]
    order: list[Any] = dealt(first, others)  # type: ignore[arg-type]
    assert sorted(order) == sorted(kernel + pure + others), "each once"
    assert sum(bool(set(one) & set(kernel)) for one in first) <= max(1, workers // 2)
    rest = len(order)
    for worker in range(workers):
        length = rest // (workers - worker)
        rest -= length
        stretch, order = order[:length], order[length:]
        assert stretch[: len(first[worker])] == first[worker]
