"""tools/check_wheel.py: what this checkout builds passes it, and each mistake is found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mrc_testbed.testbed.version import checked_out
from tests.hangs import HANGS_S
from tests.unit.repository.developer_tools import loaded

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
URL = "https://github.example/OWNER/mrc-testbed"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return loaded("check_wheel.py")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    environment = {**os.environ, "MRC_TESTBED_REPOSITORY": URL}
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run([*build, "-t", "sdist"], check=True, capture_output=True, cwd=ROOT, env=environment, timeout=HANGS_S)
    (packed,) = folder.glob("*.tar.gz")
    unpacked = tmp_path_factory.mktemp("unpacked")
    shutil.unpack_archive(packed, unpacked)
    (inside,) = unpacked.iterdir()
    subprocess.run(
        [*build, "-t", "wheel"], check=True, capture_output=True, cwd=inside, env=environment, timeout=HANGS_S
    )
    return folder


@pytest.fixture
def wheel(tool: ModuleType, dist: Path) -> Any:
    return tool.Wheel(next(dist.glob("*.whl")))


def test_a_wheel_built_from_the_sdist_is_as_it_should_be(tool: ModuleType, dist: Path, wheel: Any) -> None:
    assert tool.mistakes(dist, f"v{wheel.version}", URL) == []


def test_it_knows_the_commit_of_the_sdist(wheel: Any) -> None:
    known = checked_out(ROOT)
    kept = wheel.files.get("mrc_testbed/testbed/commit.txt")
    assert kept == (f"{known}\n".encode() if known else None)


def test_the_command_prints_sizes(dist: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "check_wheel.py"), str(dist)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    done = subprocess.run([*command, "--tag", "v0.0.1"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("under the tag v0.0.1")) == (1, 1)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda files: files.pop("mrc_testbed/scenarios/quickstart.yaml"), "quickstart.yaml is missing"),
        (lambda files: files.update({"mrc_testbed/testbed/test_x.py": b""}), "test_x.py does not belong there"),
        (lambda files: files.update({"hosts/__init__.py": b""}), "hosts would be a second import name"),
        (lambda files: files.update({"mrc_testbed/api.py": b"x"}), "api.py differs from the checkout"),
    ],
    ids=["missing", "strange", "second-name", "changed"],
)
def test_wrong_contents_are_found(
    tool: ModuleType, wheel: Any, change: Callable[[dict[str, bytes]], object], told: str
) -> None:
    change(wheel.files)
    assert any(told in line for line in tool.wrong_contents(wheel))


def test_a_sum_that_does_not_hold_is_found(tool: ModuleType, wheel: Any) -> None:
    wheel.files["mrc_testbed/api.py"] += b"#"
    assert tool.wrong_record(wheel) == ["RECORD does not have the sum of mrc_testbed/api.py"]


@pytest.mark.parametrize(
    "names", [["a:b"], ["con.py"], ["a/NUL"], ["a./b"], ["a" * 131], ["A.py", "a.py"]], ids=lambda names: names[0][:9]
)
def test_names_that_windows_refuses_are_found(tool: ModuleType, names: list[str]) -> None:
    assert len(tool.wrong_names(names)) == 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("License-Expression: Apache-2.0", "License-Expression: MIT", "License-Expression is 'MIT'"),
        ("Keywords: ", "Key: ", "Keywords is missing"),
        ("Classifier: Environment :: Console", "Classifier: Environment :: Moon", "no classifier"),
        ("\n\n# mrc-testbed", "\n\n# something", "the description is not the README"),
        ("Project-URL: Source, https://github.example", "Project-URL: Source, https://other.example", "is not at"),
        (f"]({URL}/", "](", "the description leads to"),
    ],
    ids=["licence", "keywords", "classifier", "readme", "address", "link"],
)
def test_wrong_metadata_are_found(tool: ModuleType, wheel: Any, old: str, new: str, told: str) -> None:
    name = f"{wheel.info}/METADATA"
    text = wheel.files[name].decode()
    assert old in text
    wheel.files[name] = text.replace(old, new).encode()
    assert any(told in line for line in tool.wrong_metadata(wheel, URL))


def test_sizes_versions_and_the_sdist_are_looked_at(tool: ModuleType, dist: Path, tmp_path: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    assert tool.wrong_size(sdist, 1000)
    assert tool.wrong_version("0.2.0", "0.2.0") == ["version 0.2.0 under the tag 0.2.0"]
    with tarfile.open(tmp_path / "x-1.tar.gz", "w:gz") as empty:
        empty.add(sdist, "x-1/a.pyc")
    assert "a.pyc does not belong there" in tool.wrong_sdist(tmp_path / "x-1.tar.gz")
    assert "LICENSE is missing" in tool.wrong_sdist(tmp_path / "x-1.tar.gz")
    assert tool.mistakes(tmp_path) == [f"{tmp_path}: 0 wheels and 1 sdists, not one of each"]
