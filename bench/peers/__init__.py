"""What people would use instead, and runq itself: each in an environment of its own, as its user has it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import platformdirs

from bench.measure import clean_environment

REPOSITORY = Path(__file__).parents[2]

PACKAGES = {
    "doit": ["doit"],
    "snakemake": ["snakemake"],
    "huey": ["huey"],
    "dbos": ["dbos"],
    "prefect": ["prefect"],
    "llm": ["llm"],
    "sqlite-utils": ["sqlite-utils"],
    "datasette": ["datasette"],
    "ruamel.yaml": ["ruamel.yaml"],
    "runq": ["--editable", str(REPOSITORY)],
}
"""What pip installs for each: the newest that it finds, and runq as it stands here.

The environment that runs the bench will not do for runq: the tools of its developers slow every start of its Python.
"""

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
    wanted = _wanted(peer)
    if not done.exists() or done.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"installing {peer} ...", file=sys.stderr)
        _run([sys.executable, "-m", "venv", str(folder)], peer)
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES[peer]], peer)
        done.write_text(wanted)
    return python


def _wanted(peer: str) -> str:
    """What an environment was made for; it is made anew for another Python, and when runq's own metadata change."""
    words = [sys.version, *PACKAGES[peer]]
    if peer == "runq":
        words.append(hashlib.sha256((REPOSITORY / "pyproject.toml").read_bytes()).hexdigest())
    return "\n".join(words)


def script_of(peer: str, name: str) -> Path:
    """A program that the peer's package installs; see `python_of`."""
    return python_of(peer).with_name(name)


def runq_program() -> Path:
    """runq's own program."""
    return script_of("runq", "runq")


def program_of(peer: str) -> Path:
    """A Debian peer's program; installed where this user may.

    Raises:
        MissingPeerError: it is not there and cannot be installed.
    """
    found = shutil.which(peer)
    if found is None and shutil.which("apt-get") is not None:
        print(f"installing {DEBIAN[peer]} ...", file=sys.stderr)
        argv = ["apt-get", "install", "--yes", "--no-install-recommends", DEBIAN[peer]]
        try:
            _run(argv, peer)
        except MissingPeerError:  # its lists may be old, or not there yet
            _run(["apt-get", "update"], peer)
            _run(argv, peer)
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
