"""A link has no credit: a message takes the time of its packets on every link, also after a pause."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.message_times import FABRICS, SCENARIO, Message, Timed, measure, medians, messages
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.switching.options import FabricOptions
from tests.emu.conftest import with_fabric

TEXT = SCENARIO.format(fabric=FABRICS["slow"])
PACKETS = (1, 4, 16)
REPEATS = 3


@pytest.mark.nightly
def test_no_message_is_faster_than_the_wire_nor_slower_by_half_a_packet(options: FabricOptions) -> None:
    """Through one switch and three, after a short pause and a long one.

    No single message is early. A late one also has the wake-ups of two processes in it, so the median of `REPEATS` of
    its kind is what has to fit.
    """
    shape = load_scenario_text(TEXT).shape()

    def body(fabric: Fabric) -> None:
        found = list(measure(fabric, program, TEXT, messages(PACKETS, REPEATS)))
        assert Counter(one.message.switches for one in found) == {1: 8 * REPEATS, 3: 8 * REPEATS}
        assert not [one for one in found if one.is_early()]
        assert not [one for one in medians(found) if not one.fits(shape)]

    program = replace(options, switch_ports="port program")
    with_fabric(body, program, shape)


def test_a_message_under_its_time_does_not_fit() -> None:
    shape = load_scenario_text(TEXT).shape()
    message = Message(4096, 1, 1)
    assert Timed(message, 50e6, 50e6).fits(shape)
    assert Timed(message, 54e6, 50e6).fits(shape)
    assert not Timed(message, 55e6, 50e6).fits(shape)
    assert not Timed(message, 49e6, 50e6).fits(shape)
    large = Message(64 * 4096, 1, 1)
    assert Timed(large, 100e6, 50e6).fits(shape), "it waits for its window"
    assert not Timed(large, 49e6, 50e6).fits(shape)
