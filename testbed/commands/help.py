"""The text of `--help`: plain, as wide as the terminal and at most 80 columns, options in named groups.

In Typer's boxes a group's longest option decides how narrow all its texts are, and lists of commands are cut. This text
is also ready in half the time, for nothing loads rich.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_SENTENCE = re.compile(r"(.+?)(?:\.(?:\s|$)|\n\n|$)", re.S)
_EXTRA = re.compile(r"\s*\[(default: [^;\]]+)?[^\]]*\]$")
"""What Typer adds to a help: the default, and bounds or `required`, which usage and errors tell better."""
_FEW = 12
"""Up to this number, options are read at a glance and need no groups."""
_KINDS = {"int": "N", "int range": "N", "float": "X", "float range": "X", "str": "TEXT", "path": "FILE"}
Rows = dict[str, list[tuple[str, str]]]


class HelpCommand(TyperCommand):
    """A command whose help has its options in groups, by `rich_help_panel`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then the groups in the order in which they are first used; those of no group come last."""
        _write(formatter, _parameters(self, ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments as their metavars have them; what may be left out is in brackets."""
        return _usage(self, ctx)


class HelpGroup(TyperGroup):
    """A group of commands, likewise."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Options, then commands in groups, each with its first sentence, never cut."""
        rows = _parameters(self, ctx)
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                rows.setdefault(panel if isinstance(panel, str) else "Commands", []).append(
                    (name, f"{first_sentence(command.help)}.")
                )
        _write(formatter, rows)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """As `mrc-testbed topo [OPTIONS] COMMAND ...`."""
        return [*_usage(self, ctx), "COMMAND ..."]


class Commands(typer.Typer):
    """An app, or a part of one, whose commands have such a help."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """As that of Typer."""
        return super().command(name, **{"cls": HelpCommand, **settings})


def first_sentence(text: str | None) -> str:
    """In one line, without its full stop."""
    found = _SENTENCE.match((text or "").strip())
    return " ".join(found[1].split()) if found else ""


def _parameters(command: Any, ctx: Any) -> Rows:
    shown = [(one, record) for one in command.get_params(ctx) if (record := one.get_help_record(ctx)) is not None]
    arguments = [(one, record) for one, record in shown if one.param_type_name == "argument"]
    groups: Rows = {"Arguments": [(_metavar(one), _text(text)) for one, (_, text) in arguments]}
    options = [(one, record) for one, record in shown if one.param_type_name == "option"]
    for one, (names, text) in options:
        panel = getattr(one, "rich_help_panel", None) if len(options) > _FEW else None
        groups.setdefault(panel if isinstance(panel, str) else "Options", []).append((_names(names), _text(text)))
    groups["Options"] = groups.pop("Options", [])
    return groups


def _write(formatter: Any, groups: Rows) -> None:
    for title, rows in groups.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


def _usage(command: Any, ctx: Any) -> list[str]:
    arguments: Iterable[Any] = (one for one in command.get_params(ctx) if one.param_type_name == "argument")
    return ["[OPTIONS]", *map(_metavar, arguments)]


def _metavar(argument: Any) -> str:
    shown = argument.metavar or argument.name.upper()
    return shown if argument.required or shown.startswith("[") else f"[{shown}]"


def _names(shown: str) -> str:
    """`--seed N` for `--seed <int>`; words of a choice stay."""
    return re.sub(r"<(.+?)>", lambda found: _KINDS.get(found[1], found[1]), shown)


def _text(shown: str) -> str:
    return _EXTRA.sub(lambda found: f" [{found[1]}]" if found[1] else "", shown)
