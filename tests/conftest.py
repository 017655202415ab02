"""For all tests: a machine that was late is not taken for a program that failed, and kernel tests get the CPU first."""

from __future__ import annotations

import os

import pytest

from tests.retry import RetryPlugin


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(RetryPlugin(), "retry-when-late")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests on the real kernel have times to keep; pure tests, which run beside them, have not. Root alone may go back
    to the usual priority."""
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, 0 if item.get_closest_marker("emu") else _PURE)


_PURE = 10
"""Niceness of a test that measures nothing and waits for nobody."""
