"""The shipped lessons, each solved, failed and read as a student would."""
