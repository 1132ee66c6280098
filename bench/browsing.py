"""`runq browse` as a process, for as long as a measurement lasts."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import clean_environment
from bench.peers import runq_program


@contextmanager
def serving(journal: Path) -> Iterator[str]:
    """The URL of a `runq browse` over the journal; the process ends with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [str(runq_program()), "browse", "--runs", str(journal.parent), "--port", str(port)]
    process = subprocess.Popen(
        argv, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    url = f"http://127.0.0.1:{port}/"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(url, timeout=60).read()
                break
            except (urllib.error.URLError, ConnectionError):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(
                        f"runq browse did not start: {process.stderr.read().decode() if process.stderr else ''}"
                    ) from None
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(30)
