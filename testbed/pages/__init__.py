"""What people see in a browser: the page of a run, of a comparison and of the live view, and what these pages share."""
