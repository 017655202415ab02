"""Windows of expectations, asked a second time: random schedules, and each documented sentence of each moment."""
