"""Breaking things and mending them again: the schedule is pure data, the injector acts on the target system."""
