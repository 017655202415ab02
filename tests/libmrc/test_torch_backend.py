"""Backend "mrc" of torch.distributed: each call gives what it must, a job needs no line changed, and nobody hangs.

Run with each Python that has PyTorch: this one, Debian's, and that of MRC_TESTBED_TORCH_PYTHON.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.libmrc.jobs import ROOT, outcomes, ranks
from tests.libmrc.memory_daemon import MemoryDaemon
from tests.libmrc.pair import Pair

JOB = Path(__file__).with_name("torch_job.py")
TRAIN = ROOT / "scenarios/programs/train.py"
CANDIDATES = [sys.executable, "/usr/bin/python3", os.environ.get("MRC_TESTBED_TORCH_PYTHON", "")]
TIMES_OUT = """
from datetime import timedelta
import torch, torch.distributed as dist
import mrc_testbed.torch
dist.init_process_group("mrc", timeout=timedelta(seconds=5))
if dist.get_rank() == 0:
    import time
    time.sleep(9)
else:
    try:
        dist.all_reduce(torch.ones(3))
    except RuntimeError as error:
        print(str(error).splitlines()[0], flush=True)
"""
BACKWARD = """
import os, time
from datetime import timedelta
import torch, torch.distributed as dist
import mrc_testbed.torch
dist.init_process_group("mrc", timeout=timedelta(seconds=60))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
model(torch.ones(1, 4)).sum().backward()
store = dist.distributed_c10d._get_default_store()
if dist.get_rank() == 1:
    store.set("leaves", b"1")
    os._exit(0)
store.wait(["leaves"])
time.sleep(0.5)
try:
    model(torch.ones(1, 4)).sum().backward()
except RuntimeError as error:
    print("failed", "no acknowledgement" in str(error), flush=True)
"""
LEAVES = """
import os, time
from datetime import timedelta
import torch, torch.distributed as dist
import mrc_testbed.torch
dist.init_process_group("mrc", timeout=timedelta(seconds=60))
store = dist.distributed_c10d._get_default_store()
if dist.get_rank() == 1:
    store.set("leaves", b"1")
    os._exit(0)
store.wait(["leaves"])
time.sleep(0.5)
try:
    dist.all_reduce(torch.ones(3))
except RuntimeError as error:
    print(str(error).splitlines()[0], flush=True)
"""


@cache
def has_torch(python: str) -> bool:
    found = subprocess.run([python, "-c", "import torch.distributed"], capture_output=True, check=False)
    return found.returncode == 0


@pytest.fixture(params=CANDIDATES, ids=["this", "Debian", "other"])
def python(request: pytest.FixtureRequest) -> str:
    path = str(request.param)
    if not path or not Path(path).exists() or not has_torch(path):
        pytest.skip("no PyTorch here")
    return path


def run(tmp_path: Path, size: int, command: list[str], **variables: str) -> list[tuple[int, str]]:
    with MemoryDaemon(tmp_path, size) as daemon:
        return outcomes(ranks(daemon, command, WORLD_SIZE=str(size), OMP_NUM_THREADS="1", **variables))


@pytest.mark.parametrize("what", ["all_reduce", "others", "tensors", "points", "groups", "training"])
def test_each_call_gives_what_it_must(tmp_path: Path, python: str, what: str) -> None:
    for status, out in run(tmp_path, 3, [python, str(JOB), what]):
        assert (status, out.splitlines()[-1:]) == (0, [f"{what} right, mrc"]), out


def test_a_rank_alone_needs_no_daemon(python: str, tmp_path: Path) -> None:
    job = {"WORLD_SIZE": "1", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "MRC_TESTBED_SOCKET": ""}
    done = subprocess.run(
        [python, str(JOB), "training"],
        env={**os.environ, **job, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_job_for_gloo_runs_without_a_line_changed(tmp_path: Path, python: str) -> None:
    """It compares its weights itself; the second training takes the same steps."""
    command = [python, "-m", "mrc_testbed.torch", str(TRAIN)]
    found = run(tmp_path, 2, command, STEPS="2", SECOND_AT="0")
    for status, out in found:
        assert status == 0, out
        lines = [line for line in out.splitlines() if line.startswith(("begin", "step", "weights"))]
        assert [line.split(",")[0] for line in lines[:-1]] == [
            *("begin", "step 0 done", "step 1 done"),
            *("begin", "step 2 done", "step 3 done"),
        ]
    assert len({out.splitlines()[-1] for _, out in found}) == 1


def test_what_is_not_done_in_time_is_an_error(tmp_path: Path, python: str) -> None:
    (_, _), (status, out) = run(tmp_path, 2, [python, "-c", TIMES_OUT])
    assert status == 0
    assert "all_reduce: waited 5 s for rank 0 (h0)" in out


def test_a_rank_that_has_gone_is_an_error(tmp_path: Path, python: str) -> None:
    (status, out), (_, _) = run(tmp_path, 2, [python, "-c", LEAVES])
    assert status == 0
    assert "all_reduce: rank 1 (h1): QP" in out
    assert "no acknowledgement" in out


def test_a_rank_that_has_gone_fails_the_training(tmp_path: Path, python: str) -> None:
    (status, out), (_, _) = run(tmp_path, 2, [python, "-c", BACKWARD])
    assert status == 0
    assert "failed True" in out


def test_the_runner_needs_a_script(python: str) -> None:
    done = subprocess.run(
        [python, "-m", "mrc_testbed.torch"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (1, "usage: python -m mrc_testbed.torch SCRIPT [ARGUMENT ...]")


def test_training_goes_on_while_paths_are_dead(tmp_path: Path, python: str) -> None:
    """Over the daemons' own code and the MRC core."""
    with Pair(tmp_path, loss=0.01) as pair:
        pair.dead = {(0, 0), (1, 1)}
        places: Any = SimpleNamespace(paths=[host.path for host in pair.hosts])
        found = outcomes(ranks(places, [python, str(JOB), "training"], WORLD_SIZE="2", OMP_NUM_THREADS="1"))
    for status, out in found:
        assert (status, out.splitlines()[-1:]) == (0, ["training right, mrc"]), out
