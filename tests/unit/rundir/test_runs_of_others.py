"""A run that another user made up: root enters nothing of it and gives it no terminal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrc_testbed.testbed.rundir.ownership import OWNER
from tests.unit.calls import Call
from tests.unit.others import NOBODY, by_nobody, folder_of_nobody, needs_root

pytestmark = needs_root
NODES = ["h0", "h1", "p0-t0-0"]
SCENARIO = """
name: t
fabric: {planes: 1, t0_groups: 1, t1: 0, hosts_per_t0: 2}
workload: [{write: {from: h0, to: h1, for: 4s}}]
"""
MAKES_UP = """
import fcntl, json, os, signal, socket, subprocess, sys
folder, mnexec, names = sys.argv[1], sys.argv[2], sys.argv[3:]
lock = os.open(folder + "/owner.lock", os.O_RDONLY)
fcntl.flock(lock, fcntl.LOCK_EX)
holds = f'''
import os, subprocess, time
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
with open("/run/mnexec", "w") as file:
    file.write("#!/bin/sh\\\\nid >{folder}/OWNED\\\\nexec /bin/bash --norc --noediting +m -is x\\\\n")
os.chmod("/run/mnexec", 0o755)
subprocess.run(["mount", "--bind", "/run/mnexec", "{mnexec}"], check=True)
kids = [subprocess.Popen(["bash", "-c", "sleep 60; :", "mininet:" + name]) for name in {names}]
print("up", flush=True)
time.sleep(60)
'''
inside = subprocess.Popen(["unshare", "-Urmn", sys.executable, "-c", holds], stdout=subprocess.PIPE)
inside.stdout.readline()
about = {
    "pid": os.getpid(),
    "pid_namespace": open("/proc/sys/kernel/random/boot_id").read().strip() + f" {os.stat('/proc/self/ns/pid').st_ino}",
    "pid_since": open("/proc/self/stat").read().rpartition(")")[2].split()[19],
}
try:
    with open(folder + "/owner.json", "w") as file:
        json.dump(about, file)
except PermissionError:
    pass
print(json.dumps(about), flush=True)
signal.pause()
"""
CALLS = [("attach", "RUN", "-c", "h0 true"), ("exec", "--run", "RUN", "h0", "--", "true")]


@pytest.fixture
def made_up() -> Iterator[Path]:
    """A folder like that of a run that goes on, and processes like those of one."""
    with folder_of_nobody() as place:
        folder = place / "20260801T000000Z-t"
        (folder / "logs").mkdir(parents=True)
        (folder / "scenario.yaml").write_text(SCENARIO)
        (folder / "owner.lock").write_text("")
        yield folder


def given_to(user: int, folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user)


@pytest.mark.parametrize("words", CALLS)
def test_a_folder_of_another_user_is_not_believed(made_up: Path, call: Call, words: tuple[str, ...]) -> None:
    given_to(NOBODY, made_up)
    with by_nobody(MAKES_UP, made_up, shutil.which("mnexec"), *NODES):
        ended = call(*(word.replace("RUN", str(made_up)) for word in words))
    assert not (made_up / "OWNED").exists()
    assert ended.status == 2
    assert f"{made_up}: belongs to nobody" in ended.err


@pytest.mark.parametrize("words", CALLS)
def test_processes_of_another_user_are_not_entered_whoever_names_them(
    made_up: Path, call: Call, words: tuple[str, ...]
) -> None:
    """As when the run of root was killed, and its process's number is another's, who holds the lock that all may."""
    with by_nobody(MAKES_UP, made_up, shutil.which("mnexec"), *NODES) as about:
        (made_up / OWNER).write_text(about)
        ended = call(*(word.replace("RUN", str(made_up)) for word in words))
    assert not (made_up / "OWNED").exists()
    assert ended.status == 2
    assert "this run belongs to nobody, and nothing of another user's is entered" in ended.err
