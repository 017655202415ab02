"""What the commands do: one run or many from beginning to end, and everything that is made of finished runs."""
