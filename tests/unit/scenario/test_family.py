"""`fabric.family`: which planes a scenario can ask for, and every mistake with its place and what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import FabricSettings, load_cells, load_scenario_text, scenario_json_schema
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family, ShapeError

POD = "{pods: 2, t0: 2, t1: 2, t2: 4, hosts_per_t0: 2}"
THREE = f"{{planes: 2, family: {{clos3: {POD}}}}}"
TEXT = """\
name: s
fabric: {fabric}
workload:
  - train: {{steps: 4, compute: 10ms, allreduce: 256KiB}}
"""


def family(fabric: str, *overrides: str) -> Family:
    return load_scenario_text(TEXT.format(fabric=fabric), overrides=overrides).shape().family


def mistakes(fabric: str, *overrides: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario_text(TEXT.format(fabric=fabric), "s.yaml", overrides)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("fabric", "made"),
    [
        ("{}", Clos2(2, 4, 4)),
        ("{t0_groups: 3, t1: 2, hosts_per_t0: 1}", Clos2(3, 2, 1)),
        ("{t1_speed: 25%}", Clos2(2, 4, 4, (0.25,))),
        ("{t1_speed: [100%, 50%]}", Clos2(2, 4, 4, (1.0, 0.5))),
        ("{family: {clos2: {t0_groups: 3, t1: 2, hosts_per_t0: 1}}}", Clos2(3, 2, 1)),
        (THREE, Clos3(2, 2, 2, 4, 2)),
        ("{family: {rail: {rails: 4, nodes: 4, spine: 1}}}", Rail(4, 4, 1)),
        ("{family: {rail: {rails: 2, nodes: 8, spine: 2, segments: 4, spine_speed: 50%}}}", Rail(2, 8, 2, 4, (0.5,))),
    ],
)
def test_keys_make_a_plane(fabric: str, made: Family) -> None:
    assert family(fabric) == made


def test_keys_of_a_family_are_changed_by_options_and_axes(tmp_path: Path) -> None:
    assert family(THREE, "fabric.family.clos3.pods=3") == Clos3(3, 2, 2, 4, 2)
    assert family("{planes: 2}", f"fabric.family={{clos3: {POD}}}") == Clos3(2, 2, 2, 4, 2)
    file = tmp_path / "s.yaml"
    file.write_text(TEXT.format(fabric=THREE) + "matrix: {fabric.family.clos3.pods: [2, 3]}\n")
    assert [cell.scenario.shape().hosts for cell in load_cells(file)] == [8, 12]
    variants = "variants: {two: {}, three: {fabric.family: {clos3: " + POD + "}}}\n"
    file.write_text(TEXT.format(fabric="{planes: 2}") + variants)
    assert [cell.scenario.shape().family.word for cell in load_cells(file)] == ["clos2", "clos3"]


@pytest.mark.parametrize(
    ("fabric", "said"),
    [
        ("{family: clos3}", "2:18: fabric.family: must be a mapping of keys, such as {clos3: {pods: 2"),
        ("{family: {}}", "2:18: fabric.family: names no family; one of clos2, clos3, rail"),
        (
            "{family: {clos4: {}}}",
            "2:19: fabric.family.clos4: unknown family 'clos4'; did you mean 'clos3'?",
        ),
        ("{family: {clos3: }}", "2:19: fabric.family.clos3: clos3 needs its keys, such as clos3: {pods: 2, t0: 2,"),
        (
            f"{{family: {{clos3: {POD}, rail: {{}}}}}}",
            "fabric.family.rail: has two kinds, clos3 and rail; a fabric",
        ),
        ("{pods: 2}", "2:10: fabric.pods: 'pods' is a key of the family clos3; write `family: {clos3: {...}}`"),
        (f"{{t1: 2, family: {{clos3: {POD}}}}}", "2:10: fabric.t1: 't1' is a key of clos2; leave it out where"),
        (THREE.replace("pods: 2", "pods: two"), "fabric.family.clos3.pods: must be a whole number, such as 2"),
        (THREE.replace("pods: 2", "pods: 0"), "2:44: fabric.family.clos3.pods: 0 is outside 1..256"),
        (THREE.replace("t2: 4", "t2: 3"), "2:65: fabric.family.clos3.t2: 3 is no multiple of t1, 2"),
        (THREE.replace("t2: 4", "t3: 4"), "fabric.family.clos3: the key 't2' is missing; write for example `t2: 4`"),
        (THREE.replace("t2: 4", "t3: 4"), "fabric.family.clos3.t3: unknown key 't3'; known here: pods, t0, t1, t2"),
        ("{t1_speed: 0.5}", "fabric.t1_speed: 0.5 has no unit; write a percentage"),
        ("{t1_speed: []}", "fabric.t1_speed: needs at least one percentage"),
        ("{t1_speed: [50%, 150%]}", "2:26: fabric.t1_speed.1: 150% is above 100%"),
        ("{t1_speed: 1%, port_rate: 1mbit}", "fabric.port_rate: the slowest links would have 10 kb/s"),
        ("{t1_speed: 50%, layout: folded, t1: 0}", "fabric.t1: must be at least 1 where"),
    ],
)
def test_a_mistake_has_its_place_and_what_to_write(fabric: str, said: str) -> None:
    assert any(said in each for each in mistakes(fabric)), mistakes(fabric)


def test_a_wrong_family_hides_no_other_mistake() -> None:
    wrong = THREE.replace("pods: 2", "pods: 0").replace("planes: 2", "planes: 17")
    assert [each.split(": ")[1] for each in mistakes(wrong)] == ["fabric.planes", "fabric.family.clos3.pods"]


def test_planes_of_every_family_are_folded() -> None:
    shape = load_scenario_text(TEXT.format(fabric=THREE) + "transport: roce\n").shape()
    assert (shape.planes, shape.port_rate_bps, shape.family) == (1, 25_000_000, Clos3(2, 2, 2, 4, 2))


def test_the_schema_has_every_key_with_what_it_is() -> None:
    schema = scenario_json_schema()
    choice = schema["$defs"]["FamilyChoice"]
    assert (choice["minProperties"], choice["maxProperties"], [*choice["properties"]]) == (
        1,
        1,
        ["clos2", "clos3", "rail"],
    )
    assert choice["properties"]["clos3"]["description"].startswith("`pods` times `t0` T0s")
    keys = schema["$defs"]["Family_clos3"]
    assert keys["required"] == ["pods", "t0", "t1", "t2", "hosts_per_t0"]
    assert all(key["description"] and key["examples"] for key in keys["properties"].values())
    assert keys["properties"]["t2_speed"]["default"] == "100%"
    assert schema["$defs"]["FabricSettings"]["properties"]["t1_speed"]["default"] == "100%"


def test_a_plane_is_made_once() -> None:
    fabric = FabricSettings.model_validate({"family": {"rail": {"rails": 2, "nodes": 2, "spine": 1}}})
    assert fabric.family is fabric.family
    with pytest.raises(ShapeError):
        _ = FabricSettings.model_validate({"t1": 300}).family


def two_variants(tmp_path: Path, two: str) -> Path:
    file = tmp_path / "s.yaml"
    three = f"{{fabric.planes: 1, fabric.family: {{clos3: {POD}}}}}"
    file.write_text(TEXT.format(fabric="{rtt: 20ms}") + f"variants:\n  three: {three}\n  two: {two}\n")
    return file


def test_variants_have_other_fabrics_of_the_same_hosts(tmp_path: Path) -> None:
    cells = load_cells(two_variants(tmp_path, "{}"))
    assert [cell.scenario.shape().planes for cell in cells] == [1, 4]
    assert {cell.scenario.shape().hosts for cell in cells} == {8}


def test_variants_of_other_hosts_are_refused(tmp_path: Path) -> None:
    file = two_variants(tmp_path, "{fabric.family: {rail: {rails: 2, nodes: 2, spine: 1}}}")
    with pytest.raises(
        ScenarioError, match="two: has 4 hosts and three 8; variants are compared on the same"
    ) as caught:
        load_cells(file)
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [(7, "variants.two")]
    with pytest.raises(ScenarioError, match=r"changes the size .* or give the variant a fabric\.family"):
        load_cells(two_variants(tmp_path, "{fabric.planes: 1}"))
