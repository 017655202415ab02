"""A million hostile inputs (about 12 s on one core of a small VM)."""

import pytest

from tests.sim.fuzz import ROUND, fuzz

NEVER_HERE = {"refused_bad_icrc"}
"""The CRC is off, so that changed packets get in."""


@pytest.mark.slow
def test_a_million_inputs_neither_raise_nor_leak_and_are_counted():
    kinds, counted, _ = fuzz(1_000_000, seed=7)
    assert sum(kinds.values()) == 1_000_000
    assert min(kinds.values()) > 100_000
    refused = {name for name in counted if name.startswith("refused_")}
    assert {name for name in refused if not counted[name]} <= NEVER_HERE
    assert counted["qp_errors"] > 0


def test_with_the_crc_on_every_change_is_noticed_and_none_breaks_a_qp():
    kinds, counted, rounds = fuzz(50_000, seed=9, icrc=True)
    # What was trimmed on the way has no CRC any more: those alone get in without one, and they carry no bytes.
    assert counted["refused_bad_icrc"] > 0.8 * (kinds["mutated"] + kinds["wrong QP"])
    assert counted["qp_errors"] == 0
    assert rounds == -(-50_000 // ROUND), "no round ended early"


def test_the_same_seed_is_the_same_attack():
    assert fuzz(5_000, seed=3) == fuzz(5_000, seed=3)
