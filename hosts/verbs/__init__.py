"""What a host's daemon does for programs that are written for MRC NICs: their memory, their QPs, their completions."""
