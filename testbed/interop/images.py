"""Rows by image: the entry point of a container speaks the lines of the contract, and has no network."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from os import getpid
from pathlib import Path

from mrc_testbed.testbed.interop.entries import ListedImage, RowForm
from mrc_testbed.testbed.interop.evidence import Role
from mrc_testbed.testbed.launcher.start import told_by

_ENGINES = ("docker", "podman")
_ASK_S = 20
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class ContainerEngine:
    """A program with the command line of docker. `program`: its path; `lacks`: why it can run nothing, empty if it
    can."""

    program: str
    lacks: str = ""

    def lacks_image(self, image: str) -> str:
        """Why this image cannot be run, with what to do; empty if it can."""
        return self.lacks or _refusal(
            [self.program, "image", "inspect", image], f"no image {image} here; first: {self.program} pull {image}"
        )


@dataclass(frozen=True, slots=True)
class ImageProgram:
    """The container of a row, as a program that can be started."""

    listed: ListedImage
    engine: ContainerEngine
    folder: Path = field(default_factory=Path.cwd)

    @property
    def name(self) -> str:
        """That of the row."""
        return self.listed.name

    @property
    def role(self) -> Role:
        """That of the row."""
        return self.listed.role

    @property
    def form(self) -> RowForm:
        """That of the row."""
        return self.listed.form

    def start(self) -> tuple[Sequence[str], Sequence[str]]:
        """A new container at each call."""
        name = f"mrc-testbed-interop-{getpid()}-{next(_numbers)}"
        options = ("--rm", "--interactive", "--network", "none", "--pull", "never", "--name", name)
        program = self.engine.program
        return (program, "run", *options, self.listed.image), (program, "rm", "--force", name)


def engine(named: str = "") -> ContainerEngine:
    """`named`: a program or its path; empty: docker, or else podman, in PATH."""
    candidates = [named] if named else _ENGINES
    found = [path for each in candidates if (path := shutil.which(each))]
    if not found:
        what = f"no {named} here" if named else "neither docker nor podman here; install one, as in: apt install podman"
        return ContainerEngine("", what)
    able = [each for each in found if not _asked(each)]
    return ContainerEngine(able[0]) if able else ContainerEngine(found[0], _asked(found[0]))


def _asked(program: str) -> str:
    return _refusal([program, "info"], f"{program} runs no containers here")


def _refusal(command: Sequence[str], what: str) -> str:
    """What to say where the command fails, with its last line; empty where it succeeds."""
    try:
        status, said = told_by(command, _ASK_S)
    except TimeoutError:
        return f"{what}: no answer within {_ASK_S} s"
    except OSError as error:
        return f"{what}: {error.strerror or error}"
    return "" if status == 0 else f"{what}: {said}" if said else what
