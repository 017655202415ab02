"""Injecting and healing faults: the schedule is pure data, the injector acts on the target system."""
