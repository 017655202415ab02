"""Objects in huge pages: they lie in chunks that the kernel may back by them, keep what they hold, and memory that is
free goes back; where a machine has no such pages, or forbids them, nothing happens and the reason is said."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrc_testbed.hosts import compiled, extensions, huge_pages

MADE = Path(huge_pages.EXTENSION.folder()).is_dir() or bool(os.environ.get("CI"))
USABLE = MADE and Path(huge_pages.SETTING).exists() and "[never]" not in Path(huge_pages.SETTING).read_text()
needs_it = pytest.mark.skipif(not USABLE, reason="make setup has not compiled it here, or the kernel has no huge pages")
PROGRAM = """
import gc, os, resource, sys
from mrc_testbed.hosts import huge_pages

def resident_mib():
    "In mappings that ask for huge pages (`hg`, proc(5))."
    total = kib = 0
    for line in open("/proc/self/smaps"):
        if line.startswith("Rss:"):
            kib = int(line.split()[1])
        elif line.startswith("VmFlags:") and "hg" in line.split():
            total += kib
    return total / 1024

def objects(mib):
    return [(str(number), number * 1000.5) for number in range(mib * 7000)]

def wrong(kept):
    return sum(pair != (str(number), number * 1000.5) for number, pair in enumerate(kept))
"""


def said(program: str, **environment: str) -> list[str]:
    """What the program prints; it must end well."""
    inherited = {name: value for name, value in os.environ.items() if name != huge_pages.SWITCH}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program],
        capture_output=True,
        text=True,
        check=False,
        env={**inherited, **environment},
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout.split()


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """As in a process that has not looked for the extension."""
    monkeypatch.delenv(huge_pages.SWITCH, raising=False)
    extensions.found.cache_clear()
    yield monkeypatch
    extensions.found.cache_clear()


@needs_it
def test_objects_lie_in_huge_pages_and_free_ones_go_back() -> None:
    before, full, bad, empty, again, still_bad = said(
        """
huge_pages.use(); huge_pages.use()
print(resident_mib())
few = objects(1); kept = objects(100)
print(resident_mib(), wrong(kept))
del kept; gc.collect()
print(resident_mib())
kept = objects(100)
print(resident_mib(), wrong(kept) + wrong(few))
"""
    )
    assert (bad, still_bad) == ("0", "0")
    assert float(before) < 8
    assert float(full) > 60
    assert float(empty) < float(full) / 2
    assert float(again) == pytest.approx(float(full), rel=0.1)


@needs_it
def test_a_child_has_its_own() -> None:
    assert said(
        """
huge_pages.use()
kept = objects(20)
child = os.fork()
kept += objects(40)[len(kept):]
if not child:
    os._exit(bool(wrong(kept)))
print(os.waitpid(child, 0)[1], wrong(kept))
"""
    ) == ["0", "0"]


@needs_it
def test_where_addresses_run_out_python_says_so() -> None:
    assert said(
        """
huge_pages.use()
few = objects(1)
have = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (have + (40 << 20), resource.RLIM_INFINITY))
try:
    objects(200)
except MemoryError:
    print("out", wrong(few), wrong(objects(2)))
"""
    ) == ["out", "0", "0"]


@needs_it
def test_a_variable_leaves_them_alone() -> None:
    program = "huge_pages.use(); kept = objects(20); print(resident_mib() < 1, huge_pages.described())"
    assert " ".join(said(program, **{huge_pages.SWITCH: "small"})) == "True small (MRC_TESTBED_PAGES=small)"


@pytest.mark.parametrize(
    ("setting", "lack"),
    [("always madvise [never]\n", "{file} is `never`"), (None, "this kernel has no transparent huge pages")],
)
def test_a_kernel_without_them_is_said(
    fresh: pytest.MonkeyPatch, tmp_path: Path, setting: str | None, lack: str
) -> None:
    file = tmp_path / "enabled"
    if setting:
        file.write_text(setting)
    fresh.setattr(huge_pages, "SETTING", str(file))
    huge_pages.use()
    assert huge_pages.described() == f"small ({lack.format(file=file)})"


def test_without_the_extension_the_reason_is_said(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    setting = tmp_path / "enabled"
    setting.write_text("always [madvise] never\n")
    fresh.setattr(huge_pages, "SETTING", str(setting))
    fresh.setattr(compiled, "CACHE", str(tmp_path))
    huge_pages.use()
    assert huge_pages.described().startswith("small (not compiled here; make setup does it if there is clang")
