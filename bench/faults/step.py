"""The step of a campaign: does what its first argument says, and keeps a ledger beside the journal.

    python -I -S step.py BEHAVIOUR NAME BUNDLE

The ledger (`ledger.jsonl` in the current directory) is the only witness that does not depend on runq: a line when the
step starts and one when it has done its work. A lock that the step and whatever it forks hold says whether anything of
an earlier step is still there. It imports as little as it can: a campaign starts thousands.
"""
# ruff: noqa: PTH123, PTH105

import fcntl
import os
import signal
import sys
import time

FOREVER_S = 600


def note(what: str, **more: object) -> None:
    """One line, one write: two processes never mix theirs."""
    import json

    line = json.dumps({"what": what, "mark": os.environ.get("RUNQ_STEP", ""), "pid": os.getpid(), **more})
    ledger = os.open("ledger.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(ledger, line.encode() + b"\n")
    os.close(ledger)


def alone() -> bool:
    """Take the lock that only one step may hold. Whatever is forked from here holds it too."""
    lock = os.open("machine.lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(lock, True)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def orphan(*, deaf: bool = False) -> None:
    """Leave a process behind that has no wish to end."""
    if os.fork() == 0:
        os.setsid()
        if deaf:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        time.sleep(FOREVER_S)
        os._exit(0)


def main(behaviour: str, name: str, bundle: str) -> None:
    attempt = int(os.environ["RUNQ_STEP"].rsplit("/", 1)[1])
    note("start", alone=alone())
    sys.stdout.write(f"{name} begins, key {os.environ.get('FAULTS_API_KEY')}\n")
    sys.stdout.flush()
    kind, _, number = behaviour.partition(":")
    if kind == "good":
        time.sleep(float(number or 0))
    elif kind == "forks":
        orphan()
    elif kind == "deaf_child":
        orphan(deaf=True)
    elif kind == "noisy":
        sys.stdout.write("\x1b]0;owned\x07\x1b[31m\udce9".encode("utf-8", "surrogateescape").decode("latin-1"))
        sys.stdout.flush()
        os.write(2, b"\xff\x00" + b"x" * 300_000 + b"\n")
    elif kind == "flaky":
        if attempt <= int(number):
            sys.exit(5)
    elif kind == "fails":
        sys.exit(f"cannot go on, key {os.environ.get('FAULTS_API_KEY')}")
    elif kind == "dies":
        os.kill(os.getpid(), int(number))
        time.sleep(FOREVER_S)
    elif kind == "lies":
        sys.exit(0)
    elif kind == "hangs":
        time.sleep(FOREVER_S)
    elif kind == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(FOREVER_S)
    elif kind == "no_space":
        with open("/dev/full", "wb", buffering=0) as stream:
            stream.write(b"x")
    part = f"{bundle}/{name}.part"
    with open(part, "w") as stream:
        stream.write(f"{name}\n")
    os.replace(part, f"{bundle}/{name}.txt")
    note("end")


main(*sys.argv[1:])
