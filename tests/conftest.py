"""For all tests: a machine that was late is not taken for a program that failed."""

from __future__ import annotations

import pytest

from tests.retry import RetryPlugin


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(RetryPlugin(), "retry-when-late")
