"""What all pages share that people see in a browser: one look, one way to make a self-contained file."""
