"""Hosts whose daemons tests drive."""

import pytest

from tests.libmrc.raw_program import driven


@pytest.fixture(params=[False, True], ids=["mrc", "roce"])
def pair(request, tmp_path):
    """Of either transport."""
    with driven(tmp_path, roce=request.param) as made:
        yield made


@pytest.fixture
def mrc(tmp_path):
    """Of MRC alone."""
    with driven(tmp_path) as made:
        yield made
