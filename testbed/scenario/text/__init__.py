"""The text of a scenario: YAML with positions, units, and the types of its fields."""
