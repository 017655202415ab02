"""The bound on processes of a sandbox: set where it is the sandbox's own, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mrc_testbed.testbed.runner import process_limit


@pytest.mark.parametrize(("release", "set_"), [("6.14.0-1-amd64", True), ("6.1.0-31-amd64", False), ("7.0", True)])
def test_it_is_set_from_the_kernel_on_that_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: str, set_: bool
) -> None:
    (tmp_path / "pid_max").write_text("4194304\n")
    monkeypatch.setattr(process_limit, "_PID_MAX", tmp_path / "pid_max")
    monkeypatch.setattr(os, "uname", lambda: type("Uname", (), {"release": release}))
    monkeypatch.setattr(os, "listdir", lambda _: ["1", "417", "self", "net"])
    assert process_limit.bound_processes(3) is set_
    bound = 417 + process_limit.ROOM + 3 * process_limit.OF_EACH if set_ else 4194304
    assert int((tmp_path / "pid_max").read_text()) == bound


def test_without_the_right_nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process_limit, "_PID_MAX", tmp_path / "nothing")
    monkeypatch.setattr(os, "uname", lambda: type("Uname", (), {"release": "6.18.0"}))
    assert process_limit.bound_processes(3) is False
