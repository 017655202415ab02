"""The files of a run folder: reading, writing, columns, and ownership."""
