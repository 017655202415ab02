"""Tests on the real kernel: every test body that builds something runs in a sandbox of its own, one after the other."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mrc_testbed.testbed.fabric import capabilities, sandbox
from mrc_testbed.testbed.fabric.capabilities import Capability
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape

HERE = Path(__file__).parent
QUICK = clos2_shape(planes=2, t0_groups=2, t1=2, hosts_per_t0=1, port_rate_bps=25_000_000, rtt_ns=20_000_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is an emu test. Without root it cannot run: skipped for a person, a failure in CI."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.emu)
            if os.geteuid() != 0 and not os.environ.get("CI"):
                item.add_marker(pytest.mark.skip(reason="needs root: run `make test`, which uses sudo"))


@pytest.fixture(scope="session")
def machine() -> list[Capability]:
    """What this machine can do; a missing needed part fails the test that asks, with the fix."""
    found = capabilities.probe()
    capabilities.require(found)
    return found


@pytest.fixture
def options(machine: list[Capability]) -> FabricOptions:
    """The fabric's parts as a run would choose them here."""
    return capabilities.choose(machine, QUICK)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """A test may leave neither a link nor a named namespace behind.

    Other processes of the machine make and remove their own meanwhile. So each test starts its programs in a network
    namespace of its own, in which every link is theirs, and of named namespaces only our names count.
    """
    if os.geteuid() != 0:
        yield
        return
    names_before = _named_namespaces()
    with _fresh_network():
        yield
        assert [name for _, name in socket.if_nameindex()] == ["lo"]
    assert not [name for name in _named_namespaces() - names_before if _OUR_NAMES.fullmatch(name)]


@contextmanager
def _fresh_network() -> Iterator[None]:
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        sandbox._call("unshare", sandbox.CLONE_NEWNET)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        yield
    finally:
        sandbox._call("setns", own, sandbox.CLONE_NEWNET)
        os.close(own)


_OUR_NAMES = re.compile(r"h\d+|p\d+-t[01]-\d+|mrc.*|mininet.*")
"""What a node of a fabric, or the program, could be called."""


def _named_namespaces() -> set[str]:
    named = Path("/run/netns")
    return set(os.listdir(named)) if named.exists() else set()


def isolated(body: Callable[[], None]) -> None:
    """Run `body` in a sandbox; its failure becomes the test's failure."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as report:

        def main() -> int:
            try:
                body()
            except BaseException:
                report.write(traceback.format_exc())
                report.flush()
                return 1
            return 0

        status = run_isolated(main)
        report.seek(0)
        if status != 0:
            pytest.fail(report.read() or f"the sandbox ended with status {status}", pytrace=False)


def with_fabric(body: Callable[[Fabric], None], options: FabricOptions, shape: Shape = QUICK) -> None:
    """Run `body` on a fabric of `shape` in a sandbox."""
    isolated(lambda: body(Fabric.build(build_plan(shape), options)))
