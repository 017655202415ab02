"""What a kind of fault says of itself besides its keys: what it changes, how it is drawn, how a person asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Any, ClassVar, NamedTuple, Protocol

from testbed.scenario.faults.names import Target

Defaults = Mapping[str, Any]
"""Keys of a kind that need not be written in chaos, as YAML has them; `of` is what events hit."""


class Effect(Enum):
    """What a fault changes in the fabric; read-back and the books go by it."""

    PORTS = "admin state of ports"
    RATE = "rate of links"
    RULES = "rules of the port program"
    NOTHING = "nothing"
    OWN = "what its own code changes"

    @property
    def loses_uncounted(self) -> bool:
        """Packets may vanish on its links where nothing counts them."""
        return self in (Effect.PORTS, Effect.OWN)


class State(StrEnum):
    """How a link or a switch is while a fault is on."""

    UP = "up"
    DENIED = "denied"
    SLOW = "slow"
    LOSSY = "lossy"
    BROKEN = "broken"
    SILENT = "silent"


TOUCHED = (State.DENIED, State.SLOW, State.LOSSY, State.BROKEN)
"""What the report can show of a part."""


class Drawing(NamedTuple):
    """How charts and drawings show what a fault touches.

    `touched`: its links, and in the report its switches too. `target`: a switch that it is aimed at, while it is on;
    None: it looks whole. `whole_share`: its links when all packets are lost at both ends; None: as `touched`.
    """

    touched: State
    target: State | None = None
    whole_share: State | None = None


class InteractiveRequest(NamedTuple):
    """How a person asks for a fault while a run goes on: the word for it, and the keys of its length and its share."""

    word: str
    length: str = "for"
    share: str = ""


class Traits(Protocol):
    """What the class of a kind says of all its faults."""

    kind: ClassVar[str]
    target: ClassVar[Target]
    effect: ClassVar[Effect]
    drawing: ClassVar[Drawing]
