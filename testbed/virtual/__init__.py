"""The world in virtual time: a network that is computed instead of built, and what drives it."""
