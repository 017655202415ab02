"""A run from its scenario to its verdict: phases, recording, the daemons and the machine's own figures."""
