"""`mrc-testbed hunt`: schedules of faults under which an expectation fails, and the smallest of each."""
