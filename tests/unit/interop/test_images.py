"""Rows by image: started without a network and ended whatever they do; n/a where nothing can run them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.unit.calls import Call
from tests.unit.interop.judged import HERE


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A program with the command line of docker, which runs our own endpoint."""
    program = tmp_path / "engine"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "fake_engine.py"} {tmp_path} "$@"\n')
    program.chmod(0o755)
    return program


def _list(tmp_path: Path, image: str) -> Path:
    file = tmp_path / "list.json"
    file.write_text(json.dumps([{"name": "boxed", "image": image}]))
    return file


def test_an_image_is_a_program_without_a_network(tmp_path: Path, engine: Path, call: Call) -> None:
    page = tmp_path / "m" / "matrix.html"
    done = call(
        "interop", str(_list(tmp_path, "mine:1")), "-o", str(page), "--only", "1,3", "--container-engine", str(engine)
    )
    assert (done.status, done.out.count("  pass\n")) == (0, 2), done.out
    calls = (tmp_path / "calls").read_text().splitlines()
    started = [line for line in calls if line.startswith("run ")]
    assert len(started) == 3, "twice in step 1, once in step 3"
    assert all("--rm --interactive --network none --pull never --name" in line for line in started)
    names = [line.split()[-2] for line in started]
    assert len(set(names)) == 3
    assert [line.split()[-1] for line in calls if line.startswith("rm ")] == names, "each is ended"
    assert json.loads(page.with_suffix(".json").read_text())["rows"][0]["form"] == "image"


def test_an_image_that_is_not_there_is_not_judged(tmp_path: Path, engine: Path, call: Call) -> None:
    page = tmp_path / "m" / "matrix.html"
    done = call("interop", str(_list(tmp_path, "none:1")), "-o", str(page), "--container-engine", str(engine))
    assert (done.status, done.out.count("  n/a\n")) == (0, 8)
    assert f"no image none:1 here; first: {engine} pull none:1: Error: No such image" in done.out


def test_without_an_engine_nothing_is_judged(tmp_path: Path, call: Call) -> None:
    page = tmp_path / "m" / "matrix.html"
    done = call("interop", str(_list(tmp_path, "mine:1")), "-o", str(page), "--container-engine", "/no/such/docker")
    assert (done.status, done.out.count("no /no/such/docker here")) == (0, 8)
