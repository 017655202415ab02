"""The shell scripts that set a machine up, against an apt that is not there and a link that is not the machine's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hangs import HANGS_S

ROOT = Path(__file__).resolve().parents[3]
LISTS = "Could not get lock /var/lib/apt/lists/lock. It is held by process 4711 (apt-get)"
FRONTEND = "Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?"

Fakes = Path


@pytest.fixture
def fakes(tmp_path: Path) -> Fakes:
    """A folder of commands that are found before the machine's own. No test needs root, so sudo is one of them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    fake(folder, "sudo", 'exec "$@"')
    return folder


def fake(folder: Fakes, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def shell(script: str, fakes: Fakes, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it as the set-up scripts run: with their options, and with what they share."""
    return subprocess.run(
        ["bash", "-c", f"set -euo pipefail; . tools/common.sh; {script}"],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{fakes}:{os.environ['PATH']}", "MRC_APT_PAUSE": "0", **environment},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def busy_apt(folder: Fakes, error: str, times: int) -> Path:
    """An apt-get that fails so often with this error. Returns the file of its calls."""
    calls = folder / "calls"
    fake(
        folder,
        "apt-get",
        f"""echo "$*" >>{calls}
[ "$(wc -l <{calls})" -gt {times} ] || {{ echo "E: {error}" >&2; exit 100; }}""",
    )
    return calls


def test_a_package_is_found_though_the_answer_goes_on_after_it(fakes: Fakes) -> None:
    # Far more than a pipe holds: a reader that stops at the first match breaks this apt-cache.
    fake(fakes, "apt-cache", 'echo "  Candidate: 1.2"; seq 100000')
    assert shell("apt_has chromium", fakes).returncode == 0


@pytest.mark.parametrize("answer", ["echo '  Candidate: (none)'", ":", "exit 100"])
def test_a_package_without_candidate_is_not_there(fakes: Fakes, answer: str) -> None:
    fake(fakes, "apt-cache", answer)
    assert shell("if apt_has chromium; then echo yes; else echo no; fi", fakes).stdout == "no\n"


def test_apt_that_is_free_is_called_once_and_says_nothing(fakes: Fakes) -> None:
    fake(fakes, "apt-get", 'echo "$*"; echo "Hit:1 mirror"; echo "debconf: delaying" >&2')
    ended = shell("apt_install clang tshark", fakes)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("error", "who"), [(LISTS, r"process 4711 (apt-get)"), (FRONTEND, "another process")], ids=["lists", "frontend"]
)
def test_busy_apt_is_waited_for_with_one_line(fakes: Fakes, error: str, who: str) -> None:
    calls = busy_apt(fakes, error, times=3)
    ended = shell("as_root_apt update -q; echo went on", fakes)
    assert ended.stdout == f"setup: waiting up to 300 s for apt: {who} has it\nwent on\n"
    assert (ended.returncode, ended.stderr) == (0, "")
    assert calls.read_text(encoding="utf-8") == "update -q\n" * 4


def test_apt_that_stays_busy_is_given_up(fakes: Fakes) -> None:
    busy_apt(fakes, LISTS, times=1000)
    ended = shell("as_root_apt update -q; echo went on", fakes, MRC_APT_PATIENCE="0")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr == (
        "setup: waited 0 s for apt, and process 4711 (apt-get) still has it; run this again when that is done\n"
    )


def test_apt_that_fails_shows_its_own_lines(fakes: Fakes) -> None:
    fake(fakes, "apt-get", "seq 1000; echo 'E: Unable to locate package nothing' >&2; exit 100")
    ended = shell("apt_install nothing; echo went on", fakes)
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr.splitlines()[-2:] == [
        "E: Unable to locate package nothing",
        "setup: apt-get update failed with status 100; its last lines are above",
    ]


def test_no_way_to_be_root_is_said(fakes: Fakes) -> None:
    fake(fakes, "id", "echo 1000")
    ended = shell("command() { return 1; }; as_root_apt update -q", fakes)  # as if there were no sudo
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr == "setup: needs root for: apt-get update -q (run as root, or install sudo)\n"


def test_warnings_of_apt_are_seen(fakes: Fakes) -> None:
    fake(fakes, "apt-get", "echo 'W: Failed to fetch a list' >&2")
    assert shell("as_root_apt update -q", fakes).stderr == "W: Failed to fetch a list\n"


class TestPutOnPath:
    """`link` takes the place of /usr/local/bin/mrc-testbed."""

    here = ROOT / ".venv" / "bin" / "mrc-testbed"

    @pytest.fixture(autouse=True)
    def places(self, tmp_path: Path, fakes: Fakes) -> None:
        self.fakes = fakes
        self.link = tmp_path / "mrc-testbed"
        self.other = tmp_path / "other-checkout"
        self.other.touch()

    def put(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return shell(" ".join(["tools/put-on-path", *arguments]), self.fakes, MRC_LINK=str(self.link))

    def test_links_where_nothing_is(self) -> None:
        assert self.put("--is-done").returncode == 1
        assert not self.link.is_symlink()
        ended = self.put()
        assert (ended.returncode, ended.stdout) == (0, f"setup: linking {self.link}\n")
        assert self.link.readlink() == self.here

    def test_says_nothing_the_second_time(self) -> None:
        self.put()
        for arguments in ((), ("--is-done",)):
            ended = self.put(*arguments)
            assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")

    def test_leaves_another_checkouts_link_and_says_so(self) -> None:
        self.link.symlink_to(self.other)
        ended = self.put()
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout == (
            f"setup: {self.link} stays as it is ({self.other}); use .venv/bin/mrc-testbed here, "
            f"or, as root: ln -sfn {self.here} {self.link}\n"
        )
        assert self.link.readlink() == self.other

    def test_is_done_where_another_checkout_has_the_link(self) -> None:
        self.link.symlink_to(self.other)
        ended = self.put("--is-done")
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")

    def test_takes_a_link_whose_target_is_gone(self) -> None:
        self.link.symlink_to(self.other)
        self.other.unlink()
        assert self.put("--is-done").returncode == 1
        self.put()
        assert self.link.readlink() == self.here

    def test_leaves_a_command_that_is_no_link(self) -> None:
        self.link.write_text("from elsewhere", encoding="utf-8")
        assert "stays as it is" in self.put().stdout
        assert self.link.read_text(encoding="utf-8") == "from elsewhere"


class TestWithoutCore:
    """`tools/setup` in a checkout whose `.venv` only notes what it is asked to do."""

    @pytest.fixture(autouse=True)
    def checkout(self, tmp_path: Path, fakes: Fakes) -> None:
        self.fakes, self.root, self.asked = fakes, tmp_path / "checkout", tmp_path / "asked"
        for folder in ("hosts", "testbed/fabric", "testbed/virtual", "testbed/switching"):
            shutil.copytree(ROOT / folder, self.root / folder, ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / "tools").mkdir()
        tools = [f"tools/{name}" for name in ("common.sh", "compile_core.py", "put-on-path", "setup")]
        for name in ("apt-packages.txt", "pyproject.toml", "uv.lock", *tools):
            shutil.copy(ROOT / name, self.root / name)
        fake(fakes, "dpkg-query", "echo install ok installed")
        programs = self.root / ".venv" / "bin"
        programs.mkdir(parents=True)
        fake(programs, "python", f'[ "$1" = -c ] && echo /usr || echo "$*" >>{self.asked}')
        fake(programs, "uv", ":")

    def steps(self, *arguments: str) -> list[str]:
        """What one more set-up asks Python for."""
        self.asked.write_text("", encoding="utf-8")
        environment = {
            **os.environ,
            "PATH": f"{self.fakes}:{os.environ['PATH']}",
            "MRC_LINK": str(self.root.parent / "link"),
        }
        command = [str(self.root / "tools/setup"), *arguments]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANGS_S, check=False)
        assert ended.returncode == 0, ended.stderr
        return self.asked.read_text(encoding="utf-8").split("\n")[:-1]

    def test_all_but_the_core_is_made_and_the_next_set_up_makes_it(self) -> None:
        core = "tools/compile_core.py"
        first = self.steps("--without-core")
        assert "-m mrc_testbed.testbed.fabric.port_object" in first
        assert core not in first
        assert self.steps("--without-core") == []
        assert core in self.steps()
        assert self.steps() == []
        assert self.steps("--without-core") == []  # and it is not forgotten that the core was made

    def test_what_could_not_be_compiled_is_tried_again(self) -> None:
        core, python = "tools/compile_core.py", self.root / ".venv" / "bin" / "python"
        able = python.read_text(encoding="utf-8")
        fake(python.parent, "python", f"{able}\n[ $1 != {core} ]")
        assert core in self.steps()
        assert core in self.steps()
        python.write_text(able, encoding="utf-8")
        assert core in self.steps()
        assert self.steps() == []

    @pytest.mark.parametrize(("target", "set_up"), [("demo", "tools/setup --without-core"), ("test", "tools/setup")])
    def test_only_the_demo_leaves_it_out(self, target: str, set_up: str) -> None:
        told = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert [line for line in told.splitlines() if line.split()[0] == "tools/setup"] == [set_up]

    def test_another_option_is_refused(self) -> None:
        command = [str(self.root / "tools/setup"), "--no-core"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
        assert (ended.returncode, ended.stderr) == (4, "setup: unknown option --no-core; there is --without-core\n")


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a Python that others may not read is root's")


def a_python(folder: Path, prefix: Path, version: str = "3, 12", built: str = "") -> Path:
    """One that says where its files are, how new it is, and how it was built."""
    folder.mkdir(parents=True, exist_ok=True)
    prefix.mkdir(parents=True, exist_ok=True)
    old = f"import sys, sysconfig; sys.version_info = ({version}); sys.base_prefix = {str(prefix)!r}"
    old += f"; sysconfig.get_config_var = lambda name: {built!r}"
    path = folder / "python3"
    path.write_text(f"""#!/bin/sh\nexec {sys.executable} -c "{old}; exec(\\"\\"\\"$2\\"\\"\\")"\n""", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Where all users may go, as they may not below pytest's folders."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@needs_root
def test_root_is_set_up_with_a_python_that_others_may_read(fakes: Fakes, open_folder: Path) -> None:
    mine = a_python(open_folder / "pyenv", open_folder / "closed")
    (open_folder / "closed").chmod(0o700)
    theirs = a_python(open_folder / "usr", open_folder / "open")
    old = a_python(open_folder / "old", open_folder / "open", "3, 9")
    assert shell(f"PYTHONS=({old} {mine} {theirs}); find_python", fakes).stdout == f"{theirs}\n"
    assert shell(f"PYTHONS=({old} {mine}); find_python", fakes).stdout == f"{mine}\n"
    assert "needs Python 3.11 or newer" in shell(f"PYTHONS=({old}); find_python", fakes).stderr


def test_a_python_that_is_optimised_is_preferred(fakes: Fakes, open_folder: Path) -> None:
    plain = a_python(open_folder / "pyenv", open_folder / "open", built="--enable-shared")
    quick = a_python(open_folder / "quick", open_folder / "open", built="--enable-shared --enable-optimizations")
    distribution = a_python(open_folder / "bin", Path("/usr"))
    for better in (quick, distribution):
        assert shell(f"PYTHONS=({plain} {better}); find_python", fakes).stdout == f"{better}\n"
    assert shell(f"PYTHONS=({plain}); find_python", fakes).stdout == f"{plain}\n"


@needs_root
def test_a_python_of_root_alone_is_told_with_the_fix(fakes: Fakes, open_folder: Path) -> None:
    mine = a_python(open_folder / "pyenv", open_folder / "closed")
    assert shell(f"warn_of_closed_python {mine}", fakes).stderr == ""
    (open_folder / "closed").chmod(0o700)
    told = shell(f"warn_of_closed_python {mine}", fakes).stderr
    assert told.startswith(f"setup: warning: only root may enter {open_folder}/closed, so other users, and the server")
    assert f"Fix: chmod o+x {open_folder}/closed" in told
    assert told.count("\n") == 1
