"""What gets installed: wheel and sdist, built from a copy, installed into environments that have nothing else."""

from __future__ import annotations

import email
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import attrs
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

REPO = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]

HOMES = {"runq": "runq", "runq_schemas": "schemas", "runq_journal": "journal", "runq_plugins": "plugins"}
"""Import name: the folder at the top of the repository that holds it."""

IGNORED = shutil.ignore_patterns(
    ".git",
    ".venv*",
    "runs",
    "dist",
    "build",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    ".coverage*",
    "htmlcov",
    "*.db-*",
)

OTHER_PYTHONS = ("3.12", "3.13")

EVERY_MODULE = """
import importlib, pkgutil
EXTRAS = {"runq.fleet.dask_transport": "distributed", "runq.fleet.executor": "distributed"}
for name in ("runq", "runq_schemas", "runq_journal", "runq_plugins"):
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, name + "."):
        elsewhere = module.name.startswith(("runq.testing", "runq_plugins.harness.drivers."))
        if not elsewhere and not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                if error.name != EXTRAS.get(module.name):
                    raise
"""
"""`runq.testing` needs pytest, and a harness's drivers run in its own interpreter; two modules need the extra
`cluster`; everything else must import with what the wheel asks for."""


def package(name: str) -> Path:
    return REPO / ("" if HOMES[name] == name else HOMES[name]) / name


def call(*argv: object, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*map(str, argv)],
        cwd=cwd,
        env=clean_env() if env is None else env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=600,
    )
    if done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, argv))} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done


def clean_env() -> dict[str, str]:
    """The environment without what would lead to this repository or to its interpreter."""
    left_out = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "RUNQ_RUNS", "PYENV_VERSION"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out and not name.startswith("COV")}
    return {**kept, "NO_COLOR": "1"}


@attrs.frozen
class Built:
    wheel: Path
    sdist: Path

    @property
    def names(self) -> list[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return archive.namelist()

    def read(self, suffix: str) -> str:
        with zipfile.ZipFile(self.wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(suffix))
            return archive.read(name).decode()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """An sdist of a copy of the repository, and the wheel built from that sdist."""
    copy = tmp_path_factory.mktemp("build") / "runq"
    shutil.copytree(REPO, copy, ignore=IGNORED)
    isolation = ["--no-isolation"] if find_spec("hatchling") else []
    call(sys.executable, "-m", "build", *isolation, ".", cwd=copy)
    (wheel,), (sdist,) = (copy / "dist").glob("*.whl"), (copy / "dist").glob("*.tar.gz")
    return Built(wheel, sdist)


# --- what is in it ----------------------------------------------------------------------------------------------


def test_the_wheel_holds_four_import_names_and_no_other(built: Built) -> None:
    tops = {name.partition("/")[0] for name in built.names}
    assert tops == {*HOMES, f"runq-{PROJECT['version']}.dist-info"}


def test_every_module_and_data_file_is_in_the_wheel(built: Built) -> None:
    for name in HOMES:
        source = package(name)
        files = {
            f"{name}/{path.relative_to(source).as_posix()}"
            for path in source.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert files <= set(built.names)
        assert f"{name}/py.typed" in built.names


def test_the_data_files_that_the_code_reads_are_there(built: Built) -> None:
    views = [name for name in built.names if name.startswith("runq_journal/views/") and name.endswith(".sql")]
    assert len(views) >= 6
    assert "runq_schemas/queue.schema.json" in built.names
    assert "runq_journal/datasette/metadata.yaml" in built.names
    assert {f"runq/report/templates/{name}" for name in ("report.html", "parts.html", "report.css")} <= set(built.names)
    assert json.loads(built.read("runq_schemas/queue.schema.json"))["title"] == "runq queue file"
    assert "MIT License" in built.read(".dist-info/licenses/LICENSE")


def test_the_metadata_says_what_it_needs_and_offers(built: Built) -> None:
    metadata = email.message_from_string(built.read(".dist-info/METADATA"))
    assert metadata["Name"] == "runq"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert metadata.get_payload().startswith("# runq")  # the README is the page on an index
    offered = built.read(".dist-info/entry_points.txt")
    assert "[console_scripts]\nrunq = runq.cli:main" in offered
    for group, points in PROJECT["entry-points"].items():
        assert f"[{group}]" in offered
        for name, target in points.items():
            assert f"{name} = {target}" in offered


def test_the_sdist_holds_tests_docs_and_examples_but_nothing_made(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    wanted = ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "tests/run.py", "docs/architecture.md")
    for name in (*wanted, "examples/first-night/queue.yaml", "schemas/runq_schemas/queue.py"):
        assert name in names
    made = ("__pycache__", "/runs/", ".venv", "_cache")
    assert not [name for name in names if any(part in name for part in made)]


def test_no_other_top_level_name_can_come_from_the_repository() -> None:
    for folder in ("schemas", "journal", "plugins", "tests", "bench", "docs", "examples"):
        assert not (REPO / folder / "__init__.py").exists()
    for name in HOMES:
        assert (package(name) / "__init__.py").exists()
    code = {path.parent.relative_to(REPO).parts[0] for path in REPO.glob("*/**/*.py") if visible(path)}
    assert code == {"runq", "schemas", "journal", "plugins", "tests", "bench", "docs", "examples"}
    assert not list(REPO.glob("*.py"))


def visible(path: Path) -> bool:
    parts = path.relative_to(REPO).parts
    return not any(part.startswith(".") or part in ("build", "dist", "runs", "htmlcov") for part in parts)


# --- does it run ------------------------------------------------------------------------------------------------


def try_out(python: str | Path, wheel: Path, folder: Path) -> None:
    """Install the wheel and nothing else into a new environment, and use it from a folder of its own."""
    call(python, "-m", "venv", folder / "venv", cwd=folder)
    bin_dir = folder / "venv" / "bin"
    call(bin_dir / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)

    shutil.copytree(REPO / "examples" / "first-night", folder / "first-night", ignore=IGNORED)
    env = {**clean_env(), "PATH": f"{bin_dir}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    assert "Usage: runq" in call(bin_dir / "runq", "--help", cwd=folder, env=env).stdout
    listed = json.loads(call(bin_dir / "runq", "plugins", "--json", cwd=folder, env=env).stdout)
    offered = {(row["kind"], row["name"]) for row in listed}
    assert offered == {(group.removeprefix("runq."), n) for group, ns in PROJECT["entry-points"].items() for n in ns}
    assert not [row for row in listed if row["error"]]
    plan = call(bin_dir / "runq", "plan", "first-night/queue.yaml", cwd=folder, env=env).stdout
    assert "3 entries, 6 steps to run" in plan
    call(bin_dir / "python", "-c", EVERY_MODULE, cwd=folder, env=env)
    for module in ("plugins", "schemas", "journal", "tests", "bench"):
        code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is not None)"
        call(bin_dir / "python", "-c", code, cwd=folder, env=env)


def test_the_wheel_runs_in_a_clean_environment(built: Built, tmp_path: Path) -> None:
    try_out(sys.executable, built.wheel, tmp_path)


def test_the_wheel_runs_on_every_newer_python_found_here(built: Built, tmp_path: Path) -> None:
    for version, python in other_pythons().items():
        folder = tmp_path / version
        folder.mkdir()
        try_out(python, built.wheel, folder)


def other_pythons() -> dict[str, Path]:
    """Interpreters of other versions that really run: on the PATH, or among pyenv's."""
    found: dict[str, Path] = {}
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for version in OTHER_PYTHONS:
        on_path = shutil.which(f"python{version}")
        candidates = [*([Path(on_path)] if on_path else []), *sorted(pyenv.glob(f"{version}*/bin/python{version}"))]
        for python in candidates:
            # pyenv's shims are there for every version and fail for those that are not selected.
            code = f"import sys, venv, ensurepip; sys.exit('{version}' != '%d.%d' % sys.version_info[:2])"
            if subprocess.run([python, "-c", code], capture_output=True, env=clean_env(), timeout=60).returncode == 0:
                found[version] = python
                break
    return found
