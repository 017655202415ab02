"""The fabric of a scenario for a lab: containerlab with switches of Linux, FRR or SONiC."""
