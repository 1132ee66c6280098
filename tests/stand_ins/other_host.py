"""A stand-in for llama-swap, KoboldCpp, vLLM or TabbyAPI: a real process that holds memory, or has a child that does.

    argv[0] other_host.py FLAVOUR MODE SIZE_MB PORT MODEL...

Started with ``argv[0]`` named as the real server is. Serves what that server documents. In mode ``honest`` it does what
it says; the others are misbehaviours:

    never       an unload is confirmed and nothing happens
    escapes     llama-swap's upstream serves from a child of its own, which outlives the stop (llama-swap#804)
    stuck       llama-swap's upstream stays `stopping`
    keeps       the list empties, the memory stays
    no_sleep    vLLM without its sleep mode: 404
    refuses     an unload is answered with an error
    dies        KoboldCpp does not come back

``GET /_state`` tells the test what is really so.
"""

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FLAVOUR, MODE, SIZE_MB, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
PYTHON = os.environ["STAND_IN_PYTHON"]
RESTART_S = 1.5

HOLD = """
import os, sys
if sys.argv[2] == "escapes" and os.fork():  # what serves is a grandchild, which the stop of its parent does not reach
    os.wait()
data = bytearray(int(sys.argv[1]) << 20)
for at in range(0, len(data), 4096):
    data[at] = 1
print(os.getpid(), flush=True)
while sys.stdin.read() or sys.argv[2] == "escapes":
    __import__("time").sleep(60)
"""


def held() -> bytearray:
    data = bytearray(SIZE_MB << 20)
    for at in range(0, len(data), 4096):
        data[at] = 1
    return data


state = {"models": list(sys.argv[5:]), "asleep": False, "stopping": [], "requests": []}
children: dict[str, subprocess.Popen] = {}
pids: dict[str, int] = {}
memory: list[bytearray] = []
lock = threading.Lock()


def load(name):
    with lock:
        if name in children:
            return
        child = subprocess.Popen(
            ["llama-server", "-c", HOLD, str(SIZE_MB), MODE],
            executable=PYTHON,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        pids[name] = int(child.stdout.readline())
        children[name] = child
        if name not in state["models"]:
            state["models"].append(name)


def unload():
    if MODE in ("never", "refuses"):
        return
    if FLAVOUR == "llama-swap":
        if MODE == "stuck":
            state["stopping"] = list(state["models"])
            return
        for name in list(children):
            child = children.pop(name)
            if MODE != "keeps":
                child.kill()
                child.wait()
    elif MODE != "keeps":
        memory.clear()
    state["models"].clear()


class Handler(BaseHTTPRequestHandler):
    def reply(self, data, status=200):
        body = b"" if data is None else (data if isinstance(data, str) else json.dumps(data)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        models = state["models"]
        if self.path == "/_state":
            return self.reply({**state, "pids": pids})
        answers = {
            ("llama-swap", "/running"): lambda: {
                "running": [
                    {"model": name, "state": "stopping" if name in state["stopping"] else "ready", "ttl": 300}
                    | {"cmd": "llama-server --port 5801 -m q.gguf -c 4096", "proxy": "http://localhost:5801"}
                    for name in models
                ]
            },
            ("koboldcpp", "/api/v1/model"): lambda: {"result": f"koboldcpp/{models[0]}" if models else "inactive"},
            ("koboldcpp", "/api/extra/true_max_context_length"): lambda: {"value": 16384},
            ("vllm", "/v1/models"): lambda: {"data": [{"id": name, "max_model_len": 32768} for name in sys.argv[5:]]},
        }
        if FLAVOUR == "vllm" and self.path == "/is_sleeping" and MODE != "no_sleep":
            return self.reply({"is_sleeping": state["asleep"]})
        if FLAVOUR == "tabby" and self.path in ("/v1/model", "/v1/model/embedding"):
            wanted = [name for name in models if name.startswith("embed") == self.path.endswith("embedding")]
            if not wanted:
                return self.reply({"detail": "No models are currently loaded."}, 503)
            return self.reply({"id": wanted[0], "object": "model", "parameters": {"max_seq_len": 8192}})
        answer = answers.get((FLAVOUR, self.path))
        return self.reply(answer()) if answer else self.reply({"detail": "Not Found"}, 404)

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = json.loads(raw) if raw else None
        key = self.headers.get("Authorization") or self.headers.get("X-Admin-Key")
        state["requests"].append({"path": self.path, "body": asked, "key": key})
        if self.path == "/v1/chat/completions":
            load(asked["model"])
            message = {"role": "assistant", "content": "ready"}
            return self.reply({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        if FLAVOUR == "llama-swap" and self.path == "/api/models/unload":
            unload()
            return self.reply({"msg": "ok"})
        if FLAVOUR == "koboldcpp" and self.path == "/api/admin/reload_config" and asked == {"filename": "unload_model"}:
            self.reply({"success": MODE != "refuses"})
            if MODE not in ("never", "refuses"):
                threading.Timer(0.2, os._exit, [7]).start()
            return None
        if FLAVOUR == "vllm" and self.path.startswith("/sleep?level=") and MODE != "no_sleep":
            state["asleep"] = MODE != "never"
            return self.reply(None)
        if FLAVOUR == "vllm" and self.path.startswith(("/wake_up", "/collective_rpc")):
            if self.path in ("/wake_up", "/wake_up?tags=kv_cache"):
                state["asleep"] = False
            return self.reply(None)
        if FLAVOUR == "tabby" and self.path.endswith("/unload"):
            if MODE == "refuses":
                return self.reply({"detail": "internal error"}, 500)
            embedding = "embedding" in self.path
            if MODE != "never":
                state["models"] = [name for name in state["models"] if name.startswith("embed") != embedding]
            return self.reply("null")
        return self.reply({"detail": "Not Found"}, 404)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


def serve():
    if FLAVOUR == "llama-swap":
        for name in list(state["models"]):
            load(name)
    elif state["models"]:
        memory.append(held())
    server = Server(("127.0.0.1", PORT), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def supervise():
    """KoboldCpp: the process that serves is ended with its model, and another one begins without."""
    models = sys.argv[5:]
    port = PORT
    while True:
        argv = [sys.argv[0], FLAVOUR, MODE, str(SIZE_MB), str(port), *models]
        served = subprocess.Popen(
            ["koboldcpp", *argv], executable=PYTHON, env={**os.environ, "SERVES": "1"}, stdout=subprocess.PIPE
        )
        port = int(served.stdout.readline())
        print(port, flush=True)
        served.wait()
        if MODE == "dies":
            time.sleep(600)
        time.sleep(RESTART_S)
        models = models if MODE == "keeps" else []


if FLAVOUR == "koboldcpp" and "SERVES" not in os.environ:
    supervise()
else:
    serve()
