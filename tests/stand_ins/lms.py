"""A stand-in for LM Studio's `lms`: it writes down how it was called, and asks the daemon of the test.

Its folder holds ``daemon.json`` ({"pid", "url"}; absent when LM Studio does not run) and ``hang`` (the commands that
never end, one a line). As the real one does, everything but `daemon status` starts LM Studio: here a mark in ``woken``.
"""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

place, words = Path(__file__).parent, sys.argv[1:]
with (place / "calls").open("a") as calls:
    calls.write(" ".join(words) + "\n")
hanging = (place / "hang").read_text().split() if (place / "hang").exists() else []
if words[0] in hanging:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])  # and what it started hangs too
    time.sleep(600)
daemon = json.loads((place / "daemon.json").read_text()) if (place / "daemon.json").exists() else None
if words == ["daemon", "status", "--json"]:
    running = {"status": "running", "pid": daemon["pid"], "isDaemon": True} if daemon else {"status": "not-running"}
    print(json.dumps(running))
    sys.exit()
if daemon is None:
    (place / "woken").touch()
    print("Waking up LM Studio service...", file=sys.stderr)
    sys.exit(1)


def ask(path, data=None):
    request = urllib.request.Request(daemon["url"] + path, data)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as reply:
        return reply.read().decode()


if words == ["ps", "--json"]:
    print(ask("/_ps"))
elif words == ["unload", "--all"]:
    ask("/_unload", b"{}")
    print("Unloaded models.", file=sys.stderr)
else:
    sys.exit(f"unexpected: {words}")
