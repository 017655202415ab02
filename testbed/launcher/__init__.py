"""Programs of others: how each is started and ended, what it hears and says, and what it finds in its environment."""
