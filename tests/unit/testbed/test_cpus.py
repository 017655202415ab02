"""CPUs of the process, not of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mrc_testbed.testbed import calibration, cpus
from mrc_testbed.testbed.cpus import cgroup_quotas, usable_cpus
from mrc_testbed.topos.cost import STANDARD_COST


def files(tmp_path: Path, own: str, **content: str) -> tuple[Path, Path]:
    """/proc/self/cgroup, and cgroups below the folder of the second; `a__b` means `a/b`."""
    listed = tmp_path / "cgroup"
    listed.write_text(own, encoding="ascii")
    for name, text in content.items():
        file = tmp_path / "fs" / name.replace("__", "/").replace("_max", ".max").replace("cpu_cfs", "cpu.cfs")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")
    return listed, tmp_path / "fs"


def test_every_quota_around_the_process_counts(tmp_path: Path) -> None:
    quotas = {"job__step__cpu_max": "max 100000\n", "job__cpu_max": "150000 100000\n", "cpu_max": "400000 100000"}
    assert list(cgroup_quotas(*files(tmp_path, "0::/job/step\n", **quotas))) == [1.5, 4]


def test_the_quota_of_the_first_version_of_cgroups(tmp_path: Path) -> None:
    own = "5:memory:/elsewhere\n4:cpu,cpuacct:/job\n"
    limit = {"cpu,cpuacct__job__cpu_cfs_quota_us": "50000\n", "cpu,cpuacct__job__cpu_cfs_period_us": "100000\n"}
    assert list(cgroup_quotas(*files(tmp_path, own, **limit))) == [0.5]
    none = {"cpu,cpuacct__job__cpu_cfs_quota_us": "-1\n"}
    assert list(cgroup_quotas(*files(tmp_path, own, **none))) == []


def test_nothing_is_known_where_there_are_no_cgroups(tmp_path: Path) -> None:
    assert list(cgroup_quotas(tmp_path / "none", tmp_path)) == []


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux's")
def test_a_process_that_may_use_one_cpu_counts_one_and_expects_less(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cpus, "_OWN_CGROUPS", tmp_path / "none")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(calibration, "load_calibration", lambda: None)
    assert usable_cpus() == calibration.machine()[1] == 8
    with_two = calibration.machine_capacity(STANDARD_COST).pps
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5})
    assert usable_cpus() == calibration.machine()[1] == 1
    assert calibration.machine_capacity(STANDARD_COST).pps == with_two / 2


def test_a_quota_below_one_cpu_is_still_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "cgroup_quotas", lambda *_: iter([0.5]))
    assert usable_cpus() == 1
