"""`pip install .` into an environment of its own, and commands from another folder that find their files there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from mrc_testbed.testbed.version import checked_out
from tests.hangs import HANGS_S
from tests.workers import made_once, shared_folder

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PACKAGES = ("testbed", "hosts", "topos", "scenarios")
SYSTEMS = ("win32", "darwin")
SMALL = ROOT / "tests/unit/small_virtual.yaml"
"""The installed core is not compiled: the quickstart takes a minute on a busy machine."""
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}


class Installed:
    """A scratch environment. It has our dependencies through a .pth, which does not bring our editable install."""

    def __init__(self, environment: Path, elsewhere: Path) -> None:
        self.elsewhere = elsewhere
        self.bin = environment / "bin"
        with made_once(environment) as wanted:
            if wanted:
                venv.create(environment)
            self.site = Path(self.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
            self.package = self.site / "mrc_testbed"
            if wanted:
                self._install()

    def _install(self) -> None:
        (self.site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install", "--quiet", "--no-compile"]
        offline = ["--no-deps", "--no-index", "--no-build-isolation", "--force-reinstall"]
        subprocess.run([*pip, *offline, str(ROOT)], check=True, env=ENVIRONMENT, cwd=self.elsewhere, timeout=HANGS_S)

    def run(self, command: str, *arguments: str, **environment: str) -> str:
        """What a command of the environment prints, called from a folder that holds nothing."""
        done = subprocess.run(
            [str(self.bin / command), *arguments],
            capture_output=True, encoding=environment.get("PYTHONIOENCODING", "utf-8"), timeout=HANGS_S,
            env={**ENVIRONMENT, **environment}, cwd=self.elsewhere,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(shared_folder(tmp_path_factory, "install") / "env", tmp_path_factory.mktemp("elsewhere"))


def files(root: Path) -> set[str]:
    """By their paths below `root`, the checkout or the installed package."""
    found = (path for package in PACKAGES for path in (root / package).rglob("*"))
    return {str(path.relative_to(root)) for path in found if path.is_file() and path.suffix != ".pyc"}


def test_every_file_of_the_packages_is_installed(installed: Installed) -> None:
    assert files(installed.package) - {"testbed/commit.txt"} == files(ROOT)


def test_it_brings_one_name(installed: Installed) -> None:
    ours = {path.name for path in installed.site.iterdir() if not path.name.startswith(("pip", "setuptools", "_"))}
    names = {name for name in ours if not name.endswith((".dist-info", ".pth", ".py"))}
    assert names - {"pkg_resources"} == {"mrc_testbed"}
    assert {path.name for path in installed.package.glob("*.py")} == {
        "__init__.py",
        "__main__.py",
        "api.py",
        "verbs.py",
    }


def test_it_runs_from_where_it_is_installed(installed: Installed) -> None:
    program = "import mrc_testbed; from mrc_testbed import hosts, testbed, topos\n"
    program += "print(*(each.__path__ for each in (mrc_testbed, testbed, hosts, topos)))"
    folders = [[str(installed.package / name)] for name in ("", "testbed", "hosts", "topos")]
    assert installed.run("python", "-c", program) == f"{' '.join(map(str, folders))}\n"
    program = "from mrc_testbed.testbed.scenario.load import shipped; print(shipped.FOLDER)"
    assert installed.run("python", "-c", program).strip() == str(installed.package / "scenarios")


@pytest.mark.nightly
def test_modules_of_the_same_names_are_the_users(installed: Installed) -> None:
    """In the folder that a command runs in; there is a `socket.py` as well."""
    for name in (*PACKAGES, "socket"):
        (installed.elsewhere / f"{name}.py").write_text("raise SystemExit('a module of the user was run')\n")
    try:
        installed.run("mrc-testbed", "run", str(SMALL), "--virtual", "-q")
        assert installed.run("python", "-P", "-m", "mrc_testbed", "--version").startswith("mrc-testbed ")
    finally:
        for name in (*PACKAGES, "socket"):
            (installed.elsewhere / f"{name}.py").unlink()


def test_it_knows_what_it_was_built_from(installed: Installed) -> None:
    known = (checked_out(ROOT) or "unknown")[:7]
    assert installed.run("mrc-testbed", "--version").endswith(f"(commit {known}, {installed.package})\n")


@pytest.mark.nightly
def test_the_scenarios_came_along(installed: Installed) -> None:
    assert "quickstart" in installed.run("mrc-testbed", "scenarios")
    assert "quickstart" in installed.run("mrc-testbed", "validate", "quickstart")


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.nightly(keep=1)
def test_it_runs_where_there_is_no_linux(installed: Installed, system: str) -> None:
    """The installed package, without the modules and names that other systems lack."""
    barred = str(ROOT / "tests" / "other_system.py")
    told = installed.run("python", "-P", barred, system, f"run {SMALL} --virtual -q", "run quickstart")
    (status, text), (refused, _why) = json.loads(told)
    assert (status, refused) == (0, 4), text
    assert "PASS  small" in text


def test_what_it_writes_is_utf_8_and_what_it_prints_fits_any_terminal(installed: Installed) -> None:
    """Windows has another usual encoding, for files and for pipes."""
    strict = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning"]
    installed.run("python", *strict, "-m", "mrc_testbed", "run", str(SMALL), "--virtual", PYTHONIOENCODING="cp1252")
