"""Stand-ins with answers told in advance: HTTP servers, servers with real worker processes, an `lms` program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

MODEL_SERVER = r'''
import json, subprocess, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

flavour, python, mode, size_mb = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
HOLD = """
import sys
data = bytearray(int(sys.argv[1]))
for at in range(0, len(data), 4096):
    data[at] = 1
print("ready", flush=True)
sys.stdin.readline()
del data
print("let go", flush=True)
sys.stdin.readline()
"""

def worker():
    name = "llama-server" if flavour == "ollama" else "node"
    held = subprocess.Popen([name, "-c", HOLD, str(size_mb << 20), "llmworker.js"] if flavour != "ollama"
                            else [name, "-c", HOLD, str(size_mb << 20)],
                            executable=python, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    held.stdout.readline()
    return held

state = {"listed": mode not in ("loading", "orphan", "idle"), "lists": 0}
state["worker"] = None if mode == "idle" else worker()

def unload():
    if mode == "lies" or not state["listed"]:
        return
    state["listed"] = False
    if mode in ("frees", "loading"):
        state["worker"].kill()
        state["worker"].wait()
    elif mode == "shrinks":
        state["worker"].stdin.write(b"\n")
        state["worker"].stdin.flush()
        state["worker"].stdout.readline()

def listing():
    state["lists"] += 1
    if mode == "loading" and state["lists"] == 6:
        state["listed"] = True
    size = size_mb << 20
    if flavour == "ollama":
        model = {"name": "qwen3:8b", "model": "qwen3:8b", "size": size, "size_vram": size,
                 "expires_at": "2126-12-01T02:20:00.123456789+01:00"}
        return {"models": [model] if state["listed"] else []}
    instances = [{"id": "qwen/qwen3-8b", "config": {"context_length": 8192}}] if state["listed"] else []
    return {"models": [{"type": "llm", "key": "qwen/qwen3-8b", "size_bytes": size, "loaded_instances": instances}]}

class Handler(BaseHTTPRequestHandler):
    def reply(self, data):
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.reply(listing())
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        unload()
        self.reply({"model": asked["model"], "done": True, "done_reason": "unload"} if flavour == "ollama"
                   else {"instance_id": asked["instance_id"]})
    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
'''


@attrs.frozen
class ModelServer:
    url: str
    pid: int


@pytest.fixture
def model_server(tmp_path: Path) -> Iterator[Callable[..., ModelServer]]:
    """Start a process named like Ollama's or LM Studio's server that holds memory in a real worker process.

    Modes: ``frees`` (the worker ends), ``shrinks`` (it lives but lets the memory go), ``keeps`` (the list empties,
    the worker stays), ``lies`` (says it unloaded, lists it still), ``loading`` (lists it from the 6th question on),
    ``orphan`` (lists nothing, a worker is there), ``idle`` (nothing at all).
    """
    started: list[subprocess.Popen[str]] = []
    script = tmp_path / "model_server.py"
    script.write_text(MODEL_SERVER)

    def start(flavour: str, mode: str, *, size_mb: int = 200, name: str = "") -> ModelServer:
        program = name or {"ollama": "ollama", "lms": "llmster"}[flavour]
        process = subprocess.Popen(
            [program, str(script), flavour, sys.executable, mode, str(size_mb)],
            executable=sys.executable,
            env={**os.environ, "PYTHONHOME": sys.base_prefix},
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        return ModelServer(url=f"http://127.0.0.1:{int(process.stdout.readline())}", pid=process.pid)

    yield start
    for process in started:
        os.killpg(process.pid, 9)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


LMS = r"""#!{python}
import json, pathlib, sys, time
place = pathlib.Path({place!r})
state = json.loads((place / "state.json").read_text())
words = sys.argv[1:]
with (place / "calls").open("a") as calls:
    calls.write(" ".join(words) + "\n")

def save():
    (place / "state.json").write_text(json.dumps(state))

if state.get("hang") and words[0] in state["hang"]:
    time.sleep(600)
if words == ["daemon", "status", "--json"]:
    print(state["daemon"] if isinstance(state["daemon"], str) else json.dumps(state["daemon"]))
elif words == ["ps", "--json"]:
    print(state["ps"] if isinstance(state.get("ps"), str) else json.dumps(state["models"]))
elif words[0] == "unload":
    if state.get("fails"):
        print("Error: cannot unload", file=sys.stderr)
        sys.exit(1)
    gone = [m for m in state["models"] if words[1] in ("--all", m["identifier"])]
    if not state.get("lies"):
        state["models"] = [m for m in state["models"] if m not in gone]
        save()
    print("Unloaded models." if gone else "No models to unload.", file=sys.stderr)
else:
    sys.exit("unexpected: " + " ".join(words))
"""


@attrs.frozen
class Lms:
    binary: Path
    place: Path

    def calls(self) -> list[str]:
        log = self.place / "calls"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def make_lms(tmp_path: Path) -> Callable[..., Lms]:
    """Write an executable `lms` whose state is given; it writes down how it was called."""

    def make(folder: Path | None = None, **state: Any) -> Lms:
        place = tmp_path / "lms-state"
        place.mkdir(exist_ok=True)
        (place / "state.json").write_text(json.dumps({"models": [], "daemon": {"status": "not-running"}, **state}))
        binary = (folder or tmp_path / "bin") / "lms"
        binary.parent.mkdir(parents=True, exist_ok=True)
        binary.write_text(LMS.replace("{python}", sys.executable).replace("{place!r}", repr(str(place))))
        binary.chmod(0o755)
        return Lms(binary=binary, place=place)

    return make
