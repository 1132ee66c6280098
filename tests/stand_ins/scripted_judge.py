"""A judge whose verdicts are known beforehand: an OpenAI-compatible chat endpoint that counts what it is asked.

An answer gets 1 plus its number of letters modulo 5; a quality gets the score that its name is told. It demands its
key, and hangs at the question it is told to.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs

KEY = "a-judges-secret-key"
RED = "It breaks off"


def score_of(answer: str) -> int:
    """What the judge gives an answer."""
    return 1 + sum(character.isalpha() for character in answer) % 5


@attrs.define
class Judge:
    """The running judge: its URL and what it was asked."""

    url: str
    qualities: Mapping[str, int]
    prompts: list[str] = attrs.field(factory=list)
    refused: int = 0
    hang_at: int = 0
    ending: threading.Event = attrs.field(factory=threading.Event)

    def reply(self, prompt: str) -> str:
        if "\nQuality: " in prompt:
            name = prompt.partition("\nQuality: ")[2].partition("\n")[0]
            return json.dumps({"score": self.qualities[name], "why": f"because of {name}"})
        answer = prompt.partition("\nAnswer:\n")[2]
        red = [RED] if not answer.strip().endswith((".", "!", "?")) and f"- {RED}" in prompt else []
        text = json.dumps({"score": score_of(answer), "green_flags": [], "red_flags": red, "why": "counted"})
        return f"My verdict:\n```json\n{text}\n```"


@contextmanager
def judge(**qualities: int) -> Iterator[Judge]:
    """A judge on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers["Authorization"] != f"Bearer {KEY}":
                made.refused += 1
                return self.answer(401, {"error": {"message": "wrong key"}})
            prompt = body["messages"][-1]["content"]
            text = prompt if isinstance(prompt, str) else "".join(part["text"] for part in prompt)
            made.prompts.append(text)
            if len(made.prompts) == made.hang_at:
                made.ending.wait(300)
                return None
            message = {"role": "assistant", "content": made.reply(text)}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return self.answer(
                200,
                {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice],
                 "usage": usage},
            )  # fmt: skip

        def answer(self, status: int, data: object) -> None:
            payload = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Judge(url=f"http://127.0.0.1:{server.server_port}/v1", qualities=qualities)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.ending.set()
        server.shutdown()
        server.server_close()
