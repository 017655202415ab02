"""Students for all tests of a lesson."""

from __future__ import annotations

import pytest

from tests.lessons.stage import Class


@pytest.fixture(scope="session")
def pupils(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """Who have solved lessons, each in a folder of their own."""
    return Class(lambda name: tmp_path_factory.mktemp(name, numbered=True))
