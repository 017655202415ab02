"""What a run captured: rings as they were written, and the commented pcapng files that are made of them afterwards."""
