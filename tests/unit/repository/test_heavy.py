"""The order in which tests start (tests/heavy.py)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from tests.heavy import dealt, heads, parted

pytest_plugins = "pytester"


@pytest.mark.parametrize(("heavy", "light", "workers"), [(5, 38, 4), (0, 7, 4), (4, 0, 2), (4, 3, 1), (9, 100, 3)])
def test_each_stretch_that_a_worker_gets_begins_with_its_heavy_tests(heavy: int, light: int, workers: int) -> None:
    kernel, pure = [[f"kernel {n}"] for n in range(heavy)], [[f"pure {n}"] for n in range(heavy)]
    first = heads(kernel, pure, workers, len)  # type: ignore[arg-type]
    others = [f"light {n}" for n in range(light)]
    order: list[Any] = dealt(first, others)  # type: ignore[arg-type]
    assert sorted(order) == sorted([name for unit in (*kernel, *pure, others) for name in unit]), "each once"
    assert sum(any("kernel" in str(item) for item in one) for one in first) <= max(1, workers // 2)
    rest = len(order)
    for worker in range(workers):
        length = rest // (workers - worker)
        rest -= length
        stretch, order = order[:length], order[length:]
        assert stretch[: len(first[worker])] == first[worker]


def test_each_worker_begins_with_about_as_many_seconds() -> None:
    units = [["a"] * 9, ["b"] * 5, ["c"] * 3, ["d"]]
    found: list[Any] = heads([], units, 4, len)  # type: ignore[arg-type]
    assert [len(one) for one in found] == [0, 0, 9, 9]


@pytest.mark.filterwarnings("ignore:Unknown pytest.mark.browser")
def test_what_shares_something_heavy_stays_together(pytester: pytest.Pytester) -> None:
    items = pytester.getitems(
        """
        import pytest

        @pytest.fixture(scope="module")
        def site(): ...

        def test_first(site): ...
        def test_of_nothing(): ...
        def test_second(site): ...
        @pytest.mark.browser
        def test_page(): ...
        """
    )
    names = {item.name: item for item in items}
    heavy, light = parted(items, defaultdict(float, {names["test_second"].nodeid: 9.0}), 2)
    assert [[item.name for item in unit] for unit in heavy] == [["test_first", "test_second"]]
    assert [item.name for item in light] == ["test_of_nothing", "test_page"]
    heavy, _ = parted(items, defaultdict(float, {item.nodeid: 3.0 for item in items}), 2)
    assert [[item.name for item in unit] for unit in heavy] == [
        ["test_first", "test_second"],
        ["test_of_nothing"],
        ["test_page"],
    ]
