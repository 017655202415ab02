"""Planned fabrics as tables of a terminal and as JSON."""
