"""The model of `programs`: processes of the user, one a host, whose packets the transport carries."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from mrc_testbed.testbed.expect.metrics import program_metric
from mrc_testbed.testbed.expect.vocabulary import Metric
from mrc_testbed.testbed.scenario.model.step_models import MAX_STEPS, PlacedExchange, StepEntry
from mrc_testbed.testbed.scenario.text.fields import PositiveDuration, Size, Whole, given, refuse
from mrc_testbed.testbed.scenario.text.shell_syntax import CommandLine
from mrc_testbed.testbed.workloads.programs import ProgramJob, ring_bytes
from mrc_testbed.testbed.workloads.steps import StepAction
from mrc_testbed.topos.names import parse_host
from mrc_testbed.topos.shape import Shape

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIGURE = re.compile(r"[a-z][a-z0-9_]*")
UNNAMED_FIGURE = "value"
"""The figure of a pattern whose group has no name."""
NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?))"
"""A number as programs print it: with a sign, with an exponent, or none at all."""
_PLACE = re.compile(r"<([A-Za-z_]\w*)>")
OURS = ("MRC_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""Variables that the run sets, or how they begin."""
TIMEOUT_NS = 120 * 10**9
MEMORY_BYTES = 4 << 30


def _command(value: object) -> CommandLine:
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise refuse(f"is no command line: {str(error).lower()}") from None
    elif isinstance(value, list) and all(isinstance(word, str) for word in value):
        words = value
    else:
        raise refuse("must be a command line, or a list of words, such as [python3, train.py]")
    if not words or not words[0]:
        raise refuse("is empty; write a command such as `python3 train.py`")
    if any("\0" in word for word in words):
        raise refuse("has a byte of zero, which no argument can have")
    return CommandLine.of(words, value if isinstance(value, str) else None)


def _commands(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict) or not value:
        raise refuse("must be a mapping of hosts to commands, such as {h0: iperf3 -s, h4: iperf3 -c h0}")
    found = []
    for host, command in value.items():
        if not isinstance(host, str):
            raise refuse(f"{host!r} is not the name of a host, such as h0")
        found.append((host, _command(command)))
    return tuple(found)


def _environment(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise refuse('must be a mapping of variables to text, such as {EPOCHS: "3"}')
    for name, text in value.items():
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            raise refuse(f"{name!r} is not the name of a variable, such as EPOCHS")
        if not isinstance(text, str) or "\0" in text:
            raise refuse(f'must be text in quotes, such as {name}: "3"', key=name)
        if name.startswith(OURS[0]) or name in OURS[1:]:
            raise refuse(f"{name} is set by the run; choose another name", key=name)
    return tuple(value.items())


def _files(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise refuse("must be a list of files beside the scenario, such as [train.py]")
    for place, name in enumerate(value):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise refuse(f"{name!r} is outside the folder of the scenario; copy it there", below=place)
        if name in value[:place]:
            raise refuse(f"duplicate file {name!r}", below=place)
    return tuple(value)


def _modules(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and _VARIABLE.fullmatch(item) for item in value):
        raise refuse("must be a list of modules that Python imports, such as [torch]")
    return tuple(dict.fromkeys(value))


class Verbs(StrEnum):
    """How programs find the host's NIC: by a search path of libraries, by one that is preloaded, or in Python alone."""

    LIBRARIES = "libraries"
    PRELOAD = "preload"
    PYTHON = "python"


def _verbs(value: object) -> Verbs | bool:
    if isinstance(value, bool):
        return Verbs.LIBRARIES if value else False
    if isinstance(value, str) and value in tuple(Verbs):
        return Verbs(value)
    raise refuse("must be libraries (or true), preload or python")


def _pattern(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise refuse("must be a regular expression, such as 'step (\\d+) done'")
    try:
        re.compile(value)
    except re.error as error:
        raise refuse(f"is no regular expression: {error}") from None
    return value


def _metrics(value: object) -> tuple[str, ...]:
    """Patterns with groups: one without a name, or any with names; or with `<name>` in place of each number."""
    patterns = tuple(_with_numbers(_pattern(one)) for one in (value if isinstance(value, list) else [value]))
    names: list[str] = []
    for one in patterns:
        found = figures_of(one)
        if not found:
            raise refuse(f"{one!r} has no place for the number, such as 'loss=<loss>'")
        if wrong := next((name for name in found if not _FIGURE.fullmatch(name)), None):
            raise refuse(f"the figure {wrong!r} must be called in small letters, such as loss")
        names += found
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise refuse(f"the figure {twice!r} is there twice; name them, such as 'loss=<loss>'")
    return patterns


def _with_numbers(pattern: str) -> str:
    """`<name>` as a group that takes any number, in a pattern that has no groups of its own."""
    if re.compile(pattern).groups:
        return pattern
    return _PLACE.sub(lambda place: f"(?P<{place[1]}>{NUMBER})", pattern)


def figures_of(pattern: str) -> tuple[str, ...]:
    """The figures that a pattern gives: its named groups, or one for its single group without a name."""
    compiled = re.compile(pattern)
    named = tuple(compiled.groupindex)
    return named or ((UNNAMED_FIGURE,) if compiled.groups else ())


def program_metrics(workload: Any) -> dict[str, Metric]:
    """What programs print, as metrics: of `workload` as it is in the file, good or not."""
    found: dict[str, Metric] = {}
    for entry in workload if isinstance(workload, list) else ():
        programs = entry.get(Programs.kind) if isinstance(entry, dict) else None
        raw = programs.get("metric", []) if isinstance(programs, dict) else []
        for pattern in raw if isinstance(raw, list) else [raw]:
            with contextlib.suppress(re.error, TypeError):
                figures = figures_of(_with_numbers(pattern))
                found |= {metric.name: metric for metric in map(program_metric, figures)}
    return found


_VERBS_SCHEMA = {"enum": [True, False, *Verbs]}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_COMMAND_SCHEMA = {"anyOf": [{"type": "string"}, {**_TEXTS, "minItems": 1}]}
Command = Annotated[tuple[str, ...], PlainValidator(_command), WithJsonSchema(_COMMAND_SCHEMA)]
"""A program and its arguments."""


class Programs(StepEntry):
    """Programs of the user: one process a host."""

    kind: ClassVar[str] = "programs"

    command: Annotated[Command | None, given("python3 train.py")] = Field(
        default=None, description="of every host", examples=["python3 train.py"]
    )
    commands: Annotated[
        tuple[tuple[str, tuple[str, ...]], ...],
        PlainValidator(_commands),
        WithJsonSchema({"type": "object", "additionalProperties": _COMMAND_SCHEMA, "minProperties": 1}),
    ] = Field(
        default=(),
        description="by host, in place of `command`; other `hosts` only have `mrc0`",
        examples=["{h0: iperf3 -s, h4: iperf3 -c h0}"],
    )
    files: Annotated[tuple[str, ...], PlainValidator(_files), WithJsonSchema(_TEXTS)] = Field(
        default=(), description="beside the scenario, copied to each host", examples=["[train.py]"]
    )
    modules: Annotated[tuple[str, ...], PlainValidator(_modules), WithJsonSchema(_TEXTS)] = Field(
        default=(), description="what the Python of the command must have", examples=["[torch]"]
    )
    env: Annotated[
        tuple[tuple[str, str], ...],
        PlainValidator(_environment),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
    ] = Field(
        default=(),
        description="more variables of the environment",
        examples=['{EPOCHS: "3"}'],
        json_schema_extra={"default": {}},
    )
    step: Annotated[str, PlainValidator(_pattern), WithJsonSchema({"type": "string"})] = Field(
        default="", description="a line of output that ends a step", examples=["step (\\d+) done"]
    )
    begin: Annotated[str, PlainValidator(_pattern), WithJsonSchema({"type": "string"})] = Field(
        default="", description="a line of output from which the next step counts", examples=["ready"]
    )
    steps: Annotated[Whole | None, Field(ge=1, le=MAX_STEPS), given("30")] = Field(
        default=None, description="how many steps each program has to make", examples=[30]
    )
    metric: Annotated[
        tuple[str, ...],
        PlainValidator(_metrics),
        WithJsonSchema({"anyOf": [{"type": "string"}, {**_TEXTS, "minItems": 1}]}),
    ] = Field(default=(), description="numbers in lines of output", examples=["loss=<loss>"])
    timeout_ns: PositiveDuration = Field(
        default=TIMEOUT_NS, alias="timeout", description="programs are killed after this", examples=["120s"]
    )
    verbs: Annotated[Verbs | bool, PlainValidator(_verbs), WithJsonSchema(_VERBS_SCHEMA)] = Field(
        default=False, description="the host's NIC for programs written for MRC or RDMA", examples=["libraries"]
    )
    memory_bytes: Size = Field(
        default=MEMORY_BYTES, alias="memory", description="private memory of each process", examples=["4GiB"]
    )

    @model_validator(mode="before")
    @classmethod
    def _one_form(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        if "command" in raw and "commands" in raw:
            raise refuse("has `command` and also `commands`; write one of them", key="commands")
        if "command" not in raw and "commands" not in raw:
            raise refuse("the key 'command' is missing; write for example `command: python3 train.py`")
        if "steps" in raw and "step" not in raw:
            raise refuse("needs `step`, the line that ends one, such as step: 'step (\\d+) done'", key="steps")
        if "begin" in raw and "step" not in raw:
            raise refuse("needs `step`, the line that ends one, such as step: 'step (\\d+) done'", key="begin")
        return raw

    @property
    def has_steps(self) -> bool:
        """Only if it says how to find them."""
        return bool(self.step)

    @property
    def step_count(self) -> int:
        """How many steps each program has to make; 0: unknown."""
        return self.steps or 0

    @property
    def warm_up_count(self) -> int:
        """None."""
        return 0

    @property
    def parts(self) -> tuple[StepAction, ...]:
        return ()

    def placed(self) -> Iterator[PlacedExchange]:
        yield from ()

    def host_names(self, shape: Shape) -> tuple[str, ...]:
        """The hosts that run one, by rank."""
        return tuple(host for host, _ in self.commands) or super().host_names(shape)

    def all_host_names(self, shape: Shape) -> tuple[str, ...]:
        """The hosts that programs reach: those of `hosts`, with a command or without."""
        named = self.commands and "hosts" not in self.model_fields_set
        return self.host_names(shape) if named else super().all_host_names(shape)

    def command_of(self, host: str) -> tuple[str, ...]:
        """What a host runs."""
        return dict(self.commands).get(host) or self.command or ()

    @property
    def all_commands(self) -> tuple[CommandLine, ...]:
        """Each command line once."""
        lines = (*((self.command,) if self.command else ()), *(command for _, command in self.commands))
        return tuple(dict.fromkeys(line for line in lines if isinstance(line, CommandLine)))

    @property
    def figures(self) -> Mapping[str, str]:
        """The pattern of each figure that it prints, by the figure's name."""
        return {name: pattern for pattern in self.metric for name in figures_of(pattern)}

    def job(self, shape: Shape, first_rank: int = 0) -> ProgramJob:
        """The job; `first_rank`: how many ranks the jobs before it have."""
        return ProgramJob(
            _numbers(self.host_names(shape)),
            max(1, self.step_count),
            (),
            first_rank=first_rank,
            timeout_ns=self.timeout_ns,
            network=_numbers(self.all_host_names(shape)),
            ring=ring_bytes(shape),
        )


def _numbers(names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(number for number in map(parse_host, names) if number is not None)
