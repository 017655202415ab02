"""A soak (tests/soak) in short; an hour of it is `make soak`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emu.runs import lateness_of
from tests.soak.__main__ import Soak

MINUTES = 0.75


@pytest.mark.alone
@pytest.mark.nightly
def test_memory_stays_flat_and_files_bounded_in_mixed_chaos(tmp_path: Path) -> None:
    soak = Soak(MINUTES, 4, tmp_path)
    assert not soak.wrong, f"{soak.wrong}\n{soak}"
    assert soak.status == 0 or list(lateness_of(soak.run.verdict)), soak
