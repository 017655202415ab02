"""The run in progress: phases, daemons, interactive faults, and machine fidelity."""
