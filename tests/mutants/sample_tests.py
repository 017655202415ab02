"""Tests of the sample, for campaigns of tests/mutants/test_campaign.py alone."""

from tests.mutants import sample


def test_the_limit_itself_fits_and_no_more() -> None:
    assert sample.fits(5)
    assert not sample.fits(6)


def test_it_counts_down() -> None:
    assert sample.count_down(2) == 0


def test_it_is_the_same() -> None:
    assert sample.same(3) == 3


def test_what_is_red_by_itself_kills_nothing() -> None:
    assert sample.same(3) == 4
