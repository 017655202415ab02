"""What CI systems rely on: a cancelled job ends in order, and the example of the pytest plugin works unchanged."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.retry import Inconclusive

from .runs import SMALL, Run

ROOT = Path(__file__).parents[2]


def test_an_interrupted_batch_ends_the_run_begins_no_other_and_leaves_its_report(tmp_path: Path) -> None:
    second = tmp_path / "second.yaml"
    second.write_text(SMALL.replace("STEPS", "5").replace("name: small", "name: second"))
    junit = tmp_path / "junit.xml"
    run = Run(tmp_path, steps=200, options=(str(second), "--junit", str(junit), "--retry-inconclusive", "3"))
    run.wait_until_step(1)
    run.process.send_signal(signal.SIGINT)
    assert run.finish() == 130
    assert "2 runs: 1 interrupted, 1 not run" in run.output
    assert run.verdict["verdict"] == "inconclusive"
    assert [suite.get("name") for suite in ElementTree.parse(run.folder / "junit.xml").getroot()] == ["small"]
    suites = list(ElementTree.parse(junit).getroot())
    assert [suite.get("name") for suite in suites] == ["small", "second"]
    assert all(int(suite.get("errors", 0)) > 0 for suite in suites)


@pytest.mark.nightly
def test_the_example_of_the_plugin_passes_as_it_stands(tmp_path: Path) -> None:
    options = [
        "-q",
        "-rs",
        "-p",
        "mrc_testbed.testbed.pytest_plugin",
        "--mrc-results",
        str(tmp_path),
        "--mrc-inconclusive",
        "skip",
    ]
    command = [sys.executable, "-m", "pytest", "docs/examples", *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    if "SKIPPED" in ran.stdout:
        raise Inconclusive("the example says that the machine did not keep time")
    assert "2 passed" in ran.stdout
