"""A stand-in for a server of one model that stays up when it no longer answers.

    deaf_host.py FOLDER [PORT]

``FOLDER/mood`` says what it does with a chat request: ``well`` answers with one token, ``deaf`` accepts and never
answers, ``broken`` is HTTP 500, ``strict`` HTTP 401. Its health is always good. Writes its port to ``FOLDER/port``, and
each request's ``max_tokens`` to ``FOLDER/asked``.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER = Path(sys.argv[1])


class Host(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with (FOLDER / "asked").open("a") as file:
            file.write(f"{body['max_tokens']}\n")
        mood = (FOLDER / "mood").read_text().strip()
        if mood == "deaf":
            time.sleep(600)
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "length"}
        status = {"broken": 500, "strict": 401}.get(mood, 200)
        error = {"error": "CUDA error" if status == 500 else "no key"}
        reply = error if status != 200 else {"model": body["model"], "choices": [choice]}
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Host)
server.daemon_threads = True
(FOLDER / "port.part").write_text(str(server.server_address[1]))
(FOLDER / "port.part").rename(FOLDER / "port")
server.serve_forever()
