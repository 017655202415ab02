"""The terms of the field and of this testbed, defined once: docs/glossary.md and the tooltips of all pages. Pure.

`python -m mrc_testbed.testbed.pages.glossary > docs/glossary.md` writes the page.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from mrc_testbed.testbed.terminal import say

WIDTH = 120
_INTRO = (
    "One entry per term: what the field means by it, then what it is in this testbed. The same first sentences are the "
    "tooltips of report.html, the live page, texts of lessons, the comparison and the plan. This file is generated "
    "from `testbed/pages/glossary.py` by `python -m mrc_testbed.testbed.pages.glossary > docs/glossary.md`; edit the "
    "definitions there."
)


class Term(NamedTuple):
    """`short`: one plain sentence without markup, the tooltip. `more`: further Markdown for docs/glossary.md.
    `link`: the page, with its anchor, that explains the term."""

    name: str
    short: str
    more: str = ""
    link: str = ""


SECTIONS: dict[str, tuple[Term, ...]] = {
    "Fabric": (
        Term(
            "plane",
            "One of several independent networks that together carry a host's traffic; a host has one port in each.",
            "Planes share no switch and no link. A scenario sets their number with `fabric.planes` (4 by default).",
            "scenario.md#fabric",
        ),
        Term(
            "T0",
            "Tier-0 switch (leaf, top of rack): the switch that hosts connect to.",
            "Each plane has one T0 per group of hosts, named `p0-t0-1` (plane 0, group 1).",
            "scenario.md#fabric",
        ),
        Term(
            "T1",
            "Tier-1 switch: connects the T0 switches of one plane, or of one pod where there are three tiers.",
            "Named `p0-t1-3` (plane 0, T1 number 3). Over two tiers every T0 has one uplink to every T1 of its plane; "
            "over three, to every T1 of its pod.",
            "scenario.md#fabric",
        ),
        Term(
            "T2",
            "Tier-2 switch (core): connects the pods of one plane, where a fabric has three tiers.",
            "Named `p0-t2-3` (plane 0, T2 number 3). A packet to another pod crosses T0, T1, T2, T1, T0.",
            "scenario.md#fabric",
        ),
        Term(
            "pod",
            "T0 and T1 switches of one plane that are linked to each other, and to other pods by T2 switches alone.",
            "Hosts of a pod have the same T1s; their packets to each other never go higher.",
            "scenario.md#fabric",
        ),
        Term(
            "rail",
            "One NIC of every node, all on the same switch: NIC number x of each node is on rail x.",
            "With `family: rail` a host is a NIC, and its T0 is the rail switch: `h5` of nodes with 4 NICs is number 1 "
            "of node 1. Rails are joined by a spine.",
            "scenario.md#fabric",
        ),
        Term(
            "spine",
            "The switches of the highest tier: they connect those that hosts are on.",
            "Of two tiers these are the T1s, also between rails.",
            "scenario.md#fabric",
        ),
        Term(
            "oversubscription",
            "How much more bandwidth a switch has towards hosts than away from them; 2:1 is twice as much.",
            "`mrc-testbed topo show` tells it. At 2:1, flows that all leave their switch share half of their ports' "
            "rate.",
            "scenario.md#fabric",
        ),
        Term(
            "uplink",
            "A switch's link to one of the next tier; over two tiers its number is the number of that T1.",
            "Plane and uplink together identify a path between two hosts on different T0s. Over three tiers the same "
            "number is that of the path's way among all ways of its pair.",
            "protocol.md#paths",
        ),
        Term(
            "link",
            "The cable between two ports, named after both ends with the end nearer to the hosts first.",
            "A veth pair here: `h3:p0-t0-0` is a NIC link, `p0-t0-1:p0-t1-3` a T0-T1 link.",
            "scenario.md#fabric",
        ),
        Term(
            "port",
            "NIC port: a host's interface into one plane.",
            "`port0` of a host leads to plane 0. The endpoint keeps a state for it: UP, DOWN, or RISING (carrier is "
            "back, but no probe has been answered yet).",
            "protocol.md#ports",
        ),
        Term(
            "carrier",
            "The link signal of a port: an interface without carrier can neither send nor receive.",
            "The endpoint learns of lost carrier from the kernel (rtnetlink) and leaves the plane at once.",
            "protocol.md#ports",
        ),
        Term(
            "SRv6",
            "Segment Routing over IPv6: the sender writes a packet's path into its IPv6 header.",
            "Switches forward by static tables; there is no routing protocol and no ECMP.",
            "protocol.md#paths",
        ),
        Term(
            "PFC",
            "Priority flow control: a port whose switch holds too much of what came in by it pauses its link.",
            "Nothing is dropped, and what has no part in the congestion waits too. In virtual time only: "
            "`roce.buffers: pfc`, metrics `pauses` and `paused`.",
            "baselines.md#pfc-in-virtual-time",
        ),
        Term(
            "DCQCN",
            "Congestion control of RoCE: the receiver of marked packets has the sender's rate cut, and it climbs back.",
            "`roce.congestion_control`; thousands of T pass until rates are steady.",
            "baselines.md#roce-like-reliable-connection",
        ),
        Term(
            "BGP",
            "Border Gateway Protocol: switches tell each other what they reach, over a session on each link.",
            "With `routing: bgp` the daemons of FRR do it; a session ends with the carrier, or when its hold timer "
            "does.",
            "routing.md",
        ),
        Term(
            "BFD",
            "Bidirectional Forwarding Detection: two neighbours send each other small packets all the time.",
            "When some in a row do not come, BGP is told that the neighbour is gone: `bgp.bfd`.",
            "routing.md",
        ),
        Term(
            "uSID",
            "Micro-segment: a 16-bit hop identifier; several of them fit into one IPv6 destination address.",
            "Each switch shifts the address by one uSID and forwards by the next one (End with NEXT-C-SID). The kernel "
            "does this.",
            "wireshark.md",
        ),
        Term(
            "SRH",
            "Segment Routing Header: the IPv6 extension header that carries a list of segments.",
            "Packets here have none: the whole path fits into the outer destination address.",
            "wireshark.md",
        ),
        Term(
            "encap.red",
            "Reduced SRv6 encapsulation: an outer IPv6 header whose destination is the first segment, without an SRH "
            "if that is the only one.",
            "How the kernel of a host encapsulates every packet; each path is one such route.",
            "decisions/0002-set-up-as-batch-text.md",
        ),
        Term(
            "port program",
            "The eBPF program at a switch port that marks, trims and drops packets.",
            "A machine that cannot run it gets plain shapers, which only drop at the tail; the summary says which.",
            "switch.md",
        ),
        Term(
            "virtual queue",
            "A computed backlog: what would be waiting at a port if it sent at exactly its configured rate.",
            "The port program decides by it, because a tc program cannot see the queue behind it.",
            "switch.md#the-virtual-queue",
        ),
        Term(
            "delay line",
            "A buffer in each endpoint that holds a packet until it would have arrived on a wire without credit.",
            "Also makes T where the kernel has no `netem`.",
            "switch.md#a-wire-without-credit",
        ),
        Term(
            "read-back",
            "Comparing the kernel's state with the plan after it was written.",
            "Done after the build, after every heal and at the end, by a second reader (`ip -j`, `tc`). A difference "
            "makes the run inconclusive.",
            "scenario.md#faults-on-the-same-thing",
        ),
    ),
    "Paths": (
        Term(
            "EV",
            "Entropy value: the number in a packet that selects its path, hence also the path itself.",
            "32 bits: plane, uplink and UDP source port. An EV belongs to one sender and one peer.",
            "protocol.md#paths",
        ),
        Term(
            "EV state",
            "GOOD, SKIP, ASSUMED_BAD or DENIED: whether a sender may put data on this path.",
            "Every change is an `ev_state` event of the run.",
            "protocol.md#paths",
        ),
        Term("GOOD", "State of an EV that carries data.", "", "protocol.md#paths"),
        Term(
            "SKIP",
            "State of an EV that met congestion and is passed over for a short time.",
            "Caused by an ECN mark or by a trim before the last hop. It becomes GOOD again as the rotation passes it.",
            "protocol.md#paths",
        ),
        Term(
            "ASSUMED_BAD",
            "State of an EV that lost a packet without explanation: it carries probes, no data.",
            "Shown as *bad* or *retired*. One such loss is enough. MRC texts also call it failed.",
            "protocol.md#paths",
        ),
        Term(
            "DENIED",
            "State of an EV that a controller has forbidden: neither data nor probes.",
            "Set by `endpoint.denylist` or a `deny` fault.",
            "scenario.md#denied-paths",
        ),
        Term(
            "denylist",
            "The paths that endpoints must not use.",
            "`endpoint.denylist` holds them for the whole run, a `deny` fault for a time.",
            "scenario.md#denied-paths",
        ),
        Term(
            "active EVs",
            "The EVs of a peer that take turns in carrying data; all others are backups.",
            "At most `endpoint.ev_active`. A retired EV is replaced by a backup of the same plane.",
            "protocol.md#paths",
        ),
        Term(
            "retire",
            "To take an EV out of use after an unexplained loss: from GOOD or SKIP to ASSUMED_BAD.",
            "Counted by the metric `evs_retired`.",
            "scenario.md#expectations",
        ),
        Term(
            "restore",
            "To take a retired EV back into use after its probes were answered.",
            "Counted by the metric `evs_restored`. Those still bad at the end are `unrestored_evs`.",
            "scenario.md#expectations",
        ),
        Term(
            "probe",
            "A small packet that asks whether a path works.",
            "An EV probe asks about one EV: three answers in a row restore it. A reliability probe asks what has "
            "arrived on a QP.",
            "protocol.md#loss-and-recovery",
        ),
    ),
    "Transport": (
        Term(
            "MRC",
            "Multipath Reliable Connection: RoCEv2 RC reduced to RDMA writes and spread over many paths (OCP 1.0).",
            "",
            "protocol.md#what-changes-against-rocev2-rc",
        ),
        Term(
            "QP",
            "Queue pair: the two ends of one RDMA connection between two hosts.",
            "A QP that fails goes to ERROR and stays there for the rest of a run. The check `qp_errors` counts these.",
            "protocol.md#a-qp",
        ),
        Term(
            "PSN",
            "Packet sequence number: numbers the data packets of a QP in one direction (24 bits).",
            "A retransmission keeps its PSN and takes another EV.",
            "protocol.md#loss-and-recovery",
        ),
        Term(
            "SACK",
            "Selective acknowledgement: tells the sender which packets have arrived, including those out of order.",
            "It also carries the EV and the mark of the packet that triggered it.",
            "protocol.md#loss-and-recovery",
        ),
        Term(
            "cack",
            "Cumulative acknowledgement: the highest PSN up to which everything has arrived.",
            "The field `cack_psn` of every SACK.",
            "protocol.md#loss-and-recovery",
        ),
        Term(
            "NACK",
            "Negative acknowledgement: asks for one packet again, at once.",
            "Sent for a packet that arrived trimmed, or outside the range that the receiver tracks.",
            "protocol.md#loss-and-recovery",
        ),
        Term(
            "MPR",
            "Maximum PSN range: how far a sender may run ahead of the last packet acknowledged in order.",
            "In units of 128 PSNs; 8 here, hence 1024 packets.",
            "protocol.md#a-qp",
        ),
        Term(
            "retransmission",
            "A data packet that is sent again.",
            "It takes another EV than the one that lost it.",
            "protocol.md#loss-and-recovery",
        ),
        Term(
            "timeout",
            "The retransmission timer of a QP ran out: nothing was heard for too long.",
            "At least 4 T and 10 ms. Losses should be found earlier, by SACK or probe.",
            "protocol.md#loss-and-recovery",
        ),
        Term(
            "PSU",
            "Port status update: a host tells its peers which of its NIC ports are down.",
            "Sent over every healthy plane until it is answered. SACKs carry the same mask.",
            "protocol.md#ports",
        ),
        Term(
            "RTT",
            "Round-trip time.",
            "The unit `rtt` of expectations is the base RTT: the smallest one measured on idle paths in warm-up.",
            "scenario.md#expectations",
        ),
        Term(
            "T",
            "The round trip that the fabric is designed for; timers and queue levels are multiples of it.",
            "Set by `fabric.rtt` and made by `netem` or a delay line. 20 or 40 ms here, about 10 µs in a real cluster.",
            "scaled.md",
        ),
    ),
    "Congestion": (
        Term(
            "ECN mark",
            "Explicit congestion notification: a switch sets CE in a packet's IP header when its queue grows.",
            "The receiver reports it in a SACK; the sender rests that EV and adjusts its window.",
            "switch.md#the-virtual-queue",
        ),
        Term(
            "trim",
            "To cut a packet's payload off at a full queue and forward its headers ahead of data, instead of dropping.",
            "The receiver answers with a NACK, so the sender learns of the loss within a round trip.",
            "switch.md#the-virtual-queue",
        ),
        Term(
            "last-hop trim",
            "A trim at the port from a T0 to a host: the receiver is overloaded, not the path.",
            "It does not put the EV to SKIP.",
            "switch.md#classes",
        ),
        Term(
            "NSCC",
            "Network-signalled congestion control: a window in bytes, driven by ECN marks and delay (Ultra Ethernet).",
            "The default of `endpoint.congestion_control`; `fixed` is the alternative.",
            "protocol.md#congestion-control",
        ),
        Term(
            "plane-BDP",
            "Bandwidth-delay product of one plane: T times the port rate.",
            "The unit of the queue levels in `fabric.switch`.",
            "switch.md#the-virtual-queue",
        ),
        Term(
            "incast",
            "Several hosts send to one at the same time, more than its ports can take.",
            "",
            "scenario.md#flows",
        ),
        Term(
            "queue drop",
            "A packet that was dropped because the queue of a switch port was full.",
            "Losses caused by a fault are not among them.",
            "scenario.md#expectations",
        ),
    ),
    "Faults": (
        Term(
            "fault",
            "Something that the scenario breaks at a given time and repairs later.",
            "",
            "scenario.md#faults",
        ),
        Term(
            "occurrence",
            "One injection of a fault and its heal; a flap has several.",
            "Called *cycle* in scenarios and in the files of a run, and numbered from 0 there.",
            "scenario.md#definitions",
        ),
        Term(
            "target",
            "The link, switch, plane or path that a fault acts on.",
            "A name, a pattern, a class, or a random draw from one of these.",
            "scenario.md#targets",
        ),
        Term(
            "heal",
            "To undo one occurrence of a fault.",
            "The kernel is read back afterwards.",
            "scenario.md#faults-on-the-same-thing",
        ),
        Term(
            "claim",
            "A fault's hold on a port, a switch or a link rate that other faults may hold as well.",
            "A port comes up again when its last claim is released; of several rates the lowest holds.",
            "scenario.md#faults-on-the-same-thing",
        ),
        Term(
            "chaos",
            "Faults of given kinds at random times and places, at a given average rate.",
            "Drawn from the seed before the run, so the same seed gives the same faults.",
            "scenario.md#chaos",
        ),
        Term(
            "grey failure",
            "A switch or link that loses packets while its ports stay up.",
            "The fault `switch-silent`; no port status tells anybody.",
            "scenario.md#faults",
        ),
        Term(
            "slow plane",
            "A plane that carries less than the others and is not dead; half-broken is worse than broken.",
            "MRC loads planes equally, so it slows all flows; `deny` takes it out, `weighted-planes` loads it less.",
            "protocol.md#one-slow-plane-slows-all",
        ),
    ),
    "Jobs": (
        Term(
            "job",
            "Hosts that work on one training together: each of its steps waits for all of them.",
            "An entry `train` of the workload, or any other collective in steps; a run may have several.",
            "scenario.md#workload",
        ),
        Term(
            "training step",
            "One round of a training job: each host computes, then all exchange what they found by a collective.",
            "It ends when the slowest transfer has arrived; the next one cannot begin before.",
            "scenario.md#workload",
        ),
        Term(
            "all-reduce",
            "A collective after which every host has the sum of what all had.",
            "In a ring of n hosts each sends 2 (n - 1) pieces of an n-th to its neighbour, one after the other.",
            "scenario.md#workload",
        ),
    ),
    "Figures": (
        Term(
            "step time",
            "How long one step of the training job takes, until the slowest rank has finished it.",
            "Counted from the end of the step before. The metric is `step_time`.",
            "scenario.md#definitions",
        ),
        Term(
            "goodput",
            "Payload delivered per second, without headers and retransmissions.",
            "Bytes of finished steps by the time of these steps; of flows, bytes delivered.",
            "scenario.md#expectations",
        ),
        Term(
            "fair share",
            "A flow's measured rate divided by the rate that max-min fairness would give it; 1 is exactly fair.",
            "",
            "scenario.md#definitions",
        ),
        Term(
            "clean",
            "The part of a run that no fault touched.",
            "The yardstick of relative bounds such as `1.5 x clean.median`.",
            "scenario.md#definitions",
        ),
        Term(
            "P50",
            "The median: half of the values are at most this.",
            "For an even number of values, the mean of the middle two.",
            "scenario.md#definitions",
        ),
        Term(
            "P99",
            "The value that 99 % of all values do not exceed.",
            "By nearest rank: a value that occurred.",
            "scenario.md#definitions",
        ),
        Term("P100", "The largest value that occurred.", "", "scenario.md#definitions"),
        Term(
            "recovery",
            "Time from the first packet lost on a broken path until the sender retired that path.",
            "Measured for each EV, from the injection if that was later.",
            "scenario.md#definitions",
        ),
        Term(
            "exposure",
            "Time from the injection of a fault until the last data packet was sent into the broken path.",
            "",
            "scenario.md#definitions",
        ),
        Term(
            "first loss",
            "Time from the injection until the first packet was sent whose loss retired an EV.",
            "",
            "results.md#recoveryjson",
        ),
        Term(
            "last sent",
            "Time from the injection until the last data packet was sent on a path that the fault broke.",
            "",
            "results.md#recoveryjson",
        ),
        Term(
            "goodput back",
            "Time from the injection until goodput was back after its last fall below 95 % of its clean median.",
            "",
            "scenario.md#definitions",
        ),
        Term(
            "stall",
            "A time in which a QP had data to deliver and delivered none, longer than two round trips and 20 ms.",
            "All transports have it, so it compares how long each of them stalls. The metric is `stall`.",
            "scenario.md#expectations",
        ),
        Term(
            "wasted",
            "Bytes sent over bytes delivered, less 1: what was sent again or in vain.",
            "A go-back-N sender sends everything after a gap again. The metric is `wasted`.",
            "scenario.md#expectations",
        ),
        Term(
            "uplink share",
            "What an uplink carried over the mean of the uplinks of its T0; 1 everywhere is a perfect spread.",
            "Flows that were hashed onto one uplink make it larger there and smaller elsewhere.",
            "scenario.md#expectations",
        ),
        Term(
            "dropped",
            "Data packets that the fabric dropped because of this fault, counted where it happened.",
            "Control packets are counted apart.",
            "results.md#the-summary",
        ),
        Term(
            "taken for lost",
            "Data packets that their senders took for lost and sent again, for whatever reason.",
            "Trimmed packets and some that only came late are among them.",
            "scenario.md#expectations",
        ),
        Term(
            "lost per QP",
            "The largest number of packets that a single QP took for lost in the window of this fault.",
            "",
            "results.md#recoveryjson",
        ),
        Term(
            "peers told",
            "Hosts that learned of a dead NIC port from its owner, by a port status update or a SACK.",
            "",
            "results.md#recoveryjson",
        ),
        Term(
            "back after heal",
            "Time from the heal until all retired paths were in use again.",
            "",
            "results.md#recoveryjson",
        ),
        Term(
            "margin",
            "How far an observed value is inside its bound, as a share of the bound; negative means outside.",
            "",
            "results.md#verdictjson",
        ),
    ),
    "Runs and verdicts": (
        Term(
            "measured",
            "A run that is not judged, because it is there to be compared with: it neither passes nor fails.",
            "Its checks are shown, and decide nothing.",
            "scenario.md#verdict",
        ),
        Term(
            "died",
            "The job of a measured run ended early, because a QP failed.",
            "Its figures end there, and it stays in every comparison.",
            "scenario.md#verdict",
        ),
        Term(
            "n/a",
            "Not applicable: the transport of the run has no such figure, so the check decides nothing.",
            "",
            "scenario.md#verdict",
        ),
        Term(
            "expectation",
            "A line of the scenario that must hold: a metric, an operator and a bound.",
            "",
            "scenario.md#expectations",
        ),
        Term(
            "scope",
            "Whose values a metric counts: all hosts, one host, a pair, or the flows of an entry.",
            "The part of an expectation that begins with `of`.",
            "scenario.md#expectations",
        ),
        Term(
            "window",
            "The part of the run that a metric looks at, such as clean, during a fault, or after its heal.",
            "",
            "scenario.md#expectations",
        ),
        Term(
            "fidelity",
            "Whether the machine itself kept up with the run; each figure has a limit.",
            "Timer lateness, waiting for a CPU, drops by the kernel, rates of ports, unexplained packets, packets "
            "nobody sent, anything faster than the wire.",
            "results.md#fidelityjson",
        ),
        Term(
            "kept time",
            "Every fidelity figure stayed within its limit, so the results can be trusted.",
            "Otherwise the verdict is inconclusive.",
            "results.md#fidelityjson",
        ),
        Term(
            "inconclusive",
            "The run says nothing about the transport: the machine was too slow, or data are missing.",
            "Neither a pass nor a fail.",
            "scenario.md#verdict",
        ),
        Term(
            "seed",
            "The number that decides every random choice of a run.",
            "The same seed gives the same targets, times, EVs and data. When a packet meets a dying link stays chance.",
            "compare.md#two-runs-of-one-seed",
        ),
        Term(
            "event",
            "Something that an endpoint saw or the runner did, with its time.",
            "Endpoints' events are in `events.jsonl`, the runner's in `history.jsonl`.",
            "results.md#eventsjsonl",
        ),
        Term(
            "timeline",
            "The state of one path or port over the whole run.",
            "A row of the chart *Paths* in report.html.",
            "results.md#reporthtml",
        ),
        Term(
            "warm-up",
            "What happens before measuring begins: paths are probed, and first steps run without being counted.",
            "It yields the base RTT.",
            "scenario.md#training",
        ),
    ),
}
TERMS: dict[str, Term] = {term.name: term for terms in SECTIONS.values() for term in terms}


def definition(name: str) -> str:
    """The tooltip of a term. Raises KeyError for one that is not defined."""
    return TERMS[name].short


def markdown() -> str:
    """docs/glossary.md."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Glossary"
    yield ""
    yield from _wrapped(_INTRO)
    for title, terms in SECTIONS.items():
        yield ""
        yield f"## {title}"
        for term in terms:
            yield ""
            yield f"### {term.name}"
            yield ""
            link = f"See [{_place(term.link)}]({term.link})." if term.link else ""
            yield from _wrapped(" ".join(part for part in (term.short, term.more, link) if part))


def _place(link: str) -> str:
    """What a link is called: the file, and its section in words."""
    page, _, anchor = link.partition("#")
    name = page.removeprefix("../")
    return f"{name}, {anchor.replace('-', ' ')}" if anchor else name


def _wrapped(text: str) -> list[str]:
    """Lines of text; a link is never broken."""
    kept = text
    for link in {term.link for term in TERMS.values()}:
        label = _place(link)
        kept = kept.replace(f"[{label}]", f"[{label.replace(' ', chr(0))}]")
    lines = textwrap.wrap(kept, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


if __name__ == "__main__":
    say(markdown(), end="")
