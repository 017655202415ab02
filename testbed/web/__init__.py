"""`run --web`: shows a run in browsers on this machine, from a separate process that cannot delay the run."""
