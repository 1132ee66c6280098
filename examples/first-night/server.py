"""llama.cpp's own HTTP server for one model, until SIGTERM. Started and ended by runq's `server` backend."""

import argparse
import os
import signal
import sys

from download_model import model_path
from xllamacpp import CommonParams, Server

MODELS = {"smollm2-135m": model_path}  # the ids the queue file may name; add your own .gguf here

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model", required=True, help="a model id of the queue file")
parser.add_argument("--port", required=True, type=int)
options = parser.parse_args()
if options.model not in MODELS:
    sys.exit(f"error: unknown model {options.model!r}; server.py knows: {', '.join(MODELS)}")
weights = MODELS[options.model]()
if not weights.is_file():
    sys.exit(f"error: {weights} is missing. Run: python download_model.py")

params = CommonParams()
params.model.path = str(weights)
params.model_alias = {options.model}  # the name that /v1/models and the answers bear
params.hostnames = ["127.0.0.1"]
params.port = options.port
params.n_ctx = 2048
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = min(2, os.cpu_count() or 1)
server = Server(params)  # returns when the model is loaded and the port answers
print(f"serving {options.model} at {server.listening_address}", flush=True)
try:
    while True:
        signal.pause()  # SIGTERM ends the process: Python leaves that signal as it is
except KeyboardInterrupt:
    sys.exit(130)
