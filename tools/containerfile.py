"""The Containerfile, carried out without a container: its stages, and each stage's lines in a bare root.

Knows the instructions that the Containerfile has, and refuses others: FROM, COPY of the whole context, RUN, ENV,
WORKDIR, ENTRYPOINT and CMD as lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

Run = Callable[[list[str], str, dict[str, str]], int]
"""Runs words in a folder, with variables; returns the exit status."""


@dataclass
class Stage:
    """An image: its base, its name, and its lines (instruction, rest) in order."""

    base: str
    name: str
    lines: list[tuple[str, str]] = field(default_factory=list)

    @property
    def suite(self) -> str:
        """The suite of Debian that the base is."""
        found = re.fullmatch(r"(?:docker\.io/library/)?debian:(\w+)-slim", self.base)
        if not found:
            raise ValueError(f"FROM {self.base}: not a slim Debian")
        return found[1]


def stages(text: str) -> list[Stage]:
    """The stages of a Containerfile."""
    found: list[Stage] = []
    joined = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    for line in re.sub(r"\\\n\s*", "", joined).splitlines():
        if not line.strip():
            continue
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found.append(Stage(base, name))
        else:
            found[-1].lines.append((word, rest.strip()))
    return found


def carry_out(stage: Stage, copy: Callable[[str], None], run: Run) -> str | None:
    """Carry out the lines of a stage, and at the end what the image does when it is started. Returns the first line
    that failed. `copy` lays the whole context into a folder of the root."""
    place, variables = "/", dict[str, str]()
    started: dict[str, list[str]] = {"ENTRYPOINT": [], "CMD": []}
    for word, rest in stage.lines:
        if word == "RUN":
            if run(["sh", "-c", rest], place, variables) != 0:
                return f"RUN {rest}"
        elif word == "COPY" and rest.startswith(". "):
            copy(str(PurePosixPath(place, rest.removeprefix(". "))))
        elif word == "ENV":
            name, _, value = rest.partition("=")
            variables[name] = value
        elif word == "WORKDIR":
            place = rest
        elif word in started:
            started[word] = json.loads(rest)
        else:
            raise ValueError(f"{word} {rest}: not an instruction that is known here")
    words = [*started["ENTRYPOINT"], *started["CMD"]]
    return None if run(words, place, variables) == 0 else f"started: {' '.join(words)}"
