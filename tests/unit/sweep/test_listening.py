"""Who may give orders to schedulers and workers, and that our docs let nobody else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrc_testbed.testbed.sweep.address import SchedulerAddress
from mrc_testbed.testbed.sweep.listening import open_address

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("listens", "found"),
    [
        (["tcp://127.0.0.1:8786", "tls://0.0.0.0:8787", "inproc://10.0.0.1/1/1"], ""),
        (["tcp://[::1]:8786"], ""),
        (["tls://0.0.0.0:8786", "tcp://0.0.0.0:8786"], "tcp://0.0.0.0:8786"),
        (["tcp://[::]:8786"], "tcp://[::]:8786"),
        (["tcp://10.0.0.7:8786"], "tcp://10.0.0.7:8786"),
        (["ws://0.0.0.0:8786"], "ws://0.0.0.0:8786"),
    ],
)
def test_who_may_give_orders(listens: list[str], found: str) -> None:
    assert open_address(listens) == found


def told() -> Iterator[str]:
    """Each command that the documents and the source have for a scheduler or a worker, with all of its lines."""
    for path in (*ROOT.glob("docs/*.md"), ROOT / "README.md", *ROOT.glob(".github/**/*.yml")):
        for block in re.findall(r"```sh\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            lines = block.replace("\\\n", " ").splitlines()
            yield from (f"{path.name}: {line}" for line in lines if re.search(r"dask (scheduler|worker) ", line))


@pytest.mark.parametrize("command", list(told()))
def test_what_the_documents_start_listens_for_nobody_else(command: str) -> None:
    assert "--host 127.0.0.1" in command or all(word in command for word in ("tls", "--tls-ca-file", "--tls-cert"))
    assert "--no-dashboard" in command
    assert "--host 127.0.0.1" in command or "--dashboard-address 127.0.0.1:0" in command


def test_there_are_such_commands() -> None:
    assert len(list(told())) >= 4


@pytest.mark.parametrize(
    ("certs", "says"), [(None, "--host 127.0.0.1 --no-dashboard"), (Path("c"), "--tls-ca-file c/ca.pem --tls-cert c/k")]
)
def test_hints_say_it_too(certs: Path | None, says: str) -> None:
    told = SchedulerAddress("", certs).how_to_start
    assert says in told
    assert "--no-dashboard" in told
