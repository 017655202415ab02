"""A central controller as a program: JSON lines in, one line out for each.

`controller: {after: 50ms, command: python3 controller.py}`. A link that has been down twice is not used again: one that
flaps is worse than none.
"""

import json
import sys

falls = {}
for text in sys.stdin:
    line = json.loads(text)  # event, t_s, down, up; the first one has hosts, switches and links, too
    deny, allow = list(line["down"]), []
    for link in line["down"]:
        falls[link] = falls.get(link, 0) + 1
    for link in line["up"]:
        if falls[link] < 2:
            allow.append(link)
    print(json.dumps({"deny": deny, "allow": allow}), flush=True)
