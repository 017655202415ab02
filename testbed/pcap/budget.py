"""About what captures cost at most: CPU time and bytes, with all ports at line rate. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mrc_testbed.testbed.scenario.model.captures import LinkCapture
from mrc_testbed.testbed.switching.ring import CAPTURED_PER_DATA, stored_bytes
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.units import count_text

CAPTURE_S = 2e-6
"""CPU time of one packet captured on one link: 1.7 us measured (benchmarks/capture.py), plus a margin."""
LARGE_SHARE = 0.05
"""Share of all CPUs from which on captures may affect the run."""


def capture_warnings(captures: Iterable[LinkCapture], shape: Shape, cpus: int) -> Iterator[str]:
    """Warnings about this machine's load by captures, for people."""
    captures = list(captures)
    captured_pps = len(captures) * _link_pps(shape)
    share = captured_pps * CAPTURE_S / cpus
    if share > LARGE_SHARE:
        what = f"{len(captures)} links captured at line rate are {count_text(captured_pps)} packets/s"
        yield f"{what}, about {share:.0%} of this machine's CPUs; fewer links or a lower port_rate would cost less"


def most_written(capture: LinkCapture, shape: Shape) -> int:
    """About the maximum size of a link's capture during the run, in bytes; `most_bytes` is never exceeded."""
    a_packet = stored_bytes(min(capture.snap_bytes, shape.wire_bytes))
    return min(capture.most_bytes, int(capture.seconds * _link_pps(shape) * a_packet))


def _link_pps(shape: Shape) -> float:
    """Packets per second in both directions."""
    return CAPTURED_PER_DATA * 2 * shape.port_pps
