"""What the machine lacked, as `lack_of` tells it from a mistake of the program."""

from __future__ import annotations

import resource

import pytest

from mrc_testbed.testbed.errors import lack_of

UNSET = (
    "error return without exception set",
    "<built-in function compile> returned NULL without setting an exception",
)


def limit(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (size, resource.RLIM_INFINITY))


@pytest.mark.parametrize("text", UNSET)
def test_a_failure_without_an_exception_is_lack_of_memory_under_a_limit(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    limit(monkeypatch, 40 << 20)
    assert "memory ran out" in lack_of(SystemError(text))


@pytest.mark.parametrize("text", UNSET)
def test_without_a_limit_it_stays_a_mistake(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    limit(monkeypatch, resource.RLIM_INFINITY)
    assert not lack_of(SystemError(text))


def test_another_system_error_stays_a_mistake_under_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 40 << 20)
    assert not lack_of(SystemError("bad argument to internal function"))
