"""MRC without SRv6 on this kernel: ports without encapsulation trim and mark its data, and the books agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emu.runs import Run
from tests.hashed import SCENARIO


@pytest.mark.nightly
def test_it_is_trimmed_leaves_a_dead_link_and_every_packet_is_accounted_for(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=SCENARIO)
    run.finish()
    run.assert_passed_or_machine_was_busy()
