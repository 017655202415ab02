"""Rules by which a virtual port loses or corrupts what arrives, as bpf/port.bpf.c does."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mrc_testbed.testbed.switching.port_counts import CHANGED, DROPPED, PASSED
from mrc_testbed.testbed.switching.port_rules import ALWAYS, PortRule
from mrc_testbed.testbed.virtual.packet import DATA_ROW, VirtualPacket

_DICE_BITS = 32


class ActiveRule:
    """A rule that holds. `hits`: the packets that it met."""

    __slots__ = ("_chance", "_rule", "drops", "hits", "slot")

    def __init__(self, slot: int, rule: PortRule) -> None:
        self.slot = slot
        self.drops = rule.action == "drop"
        self.hits = 0
        self._rule = rule
        self._chance = rule.chance

    def matches(self, packet: VirtualPacket) -> bool:
        """Is the rule about this packet?"""
        rule, way = self._rule, packet.way
        return (
            (not rule.data_only or packet.row == DATA_ROW)
            and rule.uplink in (None, way.uplink)
            and rule.source in (None, way.source_key)
            and rule.destination in (None, way.destination_key)
        )

    def strikes(self, random: Random) -> bool:
        """Does it hit a packet that it is about? Counts those."""
        if self._chance != ALWAYS and random.getrandbits(_DICE_BITS) >= self._chance:
            return False
        self.hits += 1
        return True


def fate(
    rules: tuple[ActiveRule, ...], packet: VirtualPacket, payload: Callable[[VirtualPacket], range], random: Random
) -> int:
    """The verdict on an arriving packet: PASSED, CHANGED (with one bit of it flipped) or DROPPED.

    The first rule that drops the packet ends it; of those that corrupt one is enough.
    """
    places = range(0)
    for rule in rules:
        if not rule.matches(packet):
            continue
        if not rule.drops:
            corruptible = payload(packet) if packet.row == DATA_ROW and not places else range(0)
            if corruptible and rule.strikes(random):
                places = corruptible
        elif rule.strikes(random):
            return DROPPED
    if not places:
        return PASSED
    flip_one_bit(packet, places, random)
    return CHANGED


def flip_one_bit(packet: VirtualPacket, places: range, random: Random) -> None:
    """Change one bit in one of these bytes."""
    dice = random.getrandbits(_DICE_BITS)
    data = bytearray(packet.whole())
    data[places[(dice >> 3) % len(places)]] ^= 1 << (dice & 7)
    packet.become(bytes(data))
