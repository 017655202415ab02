"""The run in progress: its phases, its daemons, faults by hand, and how well the machine keeps time."""
