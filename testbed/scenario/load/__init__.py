"""From a file to a `Scenario`, or to all its mistakes in plain words."""
