"""Fault kinds of the plugins that a scenario names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_plugins import written

from testbed.errors import ScenarioError
from testbed.faults.actions import ACTIONS
from testbed.scenario import load_scenario
from testbed.scenario.faults import KINDS
from tests.plugins import MTU_FAULT

SOURCE = MTU_FAULT.read_text()
HEAD = """\
name: small
plugins: [mine.py]
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 90, compute: 100ms, allreduce: 1MiB}}]
faults:
"""
FAULT = "  - {at: 1s, link-mtu: 'p0-t0-0:p0-t1-1', mtu: 2000, for: 2s}\n"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a test registers is gone after it."""
    before = dict(KINDS), dict(ACTIONS)
    yield
    for registry, kept in zip((KINDS, ACTIONS), before, strict=True):
        registry.clear()
        registry.update(kept)  # type: ignore[attr-defined]
    for name in ("plugin mine.py", "plugin mtu_fault.py"):
        sys.modules.pop(name, None)


def mistakes(folder: Path) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(folder / "s.yaml")
    return [problem.message for problem in caught.value.problems]


def test_a_scenario_uses_the_kind_of_its_plugin(tmp_path: Path) -> None:
    scenario = load_scenario(written(tmp_path, HEAD + FAULT, mine=SOURCE) / "s.yaml")
    (one,) = scenario.occurrences
    assert (one.fault, one.kind, one.targets) == ("link-mtu-1", "link-mtu", ("p0-t0-0:p0-t1-1",))
    assert [(plugin.kind, plugin.name) for plugin in scenario.offered.plugins] == [("fault", "link-mtu")]


def test_a_changed_file_and_a_copy_take_the_place_of_the_kind(tmp_path: Path) -> None:
    for source, folder in ((SOURCE, "one"), (SOURCE.replace("ge=1280", "ge=1999"), "two"), (SOURCE, "three")):
        (tmp_path / folder).mkdir()
        load_scenario(written(tmp_path / folder, HEAD + FAULT, mine=source) / "s.yaml")
    (told,) = mistakes(
        written(tmp_path / "two", HEAD + FAULT.replace("2000", "1500"), mine=SOURCE.replace("1280", "1999"))
    )
    assert told == "must be at least 1999, such as 2000; got 1500"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("@register_fault\n", "", "mine.py:9: fault kind 'link-mtu' must be a class with `kind = 'link-mtu'` that"),
        ("    def heal(", "    def hea(", "mine.py:9: ValueError: LinkMtu is no fault kind; it lacks heal"),
        ('"link-mtu", Target', '"link-down", Target', "ValueError: fault kind link-down: `aims` needs the alias"),
        ('{"link-mtu": LinkMtu}', '{"link-mtv": LinkMtu}', "fault kind 'link-mtv' must be a class with `kind ="),
        ("from pydantic", "1 / 0\nfrom pydantic", "mine.py:3: ZeroDivisionError: division by zero"),
    ],
)
def test_a_kind_that_cannot_be_used_is_one_mistake(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in SOURCE
    (told,) = mistakes(written(tmp_path, HEAD + FAULT, mine=SOURCE.replace(old, new, 1)))
    assert says in told
