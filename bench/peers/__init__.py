"""What people would use instead, each in an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import platformdirs

from bench.measure import clean_environment

VERSIONS = {
    "doit": ["doit"],
    "snakemake": ["snakemake"],
    "huey": ["huey"],
    "dbos": ["dbos"],
    "prefect": ["prefect"],
    "llm": ["llm"],
    "sqlite-utils": ["sqlite-utils"],
}
"""PyPI packages of each peer; the newest that installs, its version stands in the table."""

DEBIAN = {"tsp": "task-spooler", "nq": "nq", "parallel": "parallel"}
"""Program: its Debian package."""


class MissingPeerError(Exception):
    """A peer could not be installed here; it is named in the table and left out."""


def python_of(peer: str) -> Path:
    """The interpreter of an environment that has the peer from PyPI, made once and kept in the user's cache.

    Raises:
        MissingPeerError: it does not install.
    """
    folder = platformdirs.user_cache_path("runq") / "bench-peers" / peer
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        print(f"installing {peer} ...", file=sys.stderr)
        _run([sys.executable, "-m", "venv", str(folder)], peer)
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *VERSIONS[peer]], peer)
        done.touch()
    return python


def program_of(peer: str) -> Path:
    """A Debian peer's program; installed where this user may.

    Raises:
        MissingPeerError: it is not there and cannot be installed.
    """
    found = shutil.which(peer)
    if found is None and shutil.which("apt-get") is not None:
        print(f"installing {DEBIAN[peer]} ...", file=sys.stderr)
        _run(["apt-get", "install", "--yes", "--no-install-recommends", DEBIAN[peer]], peer)
        found = shutil.which(peer)
    if found is None:
        raise MissingPeerError(f"{peer} is not installed (Debian: {DEBIAN[peer]})")
    return Path(found)


def version_of(peer: str) -> str:
    """The installed version of a PyPI peer."""
    code = f"import importlib.metadata as m; print(m.version({peer!r}))"
    return subprocess.run([str(python_of(peer)), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _run(argv: list[str], peer: str) -> None:
    done = subprocess.run(argv, env=clean_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MissingPeerError(f"{peer} does not install here: {done.stderr.strip().splitlines()[-1:] or done.stdout}")
