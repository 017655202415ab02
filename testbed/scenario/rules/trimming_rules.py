"""Rules about `trimming` and `endpoint.dscp`: sizes that leave too little or all, and values with two meanings."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.hosts.common.bth import ICRC_BYTES
from mrc_testbed.hosts.mrc.wire import DATA_HEADER_BYTES
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.switching.classes import least_trim_bytes

_SECTION = "trimming"


def trimming_mistakes(scenario: Scenario) -> Iterator[Mistake]:
    """Of a transport whose packets are trimmed; with another both groups do nothing, as all that is MRC's own."""
    if not scenario.transport.can_be_trimmed:
        return
    yield from _shared_marks(scenario)
    yield from _wrong_size(scenario)
    if not scenario.trimming.changed():
        return
    if scenario.fabric.switch.use == "plain":
        yield Mistake((_SECTION,), "plain shapers trim nothing; remove this key, or `fabric.switch`")
    elif scenario.world is WorldKind.KERNEL and not scenario.trimming.rewrite_length:
        why = "Linux drops IPv6 packets that are shorter than their length says, so none would cross a switch"
        yield Mistake((_SECTION, "rewrite_length"), f"{why}; run it with --virtual, or write `rewrite_length: true`")


def _shared_marks(scenario: Scenario) -> Iterator[Mistake]:
    of_hosts = scenario.endpoint.dscp.model_dump()
    for key in ("dscp", "dscp_last_hop"):
        value = getattr(scenario.trimming, key)
        shared = next((name for name, other in of_hosts.items() if other == value), None)
        if shared:
            what = f"{value} is `endpoint.dscp.{shared}`, so nobody could tell that such a packet was trimmed"
            yield Mistake((_SECTION, key), f"{what}; choose another value of the two")


def _wrong_size(scenario: Scenario) -> Iterator[Mistake]:
    size = scenario.trimming.size_bytes
    payload_bytes, header_bytes = scenario.transport.full_packet(scenario.endpoint.payload_bytes, scenario.own)
    least = least_trim_bytes(header_bytes - DATA_HEADER_BYTES - ICRC_BYTES)
    if size and size < least:
        cut = f"{size}B from Ethernet on would cut the PSN or the time stamp (they end at byte {least})"
        yield Mistake((_SECTION, "size"), f"{cut}, and a NACK needs both; write at least {-(-least // 4) * 4}B")
    elif size >= payload_bytes + header_bytes:
        whole = f"a full packet has {payload_bytes + header_bytes} bytes, so nothing would be trimmed"
        yield Mistake((_SECTION, "size"), f"{whole}; write less, such as 128B, or a larger `endpoint.payload`")
