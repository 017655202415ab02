"""Every command over run folders and captures that are damaged at random: a line, and nothing else is touched."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random

import pytest

from mrc_testbed.testbed import cli
from tests.abuse.command import KNOWN, assert_in_order
from tests.abuse.conftest import Rounds
from tests.abuse.damage import DAMAGES

Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command in this process: its exit status, and all that it said."""

    def called(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["mrc-testbed", *words])
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
            cli.main()
        return int(stop.value.code or 0), out.getvalue() + err.getvalue()

    return called


def damaged(dice: Random, folder: Path) -> str:
    """Damage some files of the folder; which, and how."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".html")
    told = []
    for file in dice.sample(files, dice.choice([1, 1, 1, 2, 5])):
        damage = dice.choice(DAMAGES)
        file.write_bytes(damage(dice, file.read_bytes()))
        told.append(f"{damage.__name__}({file.relative_to(folder)})")
    return ", ".join(told)


def state_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def commands(run: Path, other: Path) -> Iterator[list[str]]:
    """Those that read runs."""
    yield ["results", "--out", str(run.parent)]
    yield ["results", "--out", str(run.parent), "--json"]
    yield ["report", str(run)]
    yield ["validate", str(run / "scenario.yaml")]
    yield ["compare", str(run), str(other), "--out", str(run.parent)]
    yield ["bounds", str(run), str(other)]
    yield ["clean", "--out", str(run.parent)]
    for file in sorted(run.glob("pcap/*.pcapng"))[:1]:
        yield ["decode", str(file), "--limit", "3"]


def test_commands_over_a_damaged_run_say_so_in_a_line(
    rounds: Rounds, real_run: Path, tmp_path: Path, call: Call
) -> None:
    beside = tmp_path / "beside"
    shutil.copytree(real_run, beside)
    before = state_of(beside)
    for dice in rounds(8):
        results = tmp_path / "results"
        shutil.copytree(real_run, results / "damaged")
        what = damaged(dice, results / "damaged")
        for words in commands(results / "damaged", beside):
            status, told = call(*words)
            assert_in_order(f"{what}; {' '.join(words)}: {status}\n{told}")
            assert status in KNOWN, (what, words, told)
        shutil.rmtree(results)
    assert state_of(beside) == before


def test_decode_of_a_damaged_capture_ends_with_a_status(
    rounds: Rounds, real_run: Path, tmp_path: Path, call: Call
) -> None:
    whole = next(iter(sorted(real_run.glob("pcap/*.pcapng")))).read_bytes()
    file = tmp_path / "damaged.pcapng"
    for dice in rounds(12):
        damage = dice.choice(DAMAGES)
        file.write_bytes(damage(dice, whole))
        status, told = call("decode", str(file), "--limit", "2", *dice.choice([[], ["--json"], ["--fields"]]))
        assert_in_order(f"{damage.__name__}: {told}")
        assert status in KNOWN


def test_a_damaged_scenario_is_refused_in_lines(rounds: Rounds, real_run: Path, tmp_path: Path, call: Call) -> None:
    whole = (real_run / "scenario.yaml").read_bytes()
    file = tmp_path / "scenario.yaml"
    for dice in rounds(12):
        damage = dice.choice(DAMAGES)
        file.write_bytes(damage(dice, whole))
        status, told = call("validate", str(file))
        assert_in_order(f"{damage.__name__}: {told}\n{file.read_bytes()!r}")
        assert status in KNOWN
