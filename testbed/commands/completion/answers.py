"""What may come next on a command line, found in the tree of commands that Typer made. Pure but for `values`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrc_testbed.testbed.commands.completion.values import values
from mrc_testbed.testbed.commands.help import first_sentence

_END_OF_OPTIONS = "--"


@dataclass(slots=True)
class _Typed:
    """What the words so far come to. `command`, `option`: of Typer."""

    command: Any
    option: Any = None
    """It waits for its value."""
    given: list[str] = field(default_factory=list)
    """Arguments of the command."""
    options: list[str] = field(default_factory=list)
    results: str = ""
    """The value of --out."""
    ended: bool = False
    """No option may come any more."""

    def read(self, word: str) -> None:
        if self.option is not None:
            self.results = word if "--out" in self.option.opts else self.results
            self.option = None
        elif word == _END_OF_OPTIONS and not self.ended:
            self.ended = True
        elif word.startswith("-") and word != "-" and not self.ended:
            self._read_option(word)
        else:
            self._read_argument(word)

    def _read_option(self, word: str) -> None:
        name, equals, _ = word.partition("=")
        self.options.append(name)
        found = next((one for one in self.command.params if name in one.opts), None)
        if found is not None and not equals and not _flag(found):
            self.option = found

    def _read_argument(self, word: str) -> None:
        below = getattr(self.command, "commands", {})
        if word in below and not self.given:
            self.command = below[word]
        else:
            self.given.append(word)
            settings = {
                "allow_interspersed_args": self.command.allow_interspersed_args,
                **self.command.context_settings,
            }
            self.ended |= not settings["allow_interspersed_args"]

    def argument(self) -> Any:
        """The one that the next word is for, or None."""
        arguments = [one for one in self.command.params if one.param_type_name == "argument"]
        last = arguments[-1] if arguments and arguments[-1].nargs == -1 else None
        return arguments[len(self.given)] if len(self.given) < len(arguments) else last


def answers(root: Any, words: Sequence[str]) -> Iterator[str]:
    """Lines for a shell: a value that the last word may become, and after a tab what it is; `:files` and `:folders` ask
    the shell for its own."""
    *before, last = words or [""]
    typed = _Typed(root)
    for word in before:
        typed.read(word)
    for value, meaning in _fitting(typed, last):
        if value.startswith((last, ":")):
            yield f"{value}\t{meaning}" if meaning else value


def _fitting(typed: _Typed, last: str) -> Iterator[tuple[str, str]]:
    if typed.option is not None:
        yield from ((value, "") for value in values(typed.option, typed.command, typed.given, typed.results))
    elif last.startswith("-") and not typed.ended:
        yield from _options(typed)
    else:
        below = {} if typed.given else getattr(typed.command, "commands", {})
        yield from ((name, first_sentence(one.help)) for name, one in below.items() if not one.hidden)
        if (argument := typed.argument()) is not None:
            yield from ((value, "") for value in values(argument, typed.command, typed.given, typed.results))


def _options(typed: _Typed) -> Iterator[tuple[str, str]]:
    """Those that may still be given."""
    for one in typed.command.params:
        names = [*one.opts, *one.secondary_opts]
        again = one.multiple or not set(names) & set(typed.options)
        if one.param_type_name == "option" and not one.hidden and again:
            yield from ((name, first_sentence(one.help)) for name in names if name.startswith("--"))
    yield "--help", "Show this message and exit"


def _flag(option: Any) -> bool:
    return bool(option.is_flag or option.count)
