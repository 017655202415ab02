"""What is kept in the user's cache: made again when a file of the program changes, or when the cache is damaged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from mrc_testbed.testbed.kept import kept


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program with one scenario, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for folder in ("testbed", "hosts", "topos", "scenarios/stories"):
        (tmp_path / "program" / folder).mkdir(parents=True)
    (tmp_path / "program/scenarios/stories/one.yaml").write_text("name: one")
    return tmp_path / "program"


@pytest.fixture
def numbers() -> Iterator[int]:
    """Each call makes the next one."""
    return count()


def made(place: Path, numbers: Iterator[int]) -> object:
    return kept("numbers", lambda: [next(numbers)], place)


def test_it_is_made_once(place: Path, numbers: Iterator[int]) -> None:
    assert [made(place, numbers) for _ in range(3)] == [[0]] * 3


def test_a_changed_file_of_the_program_counts(place: Path, numbers: Iterator[int]) -> None:
    assert made(place, numbers) == [0]
    scenario = place / "scenarios/stories/one.yaml"
    scenario.write_text("name: two")
    os.utime(scenario, ns=(1, 1))
    assert made(place, numbers) == [1]
    (place / "testbed/new.py").touch()
    assert made(place, numbers) == [2]


def test_another_checkout_has_its_own(place: Path, numbers: Iterator[int], tmp_path: Path) -> None:
    assert made(place, numbers) == [0]
    place.rename(tmp_path / "moved")
    assert made(tmp_path / "moved", numbers) == [1]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"stamp": 1}', "null", "[" * 100_000])
def test_a_damaged_cache_is_made_again(place: Path, numbers: Iterator[int], tmp_path: Path, damage: str) -> None:
    made(place, numbers)
    (tmp_path / "cache/mrc-testbed/numbers.json").write_text(damage)
    assert made(place, numbers) == [1]
    assert made(place, numbers) == [1]


def test_without_a_place_to_write_it_is_made_each_time(
    place: Path, numbers: Iterator[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [made(place, numbers) for _ in range(2)] == [[0], [1]]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no users by number")
def test_nothing_is_written_into_the_home_of_somebody_else(
    place: Path, numbers: Iterator[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    assert [made(place, numbers) for _ in range(2)] == [[0], [1]]
    assert not list((tmp_path / "cache").iterdir())
