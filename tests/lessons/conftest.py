"""Students for all tests of a lesson."""

from __future__ import annotations

import pytest

from tests.lessons.stage import Class
from tests.workers import shared_folder


@pytest.fixture(scope="session")
def pupils(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """Who have solved lessons, each in a folder of their own that all workers of this test run share."""
    return Class(shared_folder(tmp_path_factory, "pupils"))
