"""The files of a run folder: how they are written and read, what their columns are, and who writes or owns them."""
