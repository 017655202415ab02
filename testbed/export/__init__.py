"""Runs as other tools read them: one timeline of spans (`timeline.py`), as a file for Perfetto or as OTLP."""
