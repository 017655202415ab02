"""Hostile inputs: 100 000 of them, and a million by night."""

import pytest

from tests.sim.fuzz import ROUND, fuzz

NEVER_HERE = {"refused_bad_icrc", "refused_no_receive", "refused_own_memory"}
"""The CRC is off, so that changed packets get in; and no QP is a program's."""
RARE = {"refused_no_port_left"}
"""In a million inputs it occurs, in a tenth of them it need not."""


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [100_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_no_input_raises_or_leaks_and_each_is_counted(inputs):
    kinds, counted, _ = fuzz(inputs, seed=7)
    assert sum(kinds.values()) == inputs
    assert min(kinds.values()) > inputs // 10
    refused = {name for name in counted if name.startswith("refused_")}
    assert {name for name in refused if not counted[name]} <= NEVER_HERE | (RARE if inputs < 1_000_000 else set())
    assert counted["qp_errors"] > 0


def test_with_the_crc_on_every_change_is_noticed_and_none_breaks_a_qp():
    kinds, counted, rounds = fuzz(50_000, seed=9, icrc=True)
    # What was trimmed on the way has no CRC any more: those alone get in without one, and they carry no bytes.
    assert counted["refused_bad_icrc"] > 0.8 * (kinds["mutated"] + kinds["wrong QP"])
    assert counted["qp_errors"] == 0
    assert rounds == -(-50_000 // ROUND), "no round ended early"


def test_the_same_seed_is_the_same_attack():
    assert fuzz(5_000, seed=3) == fuzz(5_000, seed=3)
