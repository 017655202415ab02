"""The tables of the controller API in C, compiled alone: profiles, queues, states of EVs, answers to probes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.libmrc.ctl_compiled import HERE, SANITIZERS, compiled, pure_sources, run


@pytest.mark.parametrize("name", ["profiles", "queues"])
@pytest.mark.nightly(keep=1)
def test_tables(name: str, tmp_path: Path) -> None:
    program = compiled(tmp_path / name, [HERE / f"ctl_{name}_test.c", *pure_sources()], f"-I{HERE}", *SANITIZERS)
    result = run(program)
    assert (result.returncode, result.stderr) == (0, "")
