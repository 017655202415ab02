"""Students for all tests of a lesson."""

from __future__ import annotations

import os

import pytest

from tests.lessons.stage import Class


@pytest.fixture(scope="session")
def pupils(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """Who have solved lessons, each in a folder of their own that all workers of this test run share."""
    own = tmp_path_factory.getbasetemp()
    return Class((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "pupils")
