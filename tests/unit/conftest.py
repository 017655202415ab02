from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
import typer

from mrc_testbed.testbed import cli
from mrc_testbed.testbed.commands import errors
from mrc_testbed.testbed.rundir.ownership import claimed
from tests.unit.calls import Call, Ended


@pytest.fixture(scope="session", autouse=True)
def commands_are_built_once() -> Iterator[None]:
    """Not at each call in this process, which takes 35 ms of CPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Call the entry point in this process."""
    monkeypatch.setenv("COLUMNS", "100")

    def called(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["mrc-testbed", *arguments])
        monkeypatch.setattr(errors.GlobalOptions, "debug", False)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        status = stop.value.code
        assert isinstance(status, int | None)
        return Ended(status or 0, out, err)

    yield called
    errors.GlobalOptions.debug = False


@pytest.fixture
def going_on() -> Iterator[Callable[[Path], None]]:
    """Let a folder be that of a run that goes on, in this process, until the test ends."""
    with ExitStack() as runs:
        yield lambda folder: runs.enter_context(claimed(folder))


@pytest.fixture(autouse=True)
def not_calibrated(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What this machine was found to carry must not decide tests."""
    nothing = str(tmp_path_factory.getbasetemp() / "no-state")
    monkeypatch.setenv("XDG_STATE_HOME", nothing)
    monkeypatch.setattr("mrc_testbed.testbed.state._home", lambda: Path(nothing))
