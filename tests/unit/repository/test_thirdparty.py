"""`make test-thirdparty`: what is said of paths before anything runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import UsageError
from tests.thirdparty.__main__ import HOW, main
from tests.thirdparty.kinds import Kind, kind_of
from tests.thirdparty.watched import watch


@pytest.fixture
def compile_c(tmp_path: Path) -> Path:
    if shutil.which("cc") is None or shutil.which("nm") is None:
        pytest.skip("needs cc and nm")
    return tmp_path


def made(folder: Path, text: str, *flags: str) -> Path:
    source, target = folder / "source.c", folder / "made"
    source.write_text(text)
    subprocess.run(["cc", str(source), "-o", str(target), *flags], check=True)
    return target


def test_without_programs_a_line_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().err == f"test-thirdparty: {HOW}\n"


def test_make_needs_no_programs_to_say_so() -> None:
    root = Path(__file__).parents[3]
    command = ["make", "-s", "-o", "setup", "SUDO=", "test-thirdparty"]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.splitlines()[0]) == (2, f"test-thirdparty: {HOW}")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing", None, "there is no such file"),
        (".", None, "is no file"),
        ("text", b"hello", "is neither a program nor a shared object"),
        ("empty", b"", "is neither a program nor a shared object"),
        ("cut", b"\x7fELF\x02", "is no program, and as a plugin it would export one of ncclNetPlugin_v6 to v9"),
        ("script", b"#!/bin/sh\n", "may not be executed; chmod +x"),
    ],
)
def test_a_path_that_is_neither_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None, said: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert main([sys.executable, str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"test-thirdparty: {path}: {said}")
    assert told.count("\n") == 1


def test_programs_and_plugins_are_told_apart(compile_c: Path) -> None:
    shared = ("-shared", "-fPIC")
    plugin = "int ncclNetPlugin_v{};"
    assert kind_of(made(compile_c, "int main(void) { return 0; }")) is Kind.BENCHMARK
    assert kind_of(made(compile_c, "int main(void) { return 0; }", "-no-pie")) is Kind.BENCHMARK
    assert kind_of(made(compile_c, plugin.format(6), *shared)) is Kind.PLUGIN
    assert kind_of(made(compile_c, plugin.format(9) + plugin.format(11), *shared)) is Kind.PLUGIN
    # One that looks for plugins is none.
    with pytest.raises(UsageError, match="but has none"):
        kind_of(made(compile_c, 'const char *name = "ncclNetPlugin_v9";', *shared))
    with pytest.raises(UsageError, match="but has only version 10, 11"):
        kind_of(made(compile_c, plugin.format(10) + plugin.format(11), *shared))


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("echo fine", 0),
        ("exit 3", 3),
        ("kill -TERM $$", 143),
        ("echo; echo 'x Data mismatch at 3'; exec sleep 1000", 1),
        ("echo '[MRC ERROR] bad' >&2", 1),
    ],
)
def test_output_counts_as_well_as_the_status(tmp_path: Path, script: str, status: int) -> None:
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    assert watch((str(path),)) == status
