"""State machines as tables: (state, input) -> state.

One policy for a pair that the table lacks: the machine stays in its state, and `step` returns None. Only the caller
knows what that means. EVs and ports hear from the network, where any input may come in any state: they ignore it. A QP
hears from its own application, which should know better: it raises `QpStateError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

State = TypeVar("State", bound=Enum)
Input = TypeVar("Input", bound=Enum)


def step(table: Mapping[tuple[State, Input], State], state: State, event: Input) -> State | None:
    """The state that `event` leads to, None where the table lacks the pair."""
    return table.get((state, event))


def diagram(table: Mapping[tuple[State, Input], State], first: State) -> str:
    """The table as a Mermaid state diagram. Inputs that lead from one state to the same other share an arrow."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (old, event), new in table.items():
        arrows.setdefault((old, new), []).append(str(event.value).replace("_", " "))
    lines = ["stateDiagram-v2", f"    [*] --> {first.value}"]
    lines += [f"    {old.value} --> {new.value}: {', '.join(events)}" for (old, new), events in arrows.items()]
    return "\n".join(lines) + "\n"
