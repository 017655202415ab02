"""An answer that is the address of a path: over two tiers by `hosts_per_t0`, else in a family that is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.lessons.kinds.paths import PathAddress
from mrc_testbed.testbed.lessons.reading import YamlFile
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.usid import PathId, outer_address

CLOS3 = "family: {clos3: {pods: 2, t0: 2, t1: 2, t2: 4, hosts_per_t0: 2}}"
RAIL = "family: {rail: {rails: 4, nodes: 4, spine: 4}}"


def asked(folder: Path, keys: str) -> tuple[PathAddress, list[str]]:
    """What is read of these keys, and the mistakes in them."""
    file = folder / "check.yaml"
    file.write_text(f"path: {{{keys}}}\n")
    yaml = YamlFile.read(file)
    return PathAddress.read(yaml.top), [problem.message for problem in yaml.problems]


@pytest.mark.parametrize(
    ("keys", "family", "ends", "number"),
    [
        ("from: h0, to: h5, via: p1-t1-2", Clos2(2, 4, 4), (0, 5), 2),
        ("from: h0, to: h5, via: p1-t1-2, hosts_per_t0: 3", Clos2(2, 4, 3), (0, 5), 2),
        ("from: h1, to: h3, via: p1-t0-0", Clos2(2, 4, 4), (1, 3), 0),
        (f"from: h0, to: h7, via: p1-t2-3, {CLOS3}", Clos3(2, 2, 2, 4, 2), (0, 7), 3),
        (f"from: h4, to: h6, via: p1-t1-3, {CLOS3}", Clos3(2, 2, 2, 4, 2), (4, 6), 1),
        (f"from: h2, to: h7, via: p1-t1-1, {RAIL}", Rail(4, 4, 4), (2, 7), 1),
        (f"from: h2, to: h14, via: p1-t0-2, {RAIL}", Rail(4, 4, 4), (2, 14), 0),
    ],
)
def test_the_address_is_that_of_the_plan(
    tmp_path: Path, keys: str, family: Clos2 | Clos3 | Rail, ends: tuple[int, int], number: int
) -> None:
    kind, wrong = asked(tmp_path, keys)
    plan = build_plan(Shape(2, family, 25_000_000, 20_000_000))
    source, target = (plan.hosts[end] for end in ends)
    right = next(path.outer for path in plan.paths(source, target) if path.id == PathId(1, number))
    assert wrong == []
    assert outer_address(kind.path) == right
    assert kind.misfit(family) == ""


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("from: h0, to: h5, via: p1-t0-0", "must be a T1, or for two hosts of one T0 that switch"),
        ("from: h0, to: h5, via: p1-t2-0", "over three tiers a T2 between pods"),
        ("from: h0, to: h5, via: h1", "must be a T1"),
        (f"from: h0, to: h7, via: p1-t1-0, {CLOS3}", "2 ways lead over it; write the highest switch of one"),
        (f"from: h0, to: h2, via: p1-t2-0, {CLOS3}", "must be a T1"),
        (f"from: h0, to: h9, via: p1-t2-0, {CLOS3}", "must be a T1"),
        ("from: h0, to: h5, via: p1-t1-0, family: {clos4: {}}", "unknown family 'clos4'"),
        ("from: h0, to: h5, via: p1-t1-0, family: {clos3: {pods: 0, t0: 1, t1: 1, t2: 1, hosts_per_t0: 1}}", "pods: 0"),
        ("from: h0, to: h5, via: p1-t1-0, family: {clos3: {pods: 1}}", "clos3.t0"),
    ],
)
def test_a_path_that_is_none_is_refused(tmp_path: Path, keys: str, said: str) -> None:
    _, wrong = asked(tmp_path, keys)
    assert len(wrong) == 1
    assert said in wrong[0]


def test_a_scenario_with_another_fabric_is_noticed(tmp_path: Path) -> None:
    kind, _ = asked(tmp_path, "from: h0, to: h5, via: p1-t1-2")
    assert kind.misfit(Clos2(2, 4, 3)) == "the scenario has hosts_per_t0 3; write it here too"
    assert "write family: {clos3: ...} here" in kind.misfit(Clos3(2, 2, 2, 4, 2))
    assert "hosts_per_t0 1" in kind.misfit(Clos2(2, 4, 1)), "it has no h5"
