"""What operators of switches and NICs call a thing, and what it is called here. docs/names.md is made of it.

Sources: SAI's statistics (saiport.h, saiqueue.h, saiswitch.h), SONiC's packet trimming and SRv6 designs, Cumulus Linux'
SRv6 counters, the counters of mlx5, NCCL's variables, RFC 9800.
"""

from __future__ import annotations

from typing import NamedTuple


class OperatorName(NamedTuple):
    """`theirs`: a name that operators know. `ours`: of a key, a column or a word of this project; empty: there is none.
    `where`: the view of `show`, or the file, that has it. `note`: what differs."""

    theirs: str
    ours: str
    where: str
    note: str = ""


GROUPS: dict[str, tuple[OperatorName, ...]] = {
    "Counters of switches": (
        OperatorName("SAI_PORT_STAT_TRIM_PACKETS", "out_trimmed", "show interfaces counters trim"),
        OperatorName(
            "SAI_PORT_STAT_TX_TRIM_PACKETS",
            "out_trimmed less its share of queue_drops_high",
            "show interfaces counters trim",
            "N/A where the high queue has dropped: trimmed and control packets are not counted separately there",
        ),
        OperatorName(
            "SAI_PORT_STAT_DROPPED_TRIM_PACKETS",
            "its share of queue_drops_high",
            "show interfaces counters trim",
            "as above",
        ),
        OperatorName("SAI_QUEUE_STAT_TRIM_PACKETS", "out_trimmed", "show queue counters trim", "of UC3"),
        OperatorName("SAI_SWITCH_STAT_TX_TRIM_PACKETS", "the sum over ports", "show switch counters"),
        OperatorName("SAI_SWITCH_STAT_DROPPED_TRIM_PACKETS", "the sum over ports", "show switch counters"),
        OperatorName("SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", "out_marked + out_other_marked", "show queue counters"),
        OperatorName(
            "SAI_QUEUE_STAT_DROPPED_PACKETS",
            "out_dropped + out_other_dropped + queue_drops_data; queue_drops_high",
            "show queue counters",
            "of UC3; of UC6",
        ),
        OperatorName(
            "SAI_QUEUE_STAT_WATERMARK_BYTES",
            "most_queued_bytes",
            "show queue watermark",
            "the longest queue that a packet met, of both classes together",
        ),
        OperatorName("SAI_COUNTER_STAT_PACKETS of a MySID", "sids.<node>.<sid>.packets", "show srv6 stats"),
        OperatorName("total no-sid-dropped", "no_sid.<switch>", "show srv6 stats"),
        OperatorName(
            "SAI_PORT_STAT_PFC_3_TX_PKTS, PFC pause duration", "pauses, paused_ns", "counters.json", "RoCE alone"
        ),
    ),
    "Things": (
        OperatorName("leaf, ToR", "T0", "", ""),
        OperatorName("spine, aggregation", "T1; T2 above it", "", "a rail switch is a T0"),
        OperatorName("rail, plane", "plane; rail", "", "a plane is a network; a rail is a NIC's number in its node"),
        OperatorName("uN", "End with NEXT-C-SID", "show srv6 static-sids", "RFC 9800"),
        OperatorName("uDT6", "End.DT6", "ip -6 route of a host", ""),
        OperatorName("UC3, UC6", "the queue of data; of what goes before them", "show queue counters", "our choice"),
    ),
    "Endpoints": (
        OperatorName("local_ack_timeout_err", "timeouts", "counters.json", "mlx5"),
        OperatorName("duplicate_request", "duplicates", "counters.json", "mlx5"),
        OperatorName("roce_adp_retrans", "retransmitted", "counters.json", "mlx5"),
        OperatorName("NCCL_MRC_TIMEOUT", "endpoint.timeout", "scenario"),
        OperatorName(
            "RETRY_CNT_LINEAR, RETRY_CNT_EXP", "endpoint.linear_tries, endpoint.exponential_tries", "scenario"
        ),
        OperatorName("PSN_WIN_SIZE", "endpoint.mpr x 128", "scenario"),
        OperatorName("BusBW", "goodput / ranks", "compare"),
        OperatorName("JCT", "the sum of the steps", "completions.csv"),
    ),
}
"""By heading."""
