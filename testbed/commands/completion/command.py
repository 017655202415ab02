"""`mrc-testbed completion`: what a shell needs to complete this command's words, and the answers that it then asks
for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from mrc_testbed.testbed.terminal import say

_WORDS = "--"
"""Before the words of a line that a shell asks about."""


class Shell(StrEnum):
    """The shells whose words can be completed; a script beside this file for each."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completed(app: typer.Typer, arguments: Sequence[str]) -> bool:
    """Answers `completion SHELL -- WORD...`, as the scripts ask at every Tab; False for any other command line.

    Not by the command itself: before it is called, Typer loads what reads values, which takes longer than all the rest.
    """
    if arguments[:1] != ["completion"] or arguments[2:3] != [_WORDS]:
        return False
    from mrc_testbed.testbed.commands.completion.answers import answers

    for line in answers(get_command(app), arguments[3:]):
        say(line)
    return True


def completion(shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", show_default=False)]) -> None:
    """Print the script with which a shell completes commands, options, scenarios and runs at the Tab key.

    `source <(mrc-testbed completion bash)` tries it; docs/commands.md says where it goes to stay. Nothing is written.
    """
    say(Path(__file__).with_name(f"completion.{shell}").read_text(encoding="utf-8"), end="")
