"""The kernel's own word on ports, in a network namespace that dies with the process that made it."""

import subprocess
import sys

SCRIPT = """
import select, subprocess, sys
from mrc_testbed.hosts.carrier import Carrier

def ip(*words):
    subprocess.run(["ip", "link", *words], check=True)

for n in "01":
    ip("add", "port" + n, "type", "veth", "peer", "name", "far" + n)
    ip("set", "port" + n, "up")
ip("set", "far0", "up")
watch = Carrier(4)
print(watch.changes())
for step in (("set", "far1", "up"), ("set", "far0", "down"), ("set", "port1", "down"), ("del", "port0")):
    ip(*step)
    select.select([watch], [], [], 1)
    print(watch.changes())
"""


def test_carrier_is_followed_from_the_first_state_on():
    command = ["unshare", "--net", sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    # Taking a port away that is down already is no news.
    assert done.stdout.split("\n")[:-1] == ["[(1, False)]", "[(1, True)]", "[(0, False)]", "[(1, False)]", "[]"]
