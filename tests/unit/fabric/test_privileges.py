"""Who is root, and why the kernel says no."""

from __future__ import annotations

import errno
import resource
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric import limits, privileges
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.units import plural


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """An ordinary user of a machine with no settings but these."""
    settings: dict[str, int] = {}
    monkeypatch.setattr(privileges, "is_rootless", lambda: True)
    monkeypatch.setattr(privileges, "_sysctl", settings.get)
    monkeypatch.setattr(privileges, "_status", lambda _: "0")
    return settings


@pytest.mark.parametrize(
    ("name", "closed", "opened"),
    [
        ("kernel.unprivileged_userns_clone", 0, 1),
        ("kernel.apparmor_restrict_unprivileged_userns", 1, 0),
    ],
)
def test_a_setting_that_keeps_user_namespaces_from_users_is_named_with_the_command_that_opens_it(
    ordinary: dict[str, int], name: str, closed: int, opened: int
) -> None:
    ordinary[name] = closed
    told = privileges.refusal("unshare", errno.EPERM)
    assert told.what == f"this machine keeps user namespaces from ordinary users ({name} is {closed})"
    assert told.fix == f"`sudo sysctl {name}={opened}`, or run with sudo"
    ordinary[name] = opened
    assert privileges.refusal("unshare", errno.EPERM).what == "the kernel refused unshare: Operation not permitted"


def test_what_keeps_users_out_does_not_keep_root_out(ordinary: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary["kernel.apparmor_restrict_unprivileged_userns"] = 1
    monkeypatch.setattr(privileges, "is_rootless", lambda: False)
    told = privileges.refusal("mount", errno.EPERM)
    assert (told.what, told.fix.split(",")[0]) == ("the kernel refused mount: Operation not permitted", "run as root")


def test_a_limit_that_is_used_up_is_no_limit_of_none(ordinary: dict[str, int]) -> None:
    ordinary.update({"user.max_user_namespaces": 5, "user.max_net_namespaces": 5})
    assert privileges.refusal("unshare", errno.ENOSPC).what.startswith("there are as many namespaces as this machine")
    ordinary["user.max_net_namespaces"] = 0
    assert "allows no net namespaces" in privileges.refusal("unshare", errno.ENOSPC).what


@pytest.mark.parametrize(("number", "there"), [(0, True), (1, False), (1000, True), (1009, True), (1010, False)])
def test_users_that_a_namespace_maps(monkeypatch: pytest.MonkeyPatch, number: int, there: bool) -> None:
    monkeypatch.setattr(privileges, "_user_namespace", lambda: 1)
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "  0  1000  1\n  1000  100000  10\n")
    assert privileges.can_be_given_to(number, 0) is there


def test_files_grow_with_the_fabric() -> None:
    small, large = (limits.files_needed(clos2_shape(4, 2, 4, hosts, 10**7, 10**7)) for hosts in (1, 4))
    assert large - small == 6 * 13
    assert small > 9 * 26


@pytest.mark.parametrize(
    ("hard", "rootless", "lifts", "allowed"),
    [
        (1024, True, False, 1024),
        (1024, False, True, 65536),
        (1024, False, False, 1024),
        (10**6, True, False, 10**6),
        (resource.RLIM_INFINITY, True, False, 65536),
    ],
)
def test_root_may_lift_the_limit_of_open_files(
    monkeypatch: pytest.MonkeyPatch, hard: int, rootless: bool, lifts: bool, allowed: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, hard))
    monkeypatch.setattr(privileges, "is_rootless", lambda: rootless)
    monkeypatch.setattr(privileges, "has_capability", lambda _: lifts)
    assert limits.files_allowed() == allowed


def test_what_needs_more_files_than_there_may_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "files_allowed", lambda: 1024)
    limits.require_files(1024, "small")
    with pytest.raises(MissingCapability, match=r"^large needs 1,025 open files, .* is 1,024\. Fix: `sudo prlimit"):
        limits.require_files(1025, "large")


SMALL = clos2_shape(1, 2, 2, 2, 25_000_000, 20_000_000)


@pytest.mark.parametrize("kind", ["user", "net", "mnt", "pid"])
def test_a_limit_of_namespaces_is_named_before_anything_is_tried(
    ordinary: dict[str, int], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(privileges, "needs_user_namespace", lambda: True)
    needed = limits.namespaces_needed(SMALL)
    ordinary[f"user.max_{kind}_namespaces"] = needed[kind]
    privileges.require_namespaces(needed, "small")
    ordinary[f"user.max_{kind}_namespaces"] = needed[kind] - 1
    with pytest.raises(MissingCapability) as told:
        privileges.require_namespaces(needed, "small")
    allowed = f"this machine allows {needed[kind] - 1:,} (user.max_{kind}_namespaces)"
    assert told.value.what == f"small needs {plural(needed[kind], f'{kind} namespace')}, and {allowed}"
    assert told.value.fix.startswith(f"`sudo sysctl user.max_{kind}_namespaces=10000`")


def test_limits_that_are_used_up_are_named_with_their_values(ordinary: dict[str, int]) -> None:
    ordinary.update({"user.max_net_namespaces": 40, "user.max_mnt_namespaces": 1 << 20})
    told = privileges.refusal("unshare", errno.ENOSPC)
    assert told.what.endswith("(user.max_net_namespaces is 40)")
    assert told.fix == "end some runs, or `sudo sysctl user.max_net_namespaces=10000`"


def test_a_cgroup_without_room_for_the_processes_is_named(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("0::/job\n")
    job = tmp_path / "fs" / "job"
    job.mkdir(parents=True)
    (job / "pids.max").write_text("100\n")
    (job / "pids.current").write_text("90\n")
    with pytest.raises(
        MissingCapability, match=r"needs about 11 processes, and its cgroup has room for 10 \(.*pids.max is 100"
    ):
        limits.require_processes(11, "small", tmp_path / "own", tmp_path / "fs")
    limits.require_processes(10, "small", tmp_path / "own", tmp_path / "fs")
    (job / "pids.max").write_text("max\n")
    limits.require_processes(11, "small", tmp_path / "own", tmp_path / "fs")


def test_a_user_may_have_too_few_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(privileges, "has_capability", lambda _: False)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (30, 30))
    with pytest.raises(MissingCapability, match=r"needs about 31 processes, and the limit .`ulimit -u`. is 30"):
        limits.require_processes(31, "small", tmp_path, tmp_path)
    limits.require_processes(30, "small", tmp_path, tmp_path)
