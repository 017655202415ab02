"""The stand-ins for programs of others, between two hosts in memory whose wire loses packets."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from mrc_testbed.hosts.verbs.messages import SOCKET_VARIABLE
from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric import verbs_library
from tests.libmrc.pair import Pair

from . import standins
from .scenario import compile_driver

SECONDS = 100
"""No test takes as long."""
FUNCTION = "0000:01:00.0"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all programs, and of what they find of the NIC in /sys."""
    folder = tmp_path_factory.mktemp("standins")
    try:
        standins.benchmark(folder / "benchmark")
        standins.benchmark(folder / "wrong", "-DSTANDIN_IS_WRONG")
        place = f'-DSTANDIN_SYS="{folder}"'
        standins.plugin(folder / "plugin.so", place)
        standins.plugin(folder / "old.so", place, "-DSTANDIN_IS_OLD")
        compile_driver(folder / "driver")
    except MissingCapability as missing:
        pytest.skip(str(missing))
    (folder / f"pci0000:00/{FUNCTION}").mkdir(parents=True)
    (folder / "mlx5_0").mkdir()
    (folder / "mlx5_0/device").symlink_to(folder / f"pci0000:00/{FUNCTION}")
    return folder


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def start(pair: Pair, host: int, command: list[str], **more: str) -> subprocess.Popen[str]:
    own = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_HCA": "mlx5_0", "LD_LIBRARY_PATH": str(verbs_library.libraries())}
    environment = {**os.environ, **own, SOCKET_VARIABLE: pair.hosts[host].path, **more}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def both(pair: Pair, server: list[str], client: list[str], **more: str) -> tuple[str, str]:
    """What the two print. Both must end with 0."""
    running = [start(pair, 0, server, **more), start(pair, 1, client, **more)]
    try:
        said = [each.communicate(timeout=SECONDS)[0] for each in running]
    finally:
        for each in running:
            each.kill()
    assert [each.returncode for each in running] == [0, 0], said
    return said[0], said[1]


def benchmark(pair: Pair, program: Path) -> tuple[str, str]:
    sizes = ["-n", "200", "-w", "3", "-s", "10000", "--min-size=1", "--step-factor=32"]
    command = [str(program), "-d", "mlx5_0", "-p", str(free_port()), *sizes]
    # Its client does not try again, so it may come before its server.
    waits = ["sh", "-c", 'until ss -Hltn sport = $0 | grep -q .; do sleep 0.1; done; exec "$@"', command[4], *command]
    return both(pair, command, [*waits, "127.0.0.1"])


@pytest.mark.parametrize("loss", [0.0, 0.1])
@pytest.mark.nightly
def test_the_benchmark_ends_well_and_its_data_are_right(tmp_path: Path, built: Path, loss: float) -> None:
    """With losses, too: its server leaves as soon as it has all, and its acknowledgement may be lost."""
    with Pair(tmp_path, loss=loss) as pair:
        server, client = benchmark(pair, built / "benchmark")
    assert "Data mismatch" not in server
    assert [line.split()[:2] for line in client.splitlines()[1:5]] == [[s, "200"] for s in ("1", "32", "1024", "10000")]
    assert "completed successfully" in server
    assert "completed successfully" in client


def test_wrong_data_of_the_benchmark_show_in_its_output_alone(tmp_path: Path, built: Path) -> None:
    with Pair(tmp_path) as pair:
        server, _ = benchmark(pair, built / "wrong")
    assert "Data mismatch at 16 of 32" in server


@pytest.mark.parametrize(
    ("plugin", "options", "variables"),
    [
        ("plugin.so", [], {}),
        ("plugin.so", ["--outstanding", "16", "--group", "8"], {"NCCL_IB_QPS_PER_CONNECTION": "3"}),
        ("plugin.so", ["--outstanding", "1", "--group", "1"], {"NCCL_IB_USE_INLINE": "1"}),
        ("old.so", ["--group", "2"], {}),
    ],
)
@pytest.mark.parametrize("loss", [0.0, 0.03])
@pytest.mark.nightly(keep=2)
def test_every_byte_over_a_plugin_is_right(
    tmp_path: Path, built: Path, plugin: str, options: list[str], variables: dict[str, str], loss: float
) -> None:
    """More groups than the plugin has slots, so each is used again."""
    command = [str(built / "driver"), str(built / plugin), "--groups", "70", "--port", str(free_port()), *options]
    with Pair(tmp_path, loss=loss) as pair:
        receiver, sender = both(pair, command, [*command, "--to", "127.0.0.1"], **variables)
    assert f"plugin standin, version {6 if plugin == 'old.so' else 9}, device mlx5_0, up to 8 receives" in sender
    assert "every byte right" in receiver
