"""A plan for people: `table`, `drawing` (terminal) and `svg`."""

from mrc_testbed.topos.render_drawing import drawing
from mrc_testbed.topos.render_svg import svg
from mrc_testbed.topos.render_table import table

__all__ = ["drawing", "svg", "table"]
