"""`mrc-testbed plan` shows what failures take, takes the user's numbers, and refuses others in a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.errors import ExitCode
from tests.unit.calls import Call
from tests.unit.planner.refused import refused_options, refused_parts


def document(call: Call, *options: str) -> dict[str, Any]:
    ended = call("plan", *options, "--json", "-")
    assert ended.status == ExitCode.PASS, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


def effective(found: dict[str, Any], place: int = 0) -> list[float]:
    return [each["effective"]["value"] for each in found["failures"][place]["recoveries"]]


def test_the_table_has_a_row_for_each_recovery(call: Call) -> None:
    ended = call("plan", "--planes", "8", "--tiers", "2")
    for told in (
        *("NIC-T0 links failed, a day", "19.9", "34.1 %", "0.249", "25.2 min"),
        *("MRC, 8 RTT of 10 us", "0.0019 %", "72.2 %", "BGP, hold timer 9 s", "stopped"),
        *("[F1] nic link: 0.057 (0.057 to 0.119) % a month, published", "SIGCOMM 2024"),
    ):
        assert told in ended.out
    assert "campaigns" not in ended.out


def test_options_replace_numbers_and_their_ranges(call: Call) -> None:
    found = document(
        *(call, "--tiers", "2", "--job", "75000", "--flaps", "840/h", "--rtt", "20us", "--exposed", "0.5"),
        *("--checkpoint", "30s", "--restart", "2min", "--repair", "0.5h"),
    )["failures"][0]
    stated = {name: found["rests_on"][name] for name in ("flaps", "exposed", "checkpoint", "restart", "repair", "rtt")}
    assert {name: number["value"] for name, number in stated.items()} == {
        **{"flaps": 14, "exposed": 0.5, "checkpoint": 30, "restart": 120, "repair": 1800},
        "rtt": pytest.approx(20),
    }
    assert {number["mark"] for number in stated.values()} == {"given"}
    assert (found["gpus"], found["numbers"]["flaps"]["value"]) == (75_000, pytest.approx(14))
    assert all(number["low"] == number["high"] for number in stated.values())


def test_everything_in_json_has_a_mark_a_source_and_what_it_rests_on(call: Call) -> None:
    for design in document(call)["failures"]:
        if design is None:
            continue
        derived = [each[key] for each in design["recoveries"] for key in ("flap_loss", "effective")]
        for number in filter(None, [*design["numbers"].values(), *derived, *design["rests_on"].values()]):
            assert number["mark"]
            assert number["source"]
            assert set(number["rests_on"]) <= design["rests_on"].keys()


def test_designs_without_room_have_no_failures(call: Call) -> None:
    found = document(call, "--planes", "8,1", "--tiers", "2,3")
    fits = [each["fits"] for each in found["designs"]]
    assert fits == [each is not None for each in found["failures"]]
    assert set(fits) == {True, False}


def test_curves_are_in_the_document(call: Call) -> None:
    failing = document(call, "--tiers", "2")["failures"][0]
    for curves in ("effective_over_gpus", "effective_over_flaps"):
        names = [curve["name"] for curve in failing[curves]]
        assert names == [each["name"] for each in failing["recoveries"]]


def test_campaigns_repeat_themselves_and_hold_the_formula(call: Call) -> None:
    asked = ("--tiers", "2", "--monte-carlo", "100", "--days", "10", "--seed", "3")
    ended, found = call("plan", *asked), document(call, *asked)
    assert "100 campaigns of 10 days" in ended.out
    assert found == document(call, *asked)
    campaigns = found["failures"][0]["campaigns"]
    for spread, formula in zip(campaigns["effective"], effective(found), strict=True):
        assert spread["low"] <= formula <= spread["high"]


def test_rates_of_the_users_replace_the_shipped_ones(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[failures]\nother = 0\nnic_transceiver = 0\n[job]\nexposed = 0\n[recovery]\nbfd = 0.03\n")
    found = document(call, "--tiers", "2", "--parts", str(file), "--flaps", "0/min")
    *survived, ended = effective(found)
    assert survived == pytest.approx([100] * 4, abs=0.3)
    assert ended < 90, "each lost port is an outage of 9 s, which ends the job"
    assert found["failures"][0]["numbers"]["mtti"] is None
    assert found["failures"][0]["recoveries"][2]["name"] == "BFD, 30 ms"
    assert found["failures"][0]["rests_on"]["other"]["source"] == str(file)


def test_a_best_case_without_restarts_leaves_the_mean_time_open(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[failures]\nother = 0\nnic_transceiver = {value = 0.01, low = 0, high = 0.05}\n")
    asked = ("--gpus", "100000", "--planes", "8", "--tiers", "2", "--parts", str(file))
    numbers = document(call, *asked)["failures"][0]["numbers"]
    mtti, restarts = numbers["mtti"], numbers["restarts"]
    assert mtti["value"] == pytest.approx(86_400 / restarts["value"])
    assert (mtti["low"], mtti["high"]) == (pytest.approx(86_400 / restarts["high"]), None)
    assert " or more" in call("plan", *asked).out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--restart 1h", "131,072 GPUs: a restart takes longer than the 25.2 min between failures"),
        ("--checkpoint 20min", "a checkpoint takes more than half of the 25.2 min between failures"),
        ("--gpus 1000", "below 4,096 failures are more than they say"),
    ],
)
def test_where_the_model_ends_there_is_a_warning(call: Call, options: str, said: str) -> None:
    ended = call("plan", *options.split())
    assert ended.status == ExitCode.PASS
    assert said in ended.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--flaps 14", "--flaps 14: write how many in what time, as in 14/min"),
        ("--flaps -1/min", "14/min"),
        ("--flaps 14/fortnight", "14/min"),
        ("--flaps 1e400/min", "14/min"),
        ("--job 200000", "--job 200000: more than the 131,072 GPUs of --gpus"),
        ("--job 1", "--job 1: write a whole number"),
        ("--gpus 1000,2000 --job 1500", "more than the 1,000 GPUs"),
        ("--rtt 10", "--rtt 10: write a time above 0 with its unit"),
        ("--rtt 0us", "above 0"),
        ("--checkpoint 0s", "--checkpoint 0s: write a time above 0"),
        ("--checkpoint 1us", "--checkpoint 1us: 1 ms at least"),
        ("--restart soon", "--restart soon"),
        ("--repair -5min", "--repair -5min"),
        ("--exposed 20", "--exposed 20: write a share of 0 to 1"),
        ("--exposed nan", "0 to 1"),
        ("--monte-carlo 0", "--monte-carlo 0: write a whole number, 20 to"),
        ("--monte-carlo 1000000", "campaigns at most"),
        ("--monte-carlo 20 --days 0", "--days 0"),
        ("--days 0", "--days 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(call: Call, options: str, said: str) -> None:
    assert said in refused_options(call, options)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("[failures]\nnic_lnik = 1\n", "my.toml:2:1: failures.nic_lnik", "nic_link"),
        ("[failures]\nother = -1\n", "my.toml:2:1: failures.other", "none below 0"),
        ("[failures]\nt0 = 'often'\n", "my.toml:2:1: failures.t0", "a number of % a month"),
        ("[failures]\nnic_link = 101\n", "my.toml:2:1: failures.nic_link", "0 to 100 % a month"),
        ("[job]\nexposed = {value = 0.5, high = 2}\n", "my.toml:2:1: job.exposed", "0 to 1"),
        ("[job]\ncheckpoint = 0\n", "my.toml:2:1: job.checkpoint", "0.001 to"),
        ("[job]\nrestart = {value = 5, low = 9}\n", "my.toml:2:1: job.restart", "low <= value"),
        ("[recovery]\nospf = 1\n", "my.toml:2:1: recovery.ospf", "bgp_carrier"),
    ],
)
def test_mistakes_in_rates_have_a_place(text: str, place: str, said: str) -> None:
    told = refused_parts(text)
    assert place in told
    assert said in told
