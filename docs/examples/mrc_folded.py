"""A transport: MRC over one plane that has the bandwidth of all. What do planes bring?

`transport: mrc-folded` in a scenario that has this file in `plugins`.
"""

from dataclasses import replace

from mrc_testbed.api import TRANSPORTS, FabricLayout

MRC = TRANSPORTS["mrc"]
MRC_FOLDED = replace(
    MRC,
    word="mrc-folded",
    layout=FabricLayout.FOLDED,
    called=lambda settings: "MRC, one plane",
    cost=replace(MRC.cost, of="mrc-folded"),
)
PLUGIN = {"transport": {"mrc-folded": MRC_FOLDED}}
