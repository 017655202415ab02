"""report.html: a run folder as one page. `data.py` says what is in it, `write.py` makes the file."""
