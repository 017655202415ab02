"""The scenario in which a program of others runs: two hosts, and a fabric on which links flap, a switch is rebooted and
a NIC port is lost meanwhile."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from mrc_testbed.testbed.fabric import verbs_library as library

from .kinds import Kind

HERE = Path(__file__).parent
SERVER, CLIENT = "h0", "h1"
PORT = 18185
DRIVER = "nccl_driver"
SECONDS = 8
"""For which a program's writes last, more or less, so that each fault meets some."""
BYTES = SECONDS * 5_500_000
"""What four ports of 12.5 Mb/s carry in that time, of data."""
_SIZES = (4096, 16384, 65536)
_GROUP_BYTES = 294_000
"""A group of messages of the driver, on average."""
_HEAD = """\
name: {name}
about: {about}, built elsewhere, through flapping links, a T1 reboot and a lost NIC port.
fabric: {{planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 1}}
workload:
  - programs:
      name: theirs
      verbs: libraries
      timeout: 90s
      files: {files}
      commands: {commands}
faults:
  - {{at: 1500ms, link-flap: ["p0-t0-0:p0-t1-1", "p3-t0-0:p3-t1-0"], period: 500ms, count: 3, duty: 0.4, name: flaps}}
  - {{at: 3500ms, switch-reboot: p1-t1-3, boot: 1s, name: reboot}}
  - {{at: 5500ms, link-down: "h1:p2-t0-1", for: 1s, name: port}}
expect:
  - programs_failed == 0
  - qp_errors == 0
"""


def write_scenario(folder: Path, path: Path, kind: Kind) -> Path:
    """The scenario, with a copy of the program beside it. Raises MissingCapability without a compiler."""
    name = "theirs/" + re.sub(r"[^A-Za-z0-9._-]", "_", path.name)
    (folder / "theirs").mkdir(parents=True)
    shutil.copy(path, folder / name)
    if kind is Kind.BENCHMARK:
        shutil.copy(HERE / "watched.py", folder)
        beside, commands = "watched.py", _benchmark(f"./{name}")
    else:
        compile_driver(folder / DRIVER)
        beside, commands = DRIVER, _driver(f"./{name}")
    file = folder / "scenario.yaml"
    title = re.sub(r"[^a-z0-9]+", "-", path.name.lower()).strip("-") or "program"
    text = _HEAD.format(
        name=title, about=kind.value[0].upper() + kind.value[1:], files=json.dumps([beside, name]), commands=commands
    )
    file.write_text(text, encoding="utf-8")
    return file


def compile_driver(target: Path) -> None:
    """Raises MissingCapability without a compiler."""
    flags = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror")
    subprocess.run([library.compiler(), *flags, str(HERE / "nccl_driver.c"), "-ldl", "-o", str(target)], check=True)


def _benchmark(name: str) -> str:
    count = BYTES // sum(_SIZES)
    sizes = ["-s", str(_SIZES[-1]), f"--min-size={_SIZES[0]}", f"--step-factor={_SIZES[1] // _SIZES[0]}"]
    command = [name, "-d", "mlx5_0", "-g", "3", "-p", str(PORT), "-n", str(count), "-w", "3", *sizes]
    server = ["python3", "watched.py", "server", str(PORT), *command]
    client = ["python3", "watched.py", "client", f"{SERVER}-mgmt", *command]
    return json.dumps({SERVER: server, CLIENT: client})


def _driver(name: str) -> str:
    # Copies have the rights of any file.
    command = f"chmod +x {DRIVER} && exec ./{DRIVER} {name} --groups {BYTES // _GROUP_BYTES}"
    return json.dumps({SERVER: ["sh", "-c", command], CLIENT: ["sh", "-c", f"{command} --to {SERVER}-mgmt"]})
