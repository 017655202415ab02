"""Our families by their words."""

from __future__ import annotations

from collections.abc import Mapping

from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family

FAMILIES: Mapping[str, type[Family]] = {made.word: made for made in (Clos2, Clos3, Rail)}
