"""Traits of a fault kind besides its keys: its effect, how it is drawn, how it can be requested."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Any, ClassVar, NamedTuple, Protocol

from mrc_testbed.testbed.scenario.faults.names import Target

Defaults = Mapping[str, Any]
"""Default keys of a kind in chaos, as in YAML; `of` is what events hit."""


class Effect(Enum):
    """What a fault changes in the fabric; used by read-back and the conservation check."""

    PORTS = "admin state of ports"
    RATE = "rate of links"
    RULES = "rules of the port program"
    TABLE = "entries of a switch's table"
    LEVELS = "levels of a switch's ports"
    HOSTS = "what hosts do"
    NOTHING = "nothing"
    OWN = "what its own code changes"

    @property
    def loses_uncounted(self) -> bool:
        """True if packets may vanish uncounted on its links."""
        return self in (Effect.PORTS, Effect.OWN)

    @property
    def needs_program(self) -> bool:
        """True if it is the port program that does it."""
        return self in (Effect.RULES, Effect.LEVELS)

    @property
    def in_fabric(self) -> bool:
        """True if the fabric is another meanwhile, and can be read back."""
        return self not in (Effect.HOSTS, Effect.NOTHING)

    @property
    def copies_uncounted(self) -> bool:
        """True if packets may be doubled uncounted on its links."""
        return self is Effect.OWN


class State(StrEnum):
    """State of a link or switch during a fault."""

    UP = "up"
    DENIED = "denied"
    SLOW = "slow"
    LOSSY = "lossy"
    BROKEN = "broken"
    SILENT = "silent"


TOUCHED = (State.DENIED, State.SLOW, State.LOSSY, State.BROKEN)
"""State as shown in the report."""


class Drawing(NamedTuple):
    """How charts and drawings show an active fault.

    `touched`: its links, and in the report its switches too. `target`: a targeted switch; None: it looks intact.
    `whole_share`: its links when all packets are lost at both ends; None: as `touched`.
    """

    touched: State
    target: State | None = None
    whole_share: State | None = None


class InteractiveRequest(NamedTuple):
    """How the fault is requested during a run: the word for it, and the keys of its duration and its share."""

    word: str
    length: str = "for"
    share: str = ""


class Traits(Protocol):
    """What the class of a kind says of all its faults."""

    kind: ClassVar[str]
    target: ClassVar[Target]
    effect: ClassVar[Effect]
    drawing: ClassVar[Drawing]
