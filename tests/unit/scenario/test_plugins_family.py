"""A family from a plugin: checked before anything is built, each mistake at its line."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from mrc_testbed.hosts import load_limit
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import Scenario, load_recorded, load_scenario, scenario_json_schema
from mrc_testbed.topos.plan import build_plan

EXAMPLE = Path(__file__).parents[3] / "docs/examples/mesh.py"
MESH = EXAMPLE.read_text(encoding="utf-8")
SCENARIO = """\
name: s
plugins: [mine.py]
fabric: {planes: 2, family: {mesh: {t0s: 5, hosts_per_t0: 2}}}
world: virtual
workload: [{sendrecv: {size: 64KiB, iterations: 3}}]
"""


def load(folder: Path, source: str = MESH, *overrides: str) -> Scenario:
    (folder / "mine.py").write_text(source, encoding="utf-8")
    (folder / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    return load_scenario(folder / "s.yaml", overrides)


def mistakes(folder: Path, source: str = MESH, *overrides: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load(folder, source, *overrides)
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def test_the_example_is_short() -> None:
    assert len(MESH.splitlines()) <= 60


def test_the_example_is_a_mesh(tmp_path: Path) -> None:
    plan = load(tmp_path).plan()
    assert (plan.shape.hosts, plan.shape.family.tiers, plan.shape.family.cable_count) == (10, (5,), 10)
    for src, dst in permutations(plan.hosts, 2):
        ways = sorted(len(way) for way in plan.ways(src, dst))
        assert ways == ([1] if src.group == dst.group else [2, 3, 3, 3])
    assert {hop for towards in (plan.next_places(place) for place in plan.shape.family.switches()) for hop in towards}
    for place in plan.shape.family.switches():
        for group, following in plan.next_places(place).items():
            assert [next_place.number for next_place in following] == [group], "a hash takes the shortest way alone"


def test_it_is_known_to_the_scenarios_that_name_its_file(tmp_path: Path) -> None:
    scenario = load(tmp_path)
    assert scenario.shape().family.word == "mesh"
    text = (tmp_path / "s.yaml").read_text().replace("plugins: [mine.py]\n", "")
    (tmp_path / "without.yaml").write_text(text)
    with pytest.raises(ScenarioError, match="unknown family 'mesh'; there are clos2, clos3, rail"):
        load_scenario(tmp_path / "without.yaml")
    choice = scenario_json_schema(scenario.offered)["$defs"]["FamilyChoice"]["properties"]
    assert [*choice] == ["clos2", "clos3", "rail", "mesh"]
    assert choice["mesh"]["description"].startswith("Every T0 is linked to every other one.")


def test_without_its_file_only_the_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        load_scenario(tmp_path / "s.yaml")
    assert [problem.path for problem in caught.value.problems] == ["plugins.0"]


def test_a_wrong_value_is_told_at_its_key(tmp_path: Path) -> None:
    assert mistakes(tmp_path, MESH, "fabric.family.mesh.t0s=65") == [
        "--set fabric.family.mesh.t0s=65: 65 is outside 2..64"
    ]
    assert mistakes(tmp_path, MESH, "fabric.family.mesh.t0=3")[0].startswith(
        "--set fabric.family.mesh.t0=3: unknown key 't0'; did you mean 't0s'?"
    )
    said = mistakes(tmp_path, MESH.replace('ShapeError("t0s", f"', 'ValueError(f"'), "fabric.family.mesh.t0s=65")
    assert said == ["s.yaml:3:36: fabric.family.mesh: 65 is outside 2..64"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(frozen=True)", "", "mine.py:17: family 'mesh' must be a frozen dataclass"),
        ("Mesh(Family)", "Mesh", "family 'mesh' must be a class that inherits from mrc_testbed.api.Family"),
        ("def cables", "def links", "mine.py:17: family 'mesh' lacks cables"),
        ('word = "mesh"', 'word = "net"', "family 'mesh' is called 'net' by its class"),
        ("t0s: int", "t0s: list", "has a key 't0s' that is no int, float, bool, str, or tuple[float, ...] for shares"),
        (
            'family_key("hosts below each T0", 2)',
            "0",
            "with the examples of its keys: family.mesh: mesh: the fabric needs",
        ),
        ('"T0 switches of a plane", 4', '"T0 switches of a plane", "four"', "has an example that is none of its key"),
        ('family_key("T0 switches of a plane", 4)', "field()", "has a key 't0s' without an example"),
        ('{"mesh": Mesh}', '{"rail": Mesh}', "family 'rail' has the name of a built-in one; choose another"),
        ("map(t0, range(self.t0s))", "[t0(0), t0(0)]", "mesh: two switches have the name t0-0"),
        (
            "yield t0(source), t0(target)",
            "yield t0(source), t0(99), t0(target)",
            "t0-0 to t0-99, and no link joins",
        ),
        ("yield t0(source), t0(target)", "yield from [(t0(source), t0(target))] * 300", "there are more than 256 ways"),
        ("map(t0, range(self.t0s))", "map(t0, count())", "switch t0-256 is outside"),
        (
            "[Cable(t0(one), t0(other)) for one, other in combinations(range(self.t0s), 2)]",
            "(Cable(t0(0), t0(n)) for n in count(1))",
            "t0-4, and there is no such switch",
        ),
        ("return host //", "return 1 // 0 + host //", "mine.py:34: ZeroDivisionError"),
        ("return self.t0s *", "return 10**12 + self.t0s *", "at most 65536, not 1000000000008"),
    ],
)
def test_a_family_that_cannot_be_built_is_one_mistake(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in MESH
    source = MESH.replace(old, new).replace("import dataclass", "import dataclass, field")
    (told,) = mistakes(tmp_path, source.replace("import combinations", "import combinations, count"))
    assert "s.yaml:2:11: plugins.0: mine.py" in told
    assert said in told


def test_what_only_the_keys_of_the_scenario_break_is_told_at_the_family(tmp_path: Path) -> None:
    source = MESH.replace("yield t0(source), t0(target)", "yield (t0(source), t0(target)) * (1 + self.t0s // 5)")
    (told,) = mistakes(tmp_path, source)
    assert told.startswith("s.yaml:3:36: fabric.family.mesh: mesh: the way t0-0 > t0-1 > t0-0 > t0-1 crosses")


def test_a_loop_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_limit, "LIMIT_S", 0.3)
    monkeypatch.setattr(load_limit, "CALL_LIMIT_S", 0.3)
    line = "        yield t0(source), t0(target)\n"
    (told,) = mistakes(tmp_path, MESH.replace(line, "        while True: pass\n" + line))
    assert "mine.py:43: SlowLoad: not loaded after 0.3 s" in told
    (told,) = mistakes(tmp_path, MESH.replace(line, "        while self.t0s > 4: pass\n" + line))
    assert "mine.py:43: ways() has not returned after 0.3 s" in told


def test_a_run_folder_has_its_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRC_TRUST_PLUGINS", "1")
    scenario = load(tmp_path)
    run = tmp_path / "run"
    (run / "plugins").mkdir(parents=True)
    (run / "plugins/mine.py").write_text(MESH)
    (run / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "mine.py").unlink()
    assert build_plan(load_recorded(run).shape()).links == scenario.plan().links


BRIDGED = """\
from dataclasses import dataclass

from mrc_testbed.api import Cable, Family, SwitchPlace

T0S = [SwitchPlace(0, 0), SwitchPlace(0, 1)]
T1S = [SwitchPlace(1, 0), SwitchPlace(1, 1)]


@dataclass(frozen=True)
class Bridged(Family):
    word = "bridged"
    hosts = 2

    def t0_of(self, host):
        return host

    def switches(self):
        return [*T0S, *T1S]

    def cables(self):
        return [*map(Cable, T0S, T1S), Cable(*T1S)]

    def ways(self, source, target):
        yield T0S[source], T1S[source], T1S[target], T0S[target]


PLUGIN = {"family": {"bridged": Bridged}}
"""


def test_links_between_switches_of_one_as_are_refused_over_bgp(tmp_path: Path) -> None:
    over_bgp = "fabric.family={bridged: {}}", "routing=bgp", "world=kernel"
    (said,) = mistakes(tmp_path, BRIDGED, *over_bgp)
    assert "t1-0 and t1-1 of the family bridged are linked and one AS" in said
    assert load(tmp_path, BRIDGED, *over_bgp, "bgp.t1_as=each").shape().family.cable_count == 3
    assert load(tmp_path, BRIDGED, over_bgp[0]).shape().hosts == 2
