"""The programs and modules that plugins need: where they are, and whether they import."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from runq.discovery import Plugins
from runq.doctor.finding import Finding, Status
from runq.looking import Need, TellsNeeds
from runq_schemas.errors import PluginError

IMPORT_S = 90.0
"""Seconds an import may take: a cold one of torch behind an evaluation library takes tens of them."""

_IMPORT = (
    "import importlib, importlib.metadata as m, sys\n"
    "importlib.import_module(sys.argv[1])\n"
    "names = m.packages_distributions().get(sys.argv[1].partition('.')[0]) or ['']\n"
    "print('runq-doctor', m.version(names[0]) if names[0] else '')\n"
)

Runs = Callable[[list[str], Path, Mapping[str, str]], "subprocess.CompletedProcess[str] | str"]


def run_python(argv: list[str], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str] | str:
    """Run an interpreter. Returns how it ended, or why it did not."""
    try:
        return subprocess.run(
            argv,
            cwd=cwd,
            env=dict(env),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=IMPORT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {IMPORT_S:g} s"
    except OSError as error:
        return f"it cannot be started: {error.strerror or error}"


def find_program(program: str, base_dir: Path, env: Mapping[str, str]) -> str | None:
    """Where a program is: on the PATH of ``env``, or relative to ``base_dir`` where it is written as a path."""
    if "/" in program:
        return shutil.which(str(base_dir / Path(program).expanduser()))
    return shutil.which(program, path=env.get("PATH", ""))


def need_finding(
    need: Need, *, area: str, name: str, missing: Status, base_dir: Path, env: Mapping[str, str], run: Runs = run_python
) -> Finding:
    """Whether a need is met.

    Args:
        missing: the status when it is not.
    """
    place = find_program(need.program, base_dir, env)
    if place is None:
        message = f"{need.program} is not there" if "/" in need.program else f"{need.program} is not on the PATH"
        return Finding(area=area, name=name, status=missing, message=message, remedy=need.remedy)
    if not need.module:
        return Finding(area=area, name=name, status="ok", message=f"{need.program} is {place}")
    ran = run([place, "-c", _IMPORT, need.module], base_dir, env)
    if isinstance(ran, str):
        return Finding(area=area, name=name, status=missing, message=f"{place}: {ran}", remedy=need.remedy)
    told = [line for line in ran.stdout.splitlines() if line.startswith("runq-doctor")]
    if ran.returncode == 0 and told:
        version = told[-1].removeprefix("runq-doctor").strip()
        about = f"{need.module} {version}".strip()
        return Finding(area=area, name=name, status="ok", message=f"{about} imports in {place}")
    why = next((line for line in reversed(ran.stderr.splitlines()) if line.strip()), f"exit {ran.returncode}")
    message = f"{need.module} does not import in {place}: {why}"
    return Finding(area=area, name=name, status=missing, message=message, remedy=need.remedy)


def harness_findings(plugins: Plugins, base_dir: Path, *, run: Runs = run_python) -> Iterator[Finding]:
    """Every installed harness that says what it needs, with its default options. None of them has to be there."""
    for offer in plugins.available:
        if offer.kind != "harness":
            continue
        try:
            plugins.load("harness", offer.name)
        except PluginError as error:
            yield Finding(area="harnesses", name=offer.name, status="warn", message=error.message, remedy=error.remedy)
            continue
        needs = default_needs(plugins, offer.name, base_dir)
        for need in needs:
            wanted = Need(
                program=need.program, module=need.module, remedy=f"only if you use this harness: {need.remedy}"
            )
            yield need_finding(
                wanted,
                area="harnesses",
                name=offer.name if need is needs[0] else f"{offer.name}: {need.module or need.program}",
                missing="warn",
                base_dir=base_dir,
                env=os.environ,
                run=run,
            )


def default_needs(plugins: Plugins, harness: str, base_dir: Path) -> tuple[Need, ...]:
    """What a harness needs with its default options; nothing where it has none, or does not say."""
    try:
        made = plugins.make("harness", harness, {})
        return tuple(made.needs(base_dir)) if isinstance(made, TellsNeeds) else ()
    except Exception:  # it needs an option, or is broken, which is told elsewhere
        return ()
