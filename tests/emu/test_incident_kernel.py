"""A case that is run on the kernel is as blind as one in virtual time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.incidents import observe
from mrc_testbed.testbed.incidents.case import make_case
from mrc_testbed.testbed.incidents.draw import draw_case
from tests.retry import Inconclusive

SMALL = {"planes": 2, "t0_groups": 2, "t1": 2, "hosts_per_t0": 1, "rtt": "20ms"}


@pytest.mark.nightly
def test_a_case_on_the_kernel(tmp_path: Path) -> None:
    draft = draw_case(2, "t0-silent", lasts_s=4.0)
    workload = [{"train": {"hosts": ["h0", "h1"], "steps": 40, "compute": "50ms", "allreduce": "256KiB"}}]
    faults = [{"at": "1s", "switch-silent": "p0-t1-1", "for": "1s", "name": "f0"}]
    data = {**draft.data, "fabric": SMALL, "workload": workload, "faults": faults, "time_limit": "60s"}
    case = make_case(replace(draft, data=data), tmp_path)
    found = observe(case, kernel=True)
    assert case.about()["world"] == "kernel"
    text = "\n".join(path.read_text() for path in case.folder.iterdir())
    assert not [word for word in ("silent", "inject", "heal", '"f0"') if word in text]
    assert case.run_folder().parent.parent.stat().st_mode & 0o777 == 0o700
    if not found.believed:
        raise Inconclusive("the machine did not keep time")
    assert found.counts
    assert "ASSUMED_BAD" in text, "hosts have noticed"
