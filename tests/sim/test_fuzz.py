"""A million hostile inputs (about 12 s on one core of a small VM)."""

from tests.sim.fuzz import fuzz

NEVER_HERE = {"refused_bad_icrc"}
"""The CRC is off, so that changed packets get in."""


def test_a_million_inputs_neither_raise_nor_leak_and_are_counted():
    kinds, counted, _ = fuzz(1_000_000, seed=7)
    assert sum(kinds.values()) == 1_000_000
    assert min(kinds.values()) > 100_000
    refused = {name for name in counted if name.startswith("refused_")}
    assert {name for name in refused if not counted[name]} <= NEVER_HERE
    assert counted["qp_errors"] > 0


def test_the_same_seed_is_the_same_attack():
    assert fuzz(5_000, seed=3) == fuzz(5_000, seed=3)
