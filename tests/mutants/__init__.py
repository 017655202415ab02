"""The judges are judged: one mistake at a time in them, and tests that must notice it. `make test-mutants` runs it."""
