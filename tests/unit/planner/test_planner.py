"""The planner gives the figures that others have published, says where its numbers come from, and refuses in words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.planner.arithmetic.clos import MOST_TIERS, Clos, least_tiers, reach
from mrc_testbed.testbed.planner.arithmetic.design import Design, NicCable
from mrc_testbed.testbed.planner.arithmetic.effects import one_way_latency
from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, Provenance
from mrc_testbed.testbed.planner.arithmetic.parts import load_parts
from mrc_testbed.testbed.planner.arithmetic.question import Question, designs, warnings
from tests.unit.calls import Call
from tests.unit.planner.refused import refused_options, refused_parts

PARTS = load_parts()
CLOS = st.builds(
    Clos,
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, MOST_TIERS),
    st.integers(2, 64).map(lambda half: 2 * half),
    st.just(2),
)


def design(planes: int, tiers: int, gpus: int, ports: int | None = None, **other: Any) -> Design:
    """Of NICs of 800G and switches of 51.2T."""
    asked = {"transceiver": "dsp", "nic_cable": NicCable.OPTICS, **other}
    question = Question([gpus], 800, [planes], ["51.2T"], [ports] if ports else [], [tiers], **asked)
    return designs(question, PARTS)[0]


def value(made: Design, key: str) -> float:
    number = made.numbers()[key]
    assert number is not None
    return number.value


THREE = design(1, 3, 65_536)
FOUR = design(1, 4, 131_072)
TWO = design(8, 2, 131_072)
FEWER_PORTS = design(8, 2, 51_200, ports=320)


def test_the_paper_has_these_sizes() -> None:
    assert (THREE.clos.most_nics, TWO.clos.most_nics) == (65_536, 131_072)
    assert (THREE.clos.tier_switches, TWO.clos.tier_switches) == ((2048, 2048, 1024), (4096, 2048))


def test_the_paper_needs_two_thirds_of_the_optics_and_three_fifths_of_the_switches() -> None:
    assert value(TWO, "transceivers_a_nic") / value(THREE, "transceivers_a_nic") == pytest.approx(2 / 3)
    assert value(TWO, "switches_a_nic") / value(THREE, "switches_a_nic") == pytest.approx(3 / 5)


def test_the_paper_loses_these_shares() -> None:
    assert value(THREE, "uplink_loss_in_plane") == pytest.approx(3, abs=0.2)
    assert value(TWO, "uplink_loss_in_plane") == pytest.approx(0.4, abs=0.02)
    assert value(TWO, "port_loss") == pytest.approx(12, abs=0.6)
    assert value(THREE, "port_loss") == 100


def test_what_the_paper_calls_0_4_percent_is_of_one_plane() -> None:
    """Of all that a node has it is an eighth of that."""
    assert value(TWO, "uplink_loss") == pytest.approx(value(TWO, "uplink_loss_in_plane") / 8)


def test_paths_of_the_paper_have_three_five_and_seven_switches() -> None:
    assert [value(each, "longest_path") for each in (TWO, THREE, FOUR)] == [3, 5, 7]


def test_latency_agrees_where_it_was_measured_and_goes_on_evenly() -> None:
    assert value(design(8, 1, 512), "latency") == pytest.approx(5.09)
    assert value(TWO, "latency") == pytest.approx(6.54)
    assert [value(each, "latency") for each in (THREE, FOUR)] == pytest.approx([7.99, 9.44])


def test_the_paper_uses_6_to_12_percent_of_the_paths() -> None:
    share = TWO.numbers()["ev_share"]
    assert share is not None
    assert (value(TWO, "paths"), share.low, share.high) == (2048, 6.25, 12.5)


def test_millions_of_links_and_an_order_of_magnitude_more_lasers_than_gpus() -> None:
    assert value(TWO, "links") == 2_097_152
    assert value(TWO, "lasers_to_t0_a_nic") == 16
    assert TWO.numbers()["lasers_to_t0_a_nic"].low == 8  # type: ignore[union-attr]


def test_four_tiers() -> None:
    assert FOUR.clos.most_nics == 2_097_152
    assert FOUR.clos.tier_switches == (4096, 4096, 4096, 2048)
    assert (value(FOUR, "links"), value(FOUR, "transceivers"), value(FOUR, "paths")) == (524_288, 1_048_576, 32_768)
    assert value(TWO, "switches") / value(FOUR, "switches") == pytest.approx(0.43, abs=0.005)


def test_every_nic_has_whole_transceivers_of_its_own() -> None:
    """A NIC of 400G shares its 800G transceiver with no other NIC; ports of one switch share theirs."""
    asked = Question([131_072], 400, [4], ["51.2T"], [], [2], "dsp", NicCable.OPTICS)
    made = designs(asked, PARTS)[0]
    assert value(made, "transceivers_a_nic") == 1 + 3 * 0.5
    assert value(made, "watts") == made.clos.switches * 913 + 2.5 * 131_072 * 15
    assert [line for line in warnings([made]) if line.startswith("--nic 400G: ")]
    wide = designs(replace(asked, nic_gbps=1200, planes=[12]), PARTS)[0]
    assert value(wide, "transceivers_a_nic") == 2 + 3 * 1.5


def test_copper_cables_of_nics_are_whole_and_their_transceivers_gone() -> None:
    asked = Question([131_072], 400, [4], ["51.2T"], [], [2], "dsp", NicCable.DAC)
    made = designs(asked, PARTS)[0]
    assert made.copper_cables == 131_072
    assert value(made, "transceivers_a_nic") == 2 * 0.5
    assert not [line for line in warnings([made]) if line.startswith("--nic")]


def test_no_switch_has_a_part_of_a_transceiver() -> None:
    """250 NICs below each T0, 250 uplinks of it, 500 ports of a T1: 31.25, 31.25 and 62.5 transceivers."""
    made = design(8, 2, 10_000)
    assert value(made, "transceivers") == 10_000 + 320 * 32 + 320 * 32 + 160 * 63


@pytest.mark.parametrize(
    ("made", "even", "said"),
    [
        (THREE, (2048, 2048, 1024), ""),
        (FOUR, (4096, 4096, 4096, 2048), ""),
        (TWO, (4096, 2048), ""),
        (design(8, 1, 500), (8,), ""),
        # 256 uplinks of a T0 to 20 T1s: 12 or 13 to each; 32 T1s have 8 of each.
        (design(8, 2, 10_000), (320, 256), "480 switches wired unevenly: a T0 has 12 or 13 links to a T1; evenly 576"),
        # 313 T0s are 10 pods of 32: 320 T1s; of a T1's 32 uplinks 8 T2s get 4 each, where 5 would get 6 or 7.
        (
            design(1, 3, 10_000),
            (313, 320, 256),
            "783 switches wired unevenly: a T1 has 6 or 7 links to a T2; evenly 889",
        ),
        # 63 T0s are 2 pods of 32, the last one not full: a T1 more.
        (design(1, 3, 2016), (63, 64, 32), "158 switches wired unevenly: pods are not full; evenly 159"),
    ],
)
def test_uneven_wiring_is_told_with_what_even_wiring_takes(made: Design, even: tuple[int, ...], said: str) -> None:
    assert made.clos.even_switches == even
    uneven = [line for line in warnings([made]) if "unevenly" in line]
    assert bool(uneven) == bool(said)
    assert not said or said in uneven[0]


def test_a_lost_t1_takes_what_the_most_links_to_one_carry() -> None:
    assert value(design(8, 2, 10_000), "t1_loss_in_plane") == pytest.approx(100 * 13 / 256)


@given(CLOS, st.data())
def test_even_wiring_takes_no_fewer_switches_and_divides_the_uplinks(shape: Clos, data: st.DataObject) -> None:
    clos = Clos(shape.planes, shape.tiers, shape.ports, data.draw(st.integers(2, shape.most_nics)))
    for even, least in zip(clos.even_switches, clos.tier_switches, strict=True):
        assert even >= least
    if clos.tiers > 1:
        top = clos.even_switches[-1] // clos.planes // clos.half ** (clos.tiers - 2)
        assert clos.half % top == 0


def test_a_box_with_320_logical_ports() -> None:
    assert FEWER_PORTS.clos.most_nics == 51_200
    assert FEWER_PORTS.clos.tier_switches == (2560, 1280)
    assert (value(FEWER_PORTS, "links"), value(FEWER_PORTS, "paths")) == (819_200, 1280)
    assert value(FEWER_PORTS, "switches_a_nic") == 0.075
    assert value(FEWER_PORTS, "uplink_loss_in_plane") == 0.625


@pytest.mark.parametrize(
    ("made", "dsp", "lpo"), [(THREE, 161, 122), (FOUR, 220, 168), (TWO, 103, 77), (FEWER_PORTS, 128, 102.5)]
)
def test_watts_a_nic(made: Design, dsp: float, lpo: float) -> None:
    clos = made.clos
    linear = design(clos.planes, clos.tiers, clos.nics, clos.ports, transceiver="lpo")
    assert value(made, "watts_a_nic") == pytest.approx(dsp, abs=0.5)
    assert value(linear, "watts_a_nic") == pytest.approx(lpo, abs=0.5)


def test_copper_to_the_t0_saves_a_third_of_the_power() -> None:
    copper = design(8, 2, 131_072, nic_cable=NicCable.DAC)
    assert value(copper, "watts_a_nic") == pytest.approx(73, abs=0.5)
    assert (value(copper, "lasers_to_t0_a_nic"), value(copper, "transceivers_a_nic")) == (0, 2)


def test_deepseeks_table_of_64_port_networks() -> None:
    """Three tiers, and eight planes of two tiers with 2,048 endpoints each, as separate networks; links that have
    switches on both ends."""
    assert (reach(3, 64), Clos(1, 3, 64, 65_536).switches, Clos(1, 3, 64, 65_536).switch_links) == (
        65_536,
        5120,
        131_072,
    )
    one = Clos(1, 2, 64, 2048)
    assert (8 * one.nics, 8 * one.switches, 8 * one.switch_links) == (16_384, 768, 16_384)


@given(CLOS, st.data())
def test_no_tier_has_more_links_than_ports(shape: Clos, data: st.DataObject) -> None:
    clos = Clos(shape.planes, shape.tiers, shape.ports, data.draw(st.integers(2, shape.most_nics)))
    per_plane = [count // clos.planes for count in clos.tier_switches]
    down = [clos.nics, *(count * clos.half for count in per_plane[:-1])]
    for tier, (switches, links) in enumerate(zip(per_plane, down, strict=True)):
        top = tier == clos.tiers - 1
        assert links <= switches * (clos.ports if top else clos.half)


@given(st.integers(2, 10**6), st.integers(2, 256).map(lambda half: 2 * half))
def test_the_least_tiers_reach_and_one_fewer_do_not(nics: int, ports: int) -> None:
    tiers = least_tiers(nics, ports)
    reaches = [reach(each, ports) >= nics for each in range(1, MOST_TIERS + 1)]
    assert reaches.index(True) + 1 == tiers if any(reaches) else tiers is None


@pytest.mark.parametrize("made", [THREE, FOUR, TWO, FEWER_PORTS])
def test_every_number_has_a_source_and_what_is_assumed_is_a_range(made: Design) -> None:
    parts = made.part_numbers()
    for number in (each for each in made.numbers().values() if each):
        assert number.source
        assert number.low <= number.value <= number.high
        for name in number.rests_on:
            assert parts[name].source
            assert parts[name].mark is not Provenance.ASSUMED or parts[name].is_range


def test_the_command_shows_designs_side_by_side(call: Call) -> None:
    ended = call("plan", "--gpus", "131072", "--nic", "800G", "--planes", "8", "--switch", "51.2T")
    assert ended.status == ExitCode.PASS
    for told in ("6,144", "14,336", "no: <= 65,536", "13.5 MW", "28.8 MW", "9.44 us", "its QPs", "913 W, published"):
        assert told in ended.out
    assert "`--ports 320` two tiers reach 51,200" in ended.err


def test_several_values_at_once_as_json(call: Call) -> None:
    ended = call("plan", "--gpus", "1000,10k", "--planes", "1,4,8", "--tiers", "2", "--ports", "64,512", "--json", "-")
    found = json.loads(ended.out)
    assert [(each["gpus"], each["planes"]) for each in found["designs"]][:3] == [(1000, 1), (1000, 4), (1000, 8)]
    assert {each["fits"] for each in found["designs"]} == {True, False}
    for each in found["designs"]:
        for number in filter(None, each["numbers"].values()):
            assert number.keys() == {"value", "unit", "mark", "source", "low", "high", "rests_on"}
            assert set(number["rests_on"]) <= each["rests_on"].keys()
    assert "10k is taken as 10,000" in ended.err


def test_a_table_of_many_designs_goes_on_below(call: Call, tmp_path: Path) -> None:
    ended = call("plan", "--gpus", "1000,2000", "--planes", "1,2,4", "--json", str(tmp_path / "plan.json"))
    assert ended.out.count("room for the GPUs") == 2
    assert json.loads((tmp_path / "plan.json").read_text())["designs"]


def test_prices_are_the_users(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('currency = "EUR"\nswitch = 50000\ntransceiver = 1000\n')
    asked = ("plan", "--gpus", "131072", "--tiers", "2", "--json", "-")
    cost = json.loads(call(*asked, "--prices", str(file)).out)["designs"][0]["numbers"]["cost"]
    assert (cost["value"], cost["unit"], cost["mark"]) == (6144 * 50_000 + 524_288 * 1000, "EUR", "given")
    assert "cost" not in json.loads(call(*asked).out)["designs"][0]["numbers"]


def test_copper_needs_its_price_where_cables_are_of_it(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('currency = "EUR"\nswitch = 50000\ntransceiver = 1000\n')
    asked = ("plan", "--tiers", "2", "--nic-cable", "dac", "--json", "-", "--prices", str(file))
    ended = call(*asked)
    assert ended.status == ExitCode.USAGE
    assert "copper: not a price" in ended.err
    without = 6144 * 50_000 + 262_144 * 1000
    file.write_text(file.read_text() + "copper = 100\n")
    cost = json.loads(call(*asked).out)["designs"][0]["numbers"]["cost"]["value"]
    assert cost == without + 131_072 * 100 == 582_451_200


@pytest.mark.parametrize("text", ["copper = " + "9" * 5000, "copper = " + "[" * 5000, "switch = 1" + "0" * 400])
def test_prices_that_cannot_be_read_are_refused_in_one_line(call: Call, tmp_path: Path, text: str) -> None:
    (tmp_path / "prices.toml").write_text(text)
    ended = call("plan", "--prices", str(tmp_path / "prices.toml"))
    assert ended.status == ExitCode.USAGE
    assert len(ended.err.strip().splitlines()) == 1


def test_the_range_of_the_latency_of_further_switches_is_not_upside_down() -> None:
    """It falls as that through one switch grows."""
    one, three = (MarkedNumber(v, "us", Provenance.GIVEN, "", v - 0.5, v + 0.5) for v in (5.0, 6.5))
    found = one_way_latency(Clos(1, 4, 64, 1000), one, three)
    assert found.value == pytest.approx(9.5)
    assert (found.low, found.high) == pytest.approx((9.5 - 2.5, 9.5 + 2.5))


def test_parts_of_the_users_join_the_shipped_ones(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(
        '[switch."102.4T"]\nname = "TH6"\nlogical_ports = 512\nwatts = { value = 1500, low = 1300, high = 1700 }\n'
    )
    ended = call("plan", "--switch", "51.2T,102.4T", "--tiers", "2", "--parts", str(file), "--json", "-")
    ours, new = json.loads(ended.out)["designs"]
    assert (ours["rests_on"]["switch_watts"]["value"], new["rests_on"]["switch_watts"]["value"]) == (913, 1500)
    assert (new["rests_on"]["switch_watts"]["mark"], new["rests_on"]["switch_watts"]["source"]) == ("given", str(file))
    assert new["numbers"]["watts"]["low"] < new["numbers"]["watts"]["value"]
    assert new["numbers"]["most_nics"]["value"] == 524_288


def test_a_switch_of_the_users_replaces_the_shipped_one_however_it_is_written(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('[switch."51.2t"]\nlogical_ports = 512\nwatts = 700\n')
    for written in ("51.2t", "51.2T"):
        ended = call("plan", "--switch", written, "--tiers", "2", "--parts", str(file), "--json", "-")
        assert json.loads(ended.out)["designs"][0]["rests_on"]["switch_watts"]["value"] == 700


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--planes 3", "a NIC of 800G has 8 lanes of 100G: 1, 2, 4 or 8 planes"),
        ("--planes 0", "--planes 0"),
        ("--gpus 0", "whole number, 2 to"),
        ("--gpus 1", "whole number, 2 to"),
        ("--gpus 1.5", "whole number"),
        ("--gpus 131,072", "without commas inside"),
        ("--gpus many", "--gpus many"),
        ("--nic 800", "800G or 51.2T"),
        ("--nic 850G", "lanes of 100G"),
        ("--switch 51T", "there are 51.2T; add it by --parts"),
        ("--nic 51.2T --planes 1", "fewer than two ports"),
        ("--ports 1", "--ports 1"),
        ("--tiers 5", "1 to 4"),
        ("--transceiver dps", "did you mean 'dsp'?"),
        ("--nic-cable string", "optics or dac"),
        ("--parts missing.toml", "--parts missing.toml"),
        ("--prices missing.toml", "--prices missing.toml"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(call: Call, options: str, said: str) -> None:
    assert said in refused_options(call, options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--tiers 2 --planes 4", "two tiers with 256 ports reach 32,768; 8 planes reach 131,072"),
        ("--tiers 2 --planes 4", "or 4 separate fabrics (one a NIC of a node)"),
        ("--tiers 2 --planes 1 --ports 64", "three tiers reach 65,536"),
        ("--tiers 1", "one tier with 512 ports reach"),
    ],
)
def test_what_does_not_fit_is_answered_with_what_does(call: Call, options: str, said: str) -> None:
    ended = call("plan", *options.split())
    assert ended.status == ExitCode.FAIL
    assert said in ended.err


def test_with_fewer_ports_more_planes_do_not_help(call: Call) -> None:
    assert "planes reach" not in call("plan", *["--tiers", "2", "--planes", "4", "--ports", "128"]).err


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("[switch\n", "my.toml:1:", "not TOML"),
        ("\n[lunk]\nlane = '100G'\n", "my.toml:2:2: lunk", "link"),
        ('[switch."51.2T"]\nwatts = 900\nports = 4\n', "my.toml:3:1: switch.51.2T.ports", "logical_ports"),
        ('[switch."51.2T"]\nwatts = "much"\n', "my.toml:2:1: switch.51.2T.watts", "number"),
        ('[switch."51.2T"]\nwatts = 900\n', "my.toml:1:2: switch.51.2T", "has no logical_ports"),
        ("[qp]\nevs = {value = 4, low = 5}\n", "my.toml:2:1: qp.evs", "low <= value"),
        ("[qp]\nevs = {value = 4, mark = 'guess'}\n", "my.toml:2:1: qp.evs", "assumed"),
        ("[qp]\nevs = {value = 4, min = 2}\n", "my.toml:2:1: qp.evs", "min"),
        ("[transceiver]\nwatts = 3\n", "my.toml:2:1: transceiver.watts", "table"),
        ("[link]\nlane = 'fast'\n", "my.toml:2:1: link.lane", "rate"),
        ("a = " + "[" * 5000, "my.toml:1:1", "not TOML"),
        ("a = " + "9" * 5000, "my.toml:1:1", "not TOML"),
        ("[qp]\nevs = 1" + "0" * 400, "my.toml:2:1: qp.evs", "low <= value"),
    ],
)
def test_mistakes_in_parts_have_a_place(text: str, place: str, said: str) -> None:
    told = refused_parts(text)
    assert place in told
    assert said in told
