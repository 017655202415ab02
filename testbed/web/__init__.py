"""`run --web`: a run shown in browsers on this machine, by a process of its own that cannot hold the run up."""
