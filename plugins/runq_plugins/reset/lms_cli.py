"""LM Studio's command line `lms`, for a server without the REST interface.

Source: lmstudio-ai/lms, src/subcommands/{unload,list,daemon}; lmstudio-js,
packages/lms-common-server/src/findLMStudioHome.ts. Two things to know: `lms ps`, `lms unload` and `lms load` *start*
LM Studio when it does not run, `lms daemon status` does not; and `lms unload` exits 0 also when it unloaded nothing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import psutil

from runq_plugins.program import CannotStart, ProgramResult, run_bounded
from runq_plugins.reset import owner
from runq_plugins.reset.eviction import Busy, Complaint, Deadline, Resident, Unasked, whole
from runq_plugins.reset.lms_rest import MARKERS, family_owners, is_worker


def lm_studio_home(home: Path) -> Path:
    """LM Studio's folder in a user's home, by the rules of findLMStudioHome.ts."""
    try:
        pointed = (home / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        pointed = ""
    if pointed:
        return Path(pointed)
    old = home / ".cache" / "lm-studio"
    return old if old.is_dir() else home / ".lmstudio"


def find_lms(env: Mapping[str, str]) -> str | None:
    """The `lms` program: on the PATH, else where LM Studio puts it.

    `lms bootstrap` only changes the files of interactive shells, so cron, systemd and launchd miss it on the PATH.
    """
    on_path = shutil.which("lms", path=env.get("PATH", ""))
    if on_path:
        return on_path
    try:
        home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    except RuntimeError:  # no home folder at all
        return None
    return shutil.which(str(lm_studio_home(home) / "bin" / "lms"))


@attrs.frozen(kw_only=True)
class CliRegistry:
    """The models that `lms` sees on this machine; those of other machines (LM Link) are left alone."""

    binary: str
    env: Mapping[str, str] = attrs.field(repr=False)
    cwd: Path
    sleep: Callable[[float], None]
    pid: int | None = None

    def daemon(self, deadline: Deadline) -> tuple[bool, int | None]:
        """Whether LM Studio runs, and its pid where that is told. Starts nothing."""
        result = self._run(["daemon", "status", "--json"], deadline.call_s())
        status = _json(result)
        word = status.get("status") if isinstance(status, dict) else None
        if word == "not-running":
            return False, None
        if word == "running" and isinstance(status, dict):
            pid = status.get("pid")
            return True, pid if isinstance(pid, int) and not isinstance(pid, bool) else None
        raise Unasked(
            f"`lms daemon status --json` does not tell whether LM Studio runs ({_said(result)})",
            "start LM Studio, or update it to 0.4.0 or later; other `lms` commands would start it by themselves",
        )

    def residents(self, deadline: Deadline) -> Sequence[Resident]:
        """The loaded models of this machine."""
        return [resident for resident, local in self._all(deadline) if local]

    def _all(self, deadline: Deadline) -> list[tuple[Resident, bool]]:
        result = self._run(["ps", "--json"], deadline.call_s())
        listed = _json(result)
        if not result.ok or not isinstance(listed, list):
            raise Unasked(f"`lms ps --json` did not list models ({_said(result)})", "run `lms ps` by hand")
        found: list[tuple[Resident, bool]] = []
        for item in listed:
            identifier = item.get("identifier") if isinstance(item, dict) else None
            if not isinstance(identifier, str):
                raise Unasked("`lms ps --json` lists a model without an identifier", "update runq or LM Studio")
            size = item.get("sizeBytes")
            resident = Resident(
                id=identifier,
                model=str(item.get("modelKey", identifier)),
                size_mb=size / owner.MB if isinstance(size, (int, float)) and not isinstance(size, bool) else None,
                context_length=whole(item.get("contextLength")),
            )
            found.append((resident, item.get("deviceIdentifier") is None))
        return found

    def evict(self, residents: Sequence[Resident], deadline: Deadline) -> None:
        """`lms unload --all`; by id where that would also empty another machine (it has no device filter)."""
        elsewhere = any(not local for _, local in self._all(deadline))
        arguments = [["unload", resident.id] for resident in residents] if elsewhere else [["unload", "--all"]]
        for words in arguments:
            result = self._run(words, max(0.1, deadline.left_s))
            if not result.ok:
                raise Complaint(f"`lms {' '.join(words)}` failed ({_said(result)})")

    def owners(self) -> Sequence[owner.Owner] | None:
        """LM Studio's processes; ``None`` when the pid is not told or not visible."""
        if self.pid is None:
            return None
        try:
            return family_owners(psutil.Process(self.pid))
        except psutil.Error:
            return None

    def leftovers(self) -> Sequence[owner.Owner] | None:
        """Every process of LM Studio on this machine, for when it says that it does not run."""
        return owner.snapshot((p for p in psutil.process_iter() if owner.bears(p, MARKERS) or is_worker(p)), is_worker)

    def _run(self, words: Sequence[str], timeout_s: float) -> ProgramResult:
        try:
            result = run_bounded(
                [self.binary, *words], timeout_s=timeout_s, env=self.env, cwd=self.cwd, sleep=self.sleep
            )
        except CannotStart as error:
            raise Unasked(f"lms cannot be started: {error}", "give the right path as `binary`") from error
        if result.timed_out:
            raise Busy(f"`lms {' '.join(words)}` did not end within {timeout_s:g} s", "restart LM Studio")
        return result


def _json(result: ProgramResult) -> Any:
    try:
        return json.loads(result.stdout)
    except (ValueError, RecursionError):
        return None


def _said(result: ProgramResult) -> str:
    ending = f"exit {result.exit_code}" if result.signal is None else result.signal
    tail = result.tail(200)
    return f"{ending}: {tail}" if tail else ending
