"""Plugins that import modules by their names of before: told what to write, and nothing of these names is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import load_recorded
from mrc_testbed.testbed.scenario.plugins.moved import hint_of, moved_import
from tests.unit.scenario.test_plugins import EXAMPLES, here, with_plugin

__all__ = ["here"]

OLD = (EXAMPLES / "step_spread.py").read_text().replace("mrc_testbed.api", "testbed.checks.steps")
TOLD = "imports testbed.checks, which is mrc_testbed.testbed.checks now"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module `testbed` of somebody else, on the path, which leaves a file where it is run."""
    mark = tmp_path / "was-run"
    site = tmp_path / "site"
    site.mkdir()
    (site / "testbed.py").write_text(f"open({str(mark)!r}, 'w')\n")
    monkeypatch.syspath_prepend(str(site))
    return mark


def test_a_plugin_of_before_is_refused_with_what_to_write(here: Path, trap: Path) -> None:
    (told,) = [line for line in with_plugin(here, OLD) if "imports" in line]
    assert told.endswith(f"mine.py:6: {TOLD}")
    assert not trap.exists()


def test_so_is_the_copy_in_a_run_folder_of_before(tmp_path: Path, trap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    (folder / "plugins").mkdir(parents=True)
    (folder / "plugins" / "old.py").write_text(OLD)
    text = "name: s\nplugins: [old.py]\nworkload: [{train: {steps: 3, compute: 1s, allreduce: 1MiB}}]\n"
    (folder / "scenario.yaml").write_text(text)
    monkeypatch.setenv("MRC_TRUST_PLUGINS", "1")
    with pytest.raises(ScenarioError, match=rf"old\.py:6: {TOLD}"):
        load_recorded(folder)
    assert not trap.exists()


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import hosts.mrc.cc", "1 hosts.mrc"),
        ("import os\nfrom topos import shape", "2 topos.shape"),
        ("def f():\n    from testbed.expect.vocabulary import By", "2 testbed.expect"),
        ("import testbed.expect\nimport hosts.mrc.wire", "1 testbed.expect"),
        ("from hosts import LAB", ""),
        ("import hosts, testbed.of_somebody_else", ""),
        ("from mrc_testbed.hosts import carrier", ""),
        ("from mrc_testbed.api import Metric", ""),
        (
            "import os\nfrom mrc_testbed.hosts.core.evselect.base import NO_PLANE",
            "2 mrc_testbed.hosts.core.evselect.base",
        ),
        ("import mrc_testbed.testbed.scenario.models", "1 mrc_testbed.testbed.scenario.models"),
        ("from . import hosts", ""),
        ("def", ""),
        ("\0", ""),
    ],
)
def test_only_modules_that_have_moved_are_told(source: str, told: str) -> None:
    moved = moved_import(source.encode())
    assert (f"{moved.line} {moved.was}" if moved else "") == told


def test_a_package_of_before_is_told_the_package_of_today() -> None:
    told = "; modules of mrc-testbed are in mrc_testbed.testbed now"
    assert hint_of(ModuleNotFoundError("No module named 'testbed'", name="testbed")) == told
    assert hint_of(ModuleNotFoundError("No module named 'numpy'", name="numpy")) == ""
    assert hint_of(ValueError("testbed")) == ""
