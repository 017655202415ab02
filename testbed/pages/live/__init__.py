"""The live view in a browser: its template, styles and scripts. `mrc_testbed.testbed.web` serves it and sends it
events."""
