"""Captures of a run: ring files, converted afterwards to commented pcapng files."""
