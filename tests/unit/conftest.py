from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from calls import Call, Ended

from testbed import cli
from testbed.commands import errors


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Call the entry point in this process."""
    monkeypatch.setenv("COLUMNS", "100")

    def called(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["mrc-testbed", *arguments])
        monkeypatch.setattr(errors.State, "debug", False)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        status = stop.value.code
        assert isinstance(status, int | None)
        return Ended(status or 0, out, err)

    yield called
    errors.State.debug = False
