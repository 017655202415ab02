"""Programs with a NIC on the kernel: what is shipped passes, the NIC is found, and nothing is left of who is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emu.runs import COMMAND, Run
from tests.retry import Inconclusive
from tests.thirdparty import standins

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "scenarios/programs"
PAIR = """
name: nics
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1}
workload:
  - programs: {name: mine, verbs: VERBS, commands: COMMANDS, files: FILES, step: 'step (.+) done', timeout: 60s}
expect: [programs_failed == 0]
"""
WAITS = ["sh", "-c", "echo step 0 done; while [ ! -e stop ]; do sleep 0.1; done; ping -c 1 h0"]
RING = ["env", "ROUNDS=100000", "python3", "verbs_allreduce.py"]
LISTS = """
import ctypes
count = ctypes.c_int()
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
found = verbs.ibv_get_device_list(ctypes.byref(count))
verbs.ibv_get_device_name.restype = ctypes.c_char_p
print(count.value, verbs.ibv_get_device_name(ctypes.c_void_p(found[0])).decode())
"""
WITHOUT_COMPILER = """
import sys
from pathlib import Path
from mrc_testbed.testbed.fabric import verbs_library
verbs_library.cached = lambda stem, *_: Path(sys.argv[1]) / stem
from mrc_testbed.__main__ import main
sys.argv = ["mrc-testbed", *sys.argv[2:]]
main()
"""


def shipped(folder: Path, name: str, *changes: tuple[str, str], options: tuple[str, ...] = ()) -> Run:
    """A run of that scenario, whose text and files are changed."""
    for file in SHIPPED.glob("verbs_*"):
        folder.mkdir(exist_ok=True)
        (folder / file.name).write_text(
            _changed(file.read_text(), [one for one in changes if one[0] in file.read_text()])
        )
    text = (SHIPPED / f"{name}.yaml").read_text()
    return Run(folder, scenario=_changed(text, [one for one in changes if one[0] in text]), options=options)


def _changed(text: str, changes: list[tuple[str, str]]) -> str:
    for old, new in changes:
        text = text.replace(old, new)
    return text


def pair(folder: Path, verbs: str, commands: dict[str, list[str]], files: tuple[str, ...] = ()) -> Run:
    for name in files:
        shutil.copy(SHIPPED / name, folder)
    text = PAIR.replace("VERBS", verbs).replace("COMMANDS", json.dumps(commands))
    return Run(folder, scenario=text.replace("FILES", json.dumps(files)))


def execute(run: Run, host: str, *command: str) -> str:
    words = [*COMMAND, "exec", "--out", str(run.out), host, "--", *command]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def programs(run: Run) -> dict[str, tuple[str, str]]:
    """Status of each host's program, and whether it was killed by the run."""
    lines = [line.split(",") for line in (run.folder / "programs.csv").read_text().splitlines()]
    rows = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    return {row["host"]: (row["status"], row["killed"]) for row in rows}


def events(run: Run, name: str) -> list[dict[str, object]]:
    lines = (run.folder / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == name]


# What is shipped, in short


@pytest.mark.timed
@pytest.mark.nightly
def test_the_c_program_passes_through_faults(tmp_path: Path) -> None:
    changes = [
        ("STEPS = 40", "STEPS = 20"),
        ("steps: 40", "steps: 20"),
        ("at: 5s", "at: 3s"),
        ("at: 7500ms", "at: 4s"),
    ]
    run = shipped(tmp_path, "verbs-write", *changes)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert set(programs(run).values()) == {("0", "0")}
    counted = json.loads((run.folder / "counters.json").read_text())["hosts"]
    assert counted["h0"]["counters"]["verbs_in_bytes"] == 20 << 20
    assert counted["h4"]["counters"]["verbs_writes_done"] == 20 * 16


@pytest.mark.timed
@pytest.mark.nightly
def test_the_ring_in_python_passes_through_faults(tmp_path: Path) -> None:
    """It lasts for 8 s on a quick machine, and the last fault heals at 5 s."""
    times = [("at: 3s", "at: 1s"), ("at: 8s", "at: 2s"), ("at: 14s", "at: 3s")]
    changes = [('ROUNDS: "20"', 'ROUNDS: "9"'), ("steps: 20", "steps: 9"), *times]
    run = shipped(tmp_path, "verbs-allreduce", *changes)
    run.finish()
    run.assert_passed_or_machine_was_busy()


@pytest.mark.timed
@pytest.mark.nightly
def test_who_is_cut_off_hears_of_it_and_nobody_hangs(tmp_path: Path) -> None:
    run = shipped(tmp_path, "verbs-cut-off")
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert {str(event["host"]) for event in events(run, "qp_error")} >= {"h4", "h5"}


@pytest.mark.timed
@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("ib_write_bw") is None, reason="needs apt-get install perftest")
def test_the_programs_of_debian_pass_through_faults(tmp_path: Path) -> None:
    changes = [
        ("1300", "350"),
        ("-n 300", "-n 60"),
        ("+300", "+60"),
        ("at: 3s", "at: 1s"),
        ("at: 7s", "at: 3s"),
        ("at: 12s", "at: 4s"),
    ]
    bounds = [("program.bandwidth.median >= 4.5", "program.bandwidth.median >= 3")]
    run = shipped(tmp_path, "perftest", *changes, *bounds, options=("--variants", "mrc"))
    run.finish()
    run.assert_passed_or_machine_was_busy()


@pytest.mark.timed
@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("kind", ["plugin", "benchmark"])
def test_programs_of_others_pass_through_faults(tmp_path: Path, kind: str) -> None:
    """Our own programs in their place, by what `make test-thirdparty` calls."""
    made = standins.plugin(tmp_path / "plugin.so") if kind == "plugin" else standins.benchmark(tmp_path / "benchmark")
    command = [sys.executable, "-m", "tests.thirdparty", "--out", str(tmp_path / "out"), str(made)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False)
    last = ended.stdout.splitlines()[-1]
    if ended.returncode == 3:
        raise Inconclusive(last)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert last.startswith(f"PASS  {made}, a {kind} "), last
    assert (" MB/s" if kind == "plugin" else " 65536 B at 0.0") in last


# What is refused


def test_a_transport_of_the_kernel_has_no_queue_pairs(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    commands = json.dumps({"h0": WAITS, "h1": WAITS})
    text = PAIR.replace("VERBS", "libraries").replace("COMMANDS", commands).replace("FILES", "[]")
    file.write_text(f"{text}transport: tcp\n")
    told = subprocess.run([*COMMAND, "run", str(file)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    first, *shown = told.stderr.splitlines()
    assert first.startswith(f"{file}:5:35: workload.0.programs.verbs: verbs need QPs")
    assert len(shown) == 2, "the line, and a mark below it"


@pytest.mark.parametrize("verbs", ["libraries", "preload"])
@pytest.mark.nightly(keep=1)
def test_without_a_compiler_the_machine_lacks_something(tmp_path: Path, verbs: str) -> None:
    """Once it has been compiled nothing is lacking, so this is as before."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/sbin", "/usr/bin"):
        for tool in Path(folder).iterdir():
            if tool.name not in ("cc", "gcc", "clang") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    file = tmp_path / "x.yaml"
    commands = json.dumps({"h0": WAITS, "h1": WAITS})
    file.write_text(PAIR.replace("VERBS", verbs).replace("COMMANDS", commands).replace("FILES", "[]"))
    command = [sys.executable, "-c", WITHOUT_COMPILER, str(tmp_path / "cache"), "run", str(file)]
    environment = {**os.environ, "PATH": str(tools)}
    told = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == 4, told.stderr
    assert "there is no C compiler" in told.stderr
    assert told.stderr.count("\n") == 1
    assert not (tmp_path / "results").exists()


# Surroundings, and ends


@pytest.mark.nightly
def test_a_command_in_a_run_finds_the_nic(tmp_path: Path) -> None:
    run = pair(tmp_path, "libraries", {"h0": WAITS, "h1": WAITS})
    run.wait_until_step(0)
    assert execute(run, "h1", "python3", "-c", LISTS) == "1 mlx5_0\n"
    python = "from mrc_testbed import verbs; device = verbs.open(); print(device.name, device.host)"
    assert execute(run, "h1", "python3", "-c", python).startswith("mlx5_0")
    assert execute(run, "h1", "sh", "-c", "echo $MRC_TESTBED_DEVICE $NCCL_IB_GID_INDEX") == "mlx5_0 3\n"
    sys_folder = "/sys/class/infiniband/mlx5_0"
    assert execute(run, "h1", "cat", f"{sys_folder}/ports/1/gids/3") == "0000:0000:0000:0000:0000:ffff:0a40:0002\n"
    assert execute(run, "h1", "realpath", f"{sys_folder}/device").startswith("/sys/")
    for host in ("h0", "h1"):
        execute(run, host, "touch", "stop")
    run.finish()
    run.assert_passed_or_machine_was_busy()


@pytest.mark.nightly
def test_a_killed_program_ends_its_job_and_no_daemon(tmp_path: Path) -> None:
    run = pair(tmp_path, "python", {"h0": RING, "h1": RING}, ("verbs_allreduce.py",))
    run.wait_until_step(2)
    (first, *_) = [pid for pid in run.pids("verbs_allreduce.py") if host_of(pid) == "h0"]
    os.kill(first, signal.SIGKILL)
    assert run.finish() in (1, 3)
    assert programs(run)["h0"] == ("-9", "0")
    assert programs(run)["h1"][0] != "0"
    held = {check["name"]: check.get("unbelieved") or check["status"] for check in run.verdict["checks"]}
    assert held["programs_failed == 0"] == "fail"
    assert held["the fabric was as planned"] == "pass"


@pytest.mark.nightly
def test_kill_9_of_the_command_leaves_nothing_of_programs_with_a_nic(tmp_path: Path) -> None:
    run = pair(tmp_path, "python", {"h0": RING, "h1": RING}, ("verbs_allreduce.py",))
    run.wait_until_step(2)
    assert len(run.pids("verbs_allreduce.py")) >= 2
    os.kill(run.process.pid, signal.SIGKILL)
    run.finish()
    assert not run.pids()


def host_of(pid: int) -> str:
    words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return next((word.partition("=")[2] for word in words if word.startswith("MRC_HOST=")), "")
