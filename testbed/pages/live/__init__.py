"""The live view in a browser: its template, styles and scripts. `testbed.web` serves it and sends it events."""
