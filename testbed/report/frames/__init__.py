"""The files of a run as pandas frames: their columns (schema.py), reading them (read.py), a run of them (run.py)."""
