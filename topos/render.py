"""A plan for people: `table`, `drawing` (terminal) and `svg`."""

from topos.render_drawing import drawing
from topos.render_svg import svg
from topos.render_table import table

__all__ = ["drawing", "svg", "table"]
