"""From a fresh clone to a finished night in one command:  python3 examples/first-night/run.py

Makes `.venv` in the repository, installs runq and llama.cpp's server into it, fetches the model (89 MB, once), runs
the night and says what to look at next. Prints each command before it runs. Further arguments go to `runq night`.

This file parses on Python 3.8, so that an old Python gets a clear message and no traceback.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent
VENV = REPO / ".venv"
PYTHON = VENV / "bin" / "python"
RUNQ = VENV / "bin" / "runq"
QUEUE = HERE / "queue.yaml"
SERVER = "xllamacpp"  # llama.cpp's server as a wheel: no compiler needed


def fail(message, code=2):
    """End with a message that names the remedy."""
    print("error: " + message, file=sys.stderr)
    sys.exit(code)


def show(argv):
    """The command as one would type it here."""
    return " ".join(shlex.quote(str(word)) for word in argv)


def run(argv, env=None):
    """Print a command, run it and return its exit code."""
    print("$ " + show(argv), file=sys.stderr, flush=True)
    process = subprocess.Popen([str(word) for word in argv], env=env)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass  # Ctrl-C reaches the command as well, which ends in its own way: wait for it


def must(argv, remedy):
    """Run a command; end with the remedy if it fails."""
    code = run(argv)
    if code != 0:
        fail(f"that command ended with {code}. {remedy}", 130 if code in (130, -2) else 1)


def make_venv():
    """Create `.venv` unless a usable one is there."""
    if PYTHON.exists():
        code = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
        if subprocess.run([str(PYTHON), "-c", code], check=False).returncode != 0:
            fail(f"{VENV} has no pip or a Python below 3.11. Remove that folder and run this again.")
        return
    try:
        import ensurepip  # noqa: F401 - Debian and Ubuntu ship Python without it
        import venv  # noqa: F401
    except ImportError:
        fail(
            "this Python has no venv module. On Debian or Ubuntu: sudo apt install "
            f"python{sys.version_info[0]}.{sys.version_info[1]}-venv; then run this again."
        )
    must([sys.executable, "-m", "venv", VENV], f"Remove {VENV} if it is there and run this again.")


def check_machine():
    """End with a message when runq cannot run here at all."""
    if sys.version_info < (3, 11):  # noqa: UP036 - anyone may start this file with any Python
        found = ".".join(map(str, sys.version_info[:2]))
        fail(
            f"runq needs Python 3.11 or newer, this is {found} ({sys.executable}). "
            f"Run this with a newer one, for example: python3.11 {sys.argv[0]}"
        )
    if os.name != "posix":
        fail("runq runs on Linux and macOS. On Windows use WSL.")


def main():
    """Set up, run the night, say what next."""
    check_machine()
    make_venv()
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    must(
        [*pip, "--editable", REPO, SERVER], "Check the network and pip's index or proxy settings, then run this again."
    )
    must([PYTHON, HERE / "download_model.py"], "The reason is above; then run this again.")

    # The queue file says `python`: with the venv first on the PATH that is the one with the server in it.
    env = dict(os.environ, PATH=str(VENV / "bin") + os.pathsep + os.environ.get("PATH", os.defpath))
    code = run([RUNQ, "night", QUEUE, *sys.argv[1:]], env)

    runs = Path(os.environ.get("RUNQ_RUNS") or HERE / "runs")
    for index, word in enumerate(sys.argv[1:], 1):
        if word == "--runs" and index + 1 < len(sys.argv):
            runs = Path(sys.argv[index + 1])
        elif word.startswith("--runs="):
            runs = Path(word[len("--runs=") :])
    summaries = sorted(runs.absolute().glob("*_queue/summary.md"), key=lambda path: path.stat().st_mtime)
    if summaries and code in (0, 1, 130):  # with any other code no night was run
        where = ["--runs", runs.absolute()]
        print(f"\nSummary:  {summaries[-1]}")
        print(f"Answers and marks:  responses.jsonl and scores.csv in {runs.absolute()}")
        print(f"Rebuild the summary from the journal:  {show([RUNQ, 'replay', *where])}")
        print(f"Look through the journal in a browser:  {show([RUNQ, 'browse', *where])}")
        print(f"Your own models:  {HERE / 'README.md'}")
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
