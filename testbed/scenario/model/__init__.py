"""What a scenario is: the typed, frozen `Scenario` and its parts."""
