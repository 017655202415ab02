"""Runs side by side: which are alike, by how much the others differ and whether that is more than chance."""
