"""Second implementations of what the judges compute, from the raw files of runs alone, without any code of theirs."""
