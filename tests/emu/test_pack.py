"""A pack on the real kernel: runs one after the other in one command, and Ctrl-C in the second."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.emu.runs import COMMAND, SMALL, wait_for

PAPER = 'paper: {figure: "FIGURE", reports: nobody notices, shows: [1]}\n'


def write(folder: Path, figure: str, steps: int) -> str:
    path = folder / f"fig{figure}.yaml"
    text = SMALL.replace("name: small", f"name: fig{figure}").replace("STEPS", str(steps))
    path.write_text(text + PAPER.replace("FIGURE", figure))
    return str(path)


@pytest.mark.nightly
def test_an_interrupted_pack_ends_with_the_table_so_far(tmp_path: Path) -> None:
    files = [write(tmp_path, "1", 5), write(tmp_path, "2", 1000), write(tmp_path, "3", 5)]
    out = tmp_path / "out"
    command = [*COMMAND, "paper", *files, "--out", str(out), "--retry-inconclusive", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for(lambda: any(",1," in path.read_text() for path in out.glob("*-fig2/completions.csv")), "step 1 of fig2")
    os.killpg(process.pid, signal.SIGINT)  # as the terminal does: to every process of the foreground group
    output, errors = process.communicate(timeout=40)
    assert process.returncode == 130, output + errors
    assert "Traceback" not in output + errors

    (document,) = out.glob("*-paper/paper.json")
    first, second, third = json.loads(document.read_text())["runs"]
    # On a machine that did not keep time the first is inconclusive, but its figures are there all the same.
    assert first["verdict"] in ("pass", "inconclusive")
    assert first["observed"] == ["bytes_wrong 0 B"]
    assert (second["verdict"], third["verdict"]) == ("interrupted", "not run")
    assert (document.parent.parent / Path(second["folder"]).name / "verdict.json").exists()
    rows = document.with_suffix(".md").read_text().splitlines()[6:]
    assert [row.split(" | ")[0] for row in rows] == ["| 1", "| 2", "| 3"]
