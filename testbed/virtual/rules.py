"""Rules by which a virtual port loses or corrupts what arrives, as bpf/port.bpf.c does."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mrc_testbed.testbed.switching.port_counts import CHANGED, DROPPED, PASSED
from mrc_testbed.testbed.switching.port_rules import ALWAYS, PortRule
from mrc_testbed.testbed.virtual.packet import DATA_ROW, VirtualPacket

_DICE_BITS = 32


class PortDice:
    """What one port draws from. The generator, of 2.5 kB, is made at the first draw: most ports never draw."""

    __slots__ = ("_random", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random: Random | None = None

    def getrandbits(self, bits: int) -> int:
        """As of `random.Random`."""
        if self._random is None:
            self._random = Random(self._seed)
        return self._random.getrandbits(bits)


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

    def strikes(self, dice: PortDice) -> bool:
        """Does it hit a packet that it is about? Counts those."""
        if self._chance != ALWAYS and dice.getrandbits(_DICE_BITS) >= self._chance:
            return False
        self.hits += 1
        return True


def fate(
    rules: tuple[ActiveRule, ...], packet: VirtualPacket, payload: Callable[[VirtualPacket], range], dice: PortDice
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
            if corruptible and rule.strikes(dice):
                places = corruptible
        elif rule.strikes(dice):
            return DROPPED
    if not places:
        return PASSED
    flip_one_bit(packet, places, dice)
    return CHANGED


def flip_one_bit(packet: VirtualPacket, places: range, dice: PortDice) -> None:
    """Change one bit in one of these bytes."""
    thrown = dice.getrandbits(_DICE_BITS)
    data = bytearray(packet.whole())
    data[places[(thrown >> 3) % len(places)]] ^= 1 << (thrown & 7)
    packet.become(bytes(data))
