"""The kinds of plugins: their taken names, and checks of an object against its Protocol."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

from pydantic import ValidationError

from mrc_testbed.hosts.common.errors import PluginError
from mrc_testbed.hosts.common.prng import Prng
from mrc_testbed.hosts.mrc.cc import ALGORITHMS
from mrc_testbed.hosts.mrc.cc.base import CongestionControl
from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.evselect import SELECTIONS, EvSet
from mrc_testbed.hosts.mrc.evselect.base import EvSelection
from mrc_testbed.hosts.mrc.plugins import CONTROL_METHODS, SELECTION_METHODS, Choices, Plugins
from mrc_testbed.hosts.mrc.timing import Timing
from mrc_testbed.hosts.plugins import with_keys
from mrc_testbed.hosts.protocols import PROTOCOLS
from mrc_testbed.testbed.expect import METRICS, Metric
from mrc_testbed.testbed.expect.reserved import NAME_PATTERN
from mrc_testbed.testbed.scenario.faults import Fault, entry_models
from mrc_testbed.testbed.scenario.faults.registry import wrong_kind
from mrc_testbed.testbed.scenario.model.endpoint import EndpointSettings
from mrc_testbed.testbed.scenario.model.families import examples_of, family_choice, wrong_keys_of
from mrc_testbed.testbed.scenario.model.step_models import Sized, StepPart
from mrc_testbed.testbed.scenario.model.workloads import WORKLOAD_KINDS
from mrc_testbed.testbed.transports.base import Transport
from mrc_testbed.testbed.transports.registry import TRANSPORTS
from mrc_testbed.testbed.workloads.collective import Collective
from mrc_testbed.topos.families.registry import FAMILIES
from mrc_testbed.topos.graph import Family, ShapeError
from mrc_testbed.topos.shape import PAYLOAD_BYTES

WORD_PATTERN = "[a-z][a-z0-9_]{0,62}"
FAULT_METHODS = {
    "inject": ("system", "occurrence"),
    "heal": ("system", "occurrence"),
    "unplanned": ("occurrence", "plan"),
}
"""Of a fault kind, which testbed/faults calls; `FaultKind` there has them."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`noun`: for people. `taken`: built-in names. `wrong_object(name, object)`: why an object is not of this kind, or
    nothing. `words`: names are written with underscores instead of hyphens."""

    noun: str
    taken: Iterable[str]
    wrong_object: Callable[[str, Any], str]
    words: bool = False

    def wrong_name(self, name: Any) -> str:
        """Why a plugin cannot have this name, or nothing."""
        pattern, joined = (WORD_PATTERN, "underscores") if self.words else (NAME_PATTERN, "hyphens")
        if not isinstance(name, str) or not re.fullmatch(pattern, name):
            return f"must have a name of lower-case letters, digits and {joined}"
        return "has the name of a built-in one; choose another" if name in self.taken else ""


def _wrong_control(name: str, made: Any) -> str:
    wrong = _wrong_class(made, CongestionControl, CONTROL_METHODS)
    if wrong:
        return wrong
    wrong = _wrong_choice_keys(name, made)
    if wrong:
        return wrong
    choices = Choices(Plugins(congestion_control={name: with_keys(made, {})}))
    return _refused(lambda: choices.make_control(name, Timing(_config())).begin())


def _wrong_selection(name: str, made: Any) -> str:
    wrong = _wrong_class(made, EvSelection, SELECTION_METHODS)
    if wrong:
        return wrong
    wrong = _wrong_choice_keys(name, made)
    if wrong:
        return wrong
    config = _config()
    evs = EvSet(config, Timing(config), Prng(1), lambda path, step, trigger: False)
    choices = Choices(Plugins(ev_selection={name: with_keys(made, {})}))
    return _refused(lambda: choices.make_selection(name, evs))


def _config() -> EndpointConfig:
    return EndpointConfig(host=0, planes=2, udp_port=0xC000, rtt_ns=20_000_000, port_rate_bps=25_000_000)


def _refused(make: Callable[[], object]) -> str:
    """The core's objection to an object made as on a host."""
    try:
        make()
    except PluginError as error:
        return error.mistake
    return ""


def _wrong_class(made: Any, protocol: type, methods: Sequence[str]) -> str:
    if not isinstance(made, type):
        return "must be a class"
    missing = [method for method in methods if not callable(getattr(made, method, None))]
    if missing:
        return f"lacks {', '.join(f'{method}()' for method in missing)}"
    for method in methods:
        wanted = [*inspect.signature(getattr(protocol, method)).parameters]
        if not _takes(getattr(made, method), len(wanted)):
            return f"has a {method}() that cannot be called with {', '.join(wanted)}"
    return ""


def _takes(method: Callable[..., Any], arguments: int) -> bool:
    try:
        inspect.signature(method).bind(*range(arguments))
    except TypeError:
        return False
    return True


def _wrong_workload(_name: str, made: Any) -> str:
    if not isinstance(made, type) or not issubclass(made, Collective):
        return "must be a class that inherits from mrc_testbed.testbed.workloads.collective.Collective"
    missing = sorted(made.__abstractmethods__)
    if missing:
        return f"lacks {', '.join(missing)}"
    return _wrong_keys(made, {*Sized.model_fields, "size", "message", "over", "hosts", "iterations", "warm_up"})


def _wrong_keys(made: Any, taken: Container[str] = ()) -> str:
    """Why the `Keys` of a class, if it has some, cannot be keys of a scenario."""
    if getattr(made, "Keys", None) is None:
        return ""
    if not isinstance(made.Keys, type) or not is_dataclass(made.Keys):
        return "has a Keys class that is not a dataclass"
    if any(one.default is MISSING and one.default_factory is MISSING for one in fields(made.Keys)):
        return "has Keys without defaults"
    made.Keys()
    twice = sorted(one.name for one in fields(made.Keys) if one.name in taken)
    return f"has a key {twice[0]!r} that every collective has" if twice else ""


def _wrong_choice_keys(name: str, made: Any) -> str:
    """Of a choice of the endpoints: its keys are in `endpoint` below its name, and reach the hosts as JSON."""
    wrong = _wrong_keys(made)
    if wrong or getattr(made, "Keys", None) is None:
        return wrong
    known = (field.alias or key for key, field in EndpointSettings.model_fields.items())
    if name in known:
        return "has keys, and the name of a key of `endpoint`; choose another"
    usual = made.Keys()
    other = [
        one.name for one in fields(made.Keys) if not isinstance(getattr(usual, one.name), bool | int | float | str)
    ]
    return f"has a key {other[0]!r} whose default is no number, text or truth value" if other else ""


def _wrong_metric(name: str, made: Any) -> str:
    if not isinstance(made, Metric):
        return "must be an mrc_testbed.testbed.expect.Metric"
    if made.name != name:
        return f"is called {made.name!r} by its Metric"
    if not callable(made.compute):
        return "" if made.counter else "lacks compute=FUNCTION"
    return "" if _takes(made.compute, 2) else "has a compute that cannot be called with record, window"


def _wrong_fault(name: str, made: Any) -> str:
    if not isinstance(made, type) or not issubclass(made, Fault):
        return "must be a class that inherits from mrc_testbed.testbed.scenario.faults.Lasting or Fault"
    wrong = wrong_kind(made)
    if wrong:
        return wrong
    if made.kind != name:
        return f"is called {made.kind!r} by its class"
    for method, arguments in FAULT_METHODS.items():
        if not callable(getattr(made, method, None)):
            return f"lacks {method}()"
        # An action has no object: the class itself is it.
        if not _takes(getattr(made, method), len(arguments)):
            return f"has a {method}() that cannot be called with {', '.join(arguments)}; make it a static method"
    return ""


GROUPS = ("endpoint", "roce", "tcp")
"""Keys of a scenario that may be the settings of a transport."""


def _wrong_transport(name: str, made: Any) -> str:
    if not isinstance(made, Transport):
        return "must be a mrc_testbed.api.Transport"
    if made.word != name:
        return f"is called {made.word!r} by its Transport"
    if made.group not in GROUPS:
        return f"has the settings {made.group!r}; there are {', '.join(GROUPS)}"
    if not made.routings:
        return "has no routing"
    if not made.endpoint and made.protocol not in PROTOCOLS:
        return f"has the protocol {made.protocol!r}; write one of {', '.join(PROTOCOLS)}, or the name of its `endpoint`"
    payload_bytes, header_bytes = made.full_packet(PAYLOAD_BYTES, made.settings())
    return "" if payload_bytes > 0 < header_bytes else "has packets without data or without headers"


def _wrong_family(name: str, made: Any) -> str:
    if not isinstance(made, type) or not issubclass(made, Family):
        return "must be a class that inherits from mrc_testbed.api.Family"
    if missing := sorted(made.__abstractmethods__):
        return f"lacks {', '.join(missing)}"
    if getattr(made, "word", None) != name:
        return f"is called {getattr(made, 'word', None)!r} by its class"
    if not is_dataclass(made) or not made.__dataclass_params__.frozen:
        return "must be a frozen dataclass: write @dataclass(frozen=True)"
    return wrong_keys_of(made) or _refused_plane(name, made)


def _refused_plane(name: str, made: type[Family]) -> str:
    """What is wrong with the plane that the examples of its keys make."""
    try:
        family_choice({name: made}).model_validate({name: examples_of(made)}).topology()
    except ShapeError as error:
        return f"with the examples of its keys: {error}"
    except ValidationError as error:
        key = ".".join(map(str, error.errors()[0]["loc"][1:]))
        return f"has an example that is none of its key {key!r}: {error.errors()[0]['msg']}"
    return ""


KINDS: Mapping[str, Kind] = {
    "congestion_control": Kind("congestion control", ALGORITHMS, _wrong_control),
    "ev_selection": Kind("EV selection", SELECTIONS, _wrong_selection),
    "workload": Kind("workload", {*WORKLOAD_KINDS, *StepPart.kinds()}, _wrong_workload),
    "fault": Kind("fault kind", entry_models(), _wrong_fault),
    "metric": Kind("metric", METRICS, _wrong_metric, words=True),
    "transport": Kind("transport", TRANSPORTS, _wrong_transport),
    "family": Kind("family", FAMILIES, _wrong_family),
}
"""By key of `PLUGIN`."""
