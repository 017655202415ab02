"""The live view of a run: its model, and its display on a terminal."""
