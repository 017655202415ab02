"""Runs side by side: which are repeats, how much the others differ, and whether that is more than chance."""
