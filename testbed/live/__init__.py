"""What can be watched while a run lasts: a model of it, and how a terminal shows it."""
