"""What a scenario says of planes, in names of the folded fabric. Everything is drawn before it is folded, so the same
cables break in every layout."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mrc_testbed.testbed.scenario.faults.occurrence import LinkEnd, Occurrence, in_order
from mrc_testbed.testbed.scenario.text.denylist import Denial
from mrc_testbed.topos.fold import fold, fold_all
from mrc_testbed.topos.names import switch_name
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.units import rate_text


def folded_occurrences(occurrences: Iterable[Occurrence], planes: int) -> tuple[Occurrence, ...]:
    """The occurrences of one fault. Targets that fold to one are one; occurrences that become the same are one too.

    Others may overlap on a target, which then is broken until the last of them heals.
    """
    found = (replace(_folded(one, planes), number=0) for one in occurrences)
    return in_order(dict.fromkeys(found))


def _folded(one: Occurrence, planes: int) -> Occurrence:
    # A slow link keeps the share of its port: half of a port stays half of it.
    return replace(
        one,
        targets=fold_all(one.targets),
        links=fold_all(one.links),
        places=tuple(dict.fromkeys(LinkEnd(fold(place.link), place.toward) for place in one.places)),
        parameters=one.parameters.folded(planes),
    )


def folded_denials(denials: Iterable[Denial]) -> tuple[Denial, ...]:
    """A denylist whose paths are folded; entries that become the same are one."""
    return tuple(dict.fromkeys(denial.model_copy(update={"path": fold(denial.path)}) for denial in denials))


def folding_note(written: Shape) -> str:
    """`one plane with 4 x the rate (50 Mb/s a port); p3-t0-0 is p0-t0-0 here`."""
    last = switch_name(written.planes - 1, len(written.family.tiers) - 1, 0)
    rate = rate_text(written.planes * written.port_rate_bps)
    renamed = f"; {last} is {fold(last)} here" if fold(last) != last else ""
    return f"one plane with {written.planes} x the rate, {rate} a port{renamed}"
