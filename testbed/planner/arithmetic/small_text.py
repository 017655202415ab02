"""The scenario file of a plan made small: the ratios at its head, then a fabric, a job and its flaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from textwrap import wrap

from mrc_testbed.testbed.planner.arithmetic.ratios import Ratio, ratios_of
from mrc_testbed.testbed.planner.arithmetic.small import ALLREDUCE_MIB, COMPUTE_MS, FALL_T, SmallFabric
from mrc_testbed.topos.families.clos2 import Clos2

_WIDTH = 118
_RECOVERY = "warning: recovery.p100 <= 8 rtt"


def scenario_text(small: SmallFabric, command: str, file: str) -> str:
    """YAML, with the ratios that it keeps and those that it does not as comments. `command`: what made it."""
    shape, flaps = small.shape, f"{small.flaps_a_minute:.4f}".rstrip("0").rstrip(".")
    nics, planes = small.plan.clos.nics, small.plan.clos.planes
    body = f"""
name: plan-{nics}
about: A job of {small.plan.job:,} GPUs on a fabric for {nics:,} in {planes} plane{"s" * (planes > 1)}, made small.
seed: 1

fabric: {{planes: {shape.planes}, {_family(small)}, \
port_rate: {_rate(shape.port_rate_bps)}, rtt: {shape.rtt_ns / 1e6:g}ms}}

endpoint: {{ev_active: {shape.planes * small.evs}}}

# About {small.step_s:.3g} s a step when nothing breaks.
workload:
  - train: {{hosts: [{", ".join(small.job)}], steps: {small.steps}, compute: {COMPUTE_MS}ms, \
allreduce: {ALLREDUCE_MIB}MiB}}

# A link is down for {FALL_T} T: long enough to be noticed. How long real ones are down is not in a plan.
faults:
  - at: {small.flaps_at_s:.3f}s
    for: {small.flap_steps * small.step_s:.3f}s
    name: flaps
    chaos: {{link-down: {{times: {flaps}/min, for: {small.fall_s * 1000:g}ms}}}}

expect:
  - qp_errors == 0
  - bytes_wrong == 0
  - data_on_bad_ev == 0
  - {_RECOVERY} # not known if no flap met an EV in use
"""
    return "\n".join(_head(small, command, file)) + "\n" + body


def _family(small: SmallFabric) -> str:
    """Its keys, without those that have their usual values."""
    family = small.family
    keys = ", ".join(f"{each.name}: {getattr(family, each.name)}" for each in fields(family) if each.default is MISSING)
    return keys if isinstance(family, Clos2) else f"family: {{{family.word}: {{{keys}}}}}"


def _rate(bps: int) -> str:
    return f"{bps / 1e6:g}mbit" if bps >= 1e6 else f"{bps / 1e3:g}kbit"


def _head(small: SmallFabric, command: str, file: str) -> Iterator[str]:
    ratios = list(ratios_of(small))
    yield from _comment(f"A planned network, made small so that two cores carry it, by `{command}`.", "# ")
    yield "#"
    yield f"#     mrc-testbed run {_one_line(file)}"
    yield "#"
    yield "# Kept, in the plan and here:"
    yield from _lines(ratio for ratio in ratios if ratio.kept)
    yield "# Not kept:"
    yield from _lines(ratio for ratio in ratios if not ratio.kept)


def _lines(ratios: Iterable[Ratio]) -> Iterator[str]:
    for ratio in ratios:
        plan = _number(ratio.plan, ratio.unit, ratio.of_plan)
        here = _number(ratio.here, ratio.unit, ratio.of_here)
        why = "" if ratio.kept else f"; {ratio.why}"
        yield from _comment(f"{ratio.what}: {plan} in the plan, {here} here{why}", "# - ")


def _number(value: float, unit: str, made_of: str) -> str:
    said = f"{value:,.0f}" if value == int(value) else f"{value:.3g}"
    return f"{said} {unit}".rstrip() + (f" ({made_of})" if made_of else "")


def _one_line(text: str) -> str:
    """Names of files may hold what ends a line of YAML, and a comment with it."""
    return "".join(each if each.isprintable() else "?" for each in text)


def _comment(text: str, first: str) -> list[str]:
    further = "#" + " " * (len(first) - 1)
    return wrap(
        _one_line(text),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
