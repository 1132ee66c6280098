"""A stand-in for a server of local models: Ollama, or LM Studio; a real process, and one real process per model.

    argv[0] model_host.py FLAVOUR MODE[+MODE] SIZE_MB [LOADED ...]

Started with ``argv[0]`` named as the real server is. Prints its port. A request for a model loads it: a child process
touches SIZE_MB. What it says of that is the truth in mode ``honest``; the other modes are documented misbehaviours:

    never       an unload is confirmed and nothing happens
    keeps       the list empties, the process and its memory stay
    hangs       the list is never answered
    error       the list is HTTP 200 with an error
    refuses     an unload is HTTP 200 with an error, and nothing happens
    garbage     the list is no JSON
    stopping    an unload only moves `expires_at` into the past ("Stopping...")
    late        what is loaded at the start is listed three seconds after the first question
    loading     what is loaded at the start is never listed
    no_rest     LM Studio without its REST interface: HTTP 200 and an error on every unknown path
    one         LM Studio that answers every name with its one model
    echo        the same, but the answer bears the name that was asked for

How a model answers depends on its name (see ``ANSWERS``). ``GET /_state`` tells the test what is really so.
"""

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FLAVOUR, MODES, SIZE_MB = sys.argv[1], sys.argv[2].split("+"), int(sys.argv[3])
PYTHON = os.environ["STAND_IN_PYTHON"]  # with this argv[0], sys.executable is wrong
ONE = "right/model-8b"
LATE_S = 3.0
UNKNOWN_PATH_STATUS = {"ollama": 404, "lms": 200}

HOLD = """
import sys
data = bytearray(int(sys.argv[1]) << 20)
for at in range(0, len(data), 4096):
    data[at] = 1
print("ready", flush=True)
sys.stdin.read()
"""


def message(content, *, finish="stop", usage=True, **more):
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **more}, "finish_reason": finish}
    reply = {"id": "x", "object": "chat.completion", "choices": [choice]}
    return {**reply, "usage": {"prompt_tokens": 9, "completion_tokens": 1}} if usage else reply


def stream(*events, done=False):
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return text + ("data: [DONE]\n\n" if done else "")


def piece(finish=None, **delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


ANSWERS = {
    "thinking": lambda: message("", finish="length", reasoning_content="Hmm, the user wants one word"),
    "thinking-ollama": lambda: message(None, finish="length", reasoning="Hmm"),
    "no-usage": lambda: message("ready", usage=False),
    "stream": lambda: stream(piece(role="assistant", content=""), piece("stop", content="ready")),
    "made-up": lambda: stream(
        piece(reasoning_content="━━━━━\nllama-swap loading model: made-up\n"),
        {"error": {"message": "upstream exited", "type": "server_error", "code": 502}},
    ),
    "only-made-up": lambda: stream(piece(reasoning_content="━━━━━\nllama-swap loading model\n")),
    "error-200": lambda: {"error": "insufficient system resources"},
    "empty": lambda: message(""),
}

lock = threading.Lock()
workers: dict[str, subprocess.Popen] = {}  # what is really there
listed: dict[str, float] = {}  # what the list says: model to the time from which it does
stopping: set[str] = set()
requests: list[dict] = []
first_question: float | None = None
born = time.monotonic()


def load(name: str, listed_from: float = 0.0) -> None:
    with lock:
        if name in workers and workers[name].poll() is None:
            listed.setdefault(name, 0.0)
            return
        words = ["llama-server"] if FLAVOUR == "ollama" else ["node"]
        mark = [] if FLAVOUR == "ollama" else ["llmworker.js"]
        child = subprocess.Popen(
            [*words, "-c", HOLD, str(SIZE_MB), *mark], executable=PYTHON, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        child.stdout.readline()
        workers[name] = child
        listed[name] = listed_from


def unload(name: str) -> None:
    with lock:
        if "never" in MODES or "refuses" in MODES or name not in listed or listed[name] > time.monotonic():
            return
        if "stopping" in MODES:
            stopping.add(name)
            return
        del listed[name]
        if "keeps" not in MODES:
            workers[name].kill()
            workers.pop(name).wait()


def shown() -> list[str]:
    return [name for name, since in listed.items() if since <= time.monotonic()]


def ollama_list():
    when = {True: "2020-12-01T02:20:00.123456789+01:00", False: "2126-12-01T02:20:00.123456789+01:00"}
    size = SIZE_MB << 20
    return {
        "models": [
            {"name": n, "model": n, "size": size, "size_vram": 0, "expires_at": when[n in stopping]}
            | {"context_length": 4096}
            for n in shown()
        ]
    }


def ollama_tags():
    """`GET /api/tags` (Ollama docs/api.md): a large and a small model, an embedding model, one that runs elsewhere."""
    offered = [
        ("qwen3:8b", 5225388164, "qwen3", "8.2B", "Q4_K_M"),
        ("gemma3:4b", 3338801804, "gemma3", "4.3B", "Q4_K_M"),
        ("nomic-embed-text:latest", 274302450, "nomic-bert", "137M", "F16"),
        ("gpt-oss:120b-cloud", 384, "gptoss", "116.8B", "MXFP4"),
    ]
    return {
        "models": [
            {"name": name, "model": name, "size": size, "digest": "500a1f067a9f"}
            | {"details": {"format": "gguf", "family": family, "parameter_size": of, "quantization_level": quant}}
            for name, size, family, of, quant in offered
        ]
    }


def lms_list():
    return {
        "models": [
            {"type": "llm", "key": n, "size_bytes": SIZE_MB << 20, "max_context_length": 40960, "format": "gguf"}
            | {"loaded_instances": [{"id": n, "config": {"context_length": 8192}}]}
            for n in shown()
        ]
    }


def lms_ps():
    return [
        {"type": "llm", "modelKey": n, "identifier": n, "sizeBytes": SIZE_MB << 20, "deviceIdentifier": None}
        | {"contextLength": 8192, "status": "idle"}
        for n in shown()
    ]


class Handler(BaseHTTPRequestHandler):
    def reply(self, data, status=200):
        body = (data if isinstance(data, str) else json.dumps(data)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def listing(self, data):
        global first_question
        if "late" in MODES and first_question is None:
            first_question = time.monotonic()
            for name in listed:
                listed[name] = first_question + LATE_S
        if "hangs" in MODES:
            time.sleep(600)
        if "garbage" in MODES:
            return self.reply("<html>It works!</html>")
        return self.reply({"error": "something went wrong"} if "error" in MODES else data())

    def chat(self, asked):
        name = asked["model"]
        if name == "nosuch":
            return self.reply({"error": {"message": f"model '{name}' not found", "type": "not_found_error"}}, 404)
        if name.startswith("ready-after-") and time.monotonic() - born < float(name.rpartition("-")[2]):
            return self.reply({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}, 503)
        if name == "slow":
            load(name)
            time.sleep(600)
        real = ONE if "one" in MODES or "echo" in MODES else name
        load(real)
        if name == "beside":
            load("someone-elses")
        answer = ANSWERS.get(name, lambda: message("ready"))()
        if isinstance(answer, dict) and "choices" in answer:
            answer["model"] = name if "echo" in MODES else real
        return self.reply(answer)

    def do_GET(self):
        self.note(None)
        if self.path == "/_state":
            alive = {name: child.pid for name, child in workers.items() if child.poll() is None}
            return self.reply({"workers": alive, "listed": shown(), "requests": requests})
        if self.path == "/_ps":
            return self.listing(lms_ps)
        if self.path == "/v1/models":
            offered = [ONE] if "one" in MODES or "echo" in MODES else ["qwen3:8b", "gemma3:4b", *shown()]
            return self.reply({"object": "list", "data": [{"id": name} for name in offered]})
        if FLAVOUR == "ollama" and self.path == "/api/tags":
            return self.reply(ollama_tags())
        if FLAVOUR == "ollama" and self.path == "/api/ps":
            return self.listing(ollama_list)
        if FLAVOUR == "lms" and self.path == "/api/v1/models" and "no_rest" not in MODES:
            return self.listing(lms_list)
        return self.unknown()

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.note(asked)
        if self.path == "/v1/chat/completions":
            return self.chat(asked)
        if self.path == "/_unload":
            for name in shown():
                unload(name)
            return self.reply({})
        if FLAVOUR == "ollama" and self.path == "/api/generate":
            unload(asked["model"])
            if "refuses" in MODES:
                return self.reply({"error": "something went wrong"})
            return self.reply({"model": asked["model"], "response": "", "done": True, "done_reason": "unload"})
        if FLAVOUR == "lms" and self.path == "/api/v1/models/unload" and "no_rest" not in MODES:
            if "refuses" in MODES:
                return self.unknown()
            unload(asked["instance_id"])
            return self.reply({"instance_id": asked["instance_id"]})
        return self.unknown()

    def unknown(self):
        text = {"error": f"Unexpected endpoint or method. ({self.command} {self.path})"}
        self.reply(text, UNKNOWN_PATH_STATUS[FLAVOUR])

    def note(self, asked):
        if not self.path.startswith("/_"):
            bearer = self.headers.get("Authorization")
            requests.append({"path": self.path, "method": self.command, "body": asked, "bearer": bearer})

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # a client that left
            super().handle_error(request, client_address)


for model in sys.argv[4:]:
    load(model, float("inf") if "late" in MODES or "loading" in MODES else 0.0)
server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
