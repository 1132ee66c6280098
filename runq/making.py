"""One entry in the making: its plugins, paths and steps, and everything that is wrong with them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from runq.bounded_probe import BoundedProbe
from runq.discovery import Plugins
from runq.locks import endpoint_name
from runq.paths import pack_id
from runq.plugin import (
    Entry,
    Harness,
    NamesPacks,
    NamesSteps,
    PluginError,
    Probe,
    ResetBackend,
    StartsServer,
    Step,
    Target,
    TellsFree,
    TellsPressure,
    default_timeout_s,
)
from runq.prepared import PreparedEntry
from runq.watched import watched_endpoint
from runq_schemas.errors import RunqError
from runq_schemas.place import Mark
from runq_schemas.queue import EntrySpec, PluginUse, QueueSpec

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_STEP_NAME = re.compile(r"[A-Za-z0-9_-]+")
_FILES = ("config", "pack", "judge_config")

T = TypeVar("T")


@attrs.frozen
class Problem:
    """What is wrong with an entry, and the place that says so."""

    message: str
    remedy: str
    entry: int
    mark: Mark
    written: bool
    """Whether the file has the key; a built-in default has no place of its own."""


@attrs.define
class Making:
    """One entry in the making, collecting its problems."""

    spec: QueueSpec
    written: EntrySpec
    base_dir: Path
    plugins: Plugins
    environ: Mapping[str, str]
    cwd: Path
    problems: list[Problem] = attrs.field(factory=list, init=False)
    used: list[tuple[str, str]] = attrs.field(factory=list, init=False)

    def entry(self) -> PreparedEntry | None:
        """The entry; ``None`` when ``problems`` says why there is none."""
        reset = self._plugin("reset", "backend", self.written.reset, ResetBackend, "reset")
        harness = self._plugin("harness", "harness", self.written.harness, Harness, "harness")
        files = {name: self._file(name, harness) for name in _FILES}
        entry = Entry(
            id=self.written.index,
            model=self.written.model,
            judge_model=self.written.judge_model,
            base_dir=self.base_dir,
            **files,
        )
        probes, pressure = self._probes()
        env = self._env()
        steps = self._steps(harness, entry) if harness is not None else ()
        if harness is None or reset is None or self.problems:
            return None
        names, phases = [step.name for step in steps], self.spec.order == "phases"
        more = harness.step_names() if isinstance(harness, NamesSteps) else ()
        possible = tuple(dict.fromkeys([*names, *more]))
        self._known_steps("reset_before", self.written.reset_before or (), possible)
        self._known_steps("step_timeout_s", self.written.step_timeout_s, possible)
        stall = self.written.stall_timeout_s
        if isinstance(stall, Mapping):
            self._known_steps("stall_timeout_s", stall, possible)
        # The locks need them when the night starts; what raises there would end it with no entry to blame.
        told = self._guarded(
            "reset", self.written.reset.name, lambda: (reset.endpoint({**self.environ, **env}),), "reset"
        )
        endpoint = told[0] if told else None
        targets = self._guarded("harness", self.written.harness.name, lambda: harness.targets(entry), "harness")
        # In phases the second step comes after other entries' steps, so it never finds what its own entry left.
        reset_before = frozenset([*(self.written.reset_before or names[:1]), *(names[1:2] if phases else ())])
        watched = watched_endpoint(self.written, steps, targets, starts_server=isinstance(reset, StartsServer))
        for fault in watched.faults:
            self._problem(fault.message, fault.remedy, *fault.path)
        if isinstance(reset, StartsServer):
            self._served(steps, reset_before, endpoint, targets)
        if self.problems:
            return None
        return PreparedEntry(
            spec=self.written,
            entry=entry,
            harness=harness,
            reset=reset,
            endpoint=endpoint,
            probes=probes,
            pressure=pressure,
            steps=steps,
            timeouts_s={n: self.written.step_timeout_s.get(n, default_timeout_s(n)) for n in names},
            stalls_s={n: stall.get(n) if isinstance(stall, Mapping) else stall for n in names},
            reset_before=reset_before,
            pack_id=pack_id(entry.pack),
            env=env,
            beats=watched.beats,
            restart=watched.restart,
        )

    def _problem(self, message: str, remedy: str, *path: str | int) -> None:
        """A problem at a key of this entry, or of ``defaults`` where the entry leaves the key to them."""
        here: tuple[str | int, ...] = ("entries", self.written.index)
        in_defaults = bool(path) and (*here, path[0]) not in self.spec.marks
        if in_defaults and ("defaults", path[0]) in self.spec.marks:
            here = ("defaults",)
        mark = self.spec.mark_of(*here, *path)
        written = not path or (*here, path[0]) in self.spec.marks
        self.problems.append(Problem(message, remedy, self.written.index, mark, written))

    def _file(self, key: str, harness: Harness | None) -> Path | None:
        text: str | None = getattr(self.written, key)
        if text is None:
            return None
        if key == "pack" and isinstance(harness, NamesPacks):
            file = harness.pack_file(text)
            if file is None or (file != text and (self.base_dir / file).is_file()):
                return self.base_dir / text
            text = file
        try:
            path = self.base_dir / Path(text).expanduser()
            found, elsewhere = path.exists(), (self.cwd / text).exists()
        except (OSError, RuntimeError, ValueError) as error:  # no right to look, no such user, no possible name
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._problem(f"{key} {text!r} cannot be looked up: {reason}", "correct the path, or its permissions", key)
            return self.base_dir / text
        if found:
            return path
        if elsewhere:
            self._problem(
                f"{key} {text!r} is not in {self.base_dir}, but it is in the current directory",
                f"paths are relative to the queue file's folder; add --base-dir {self.cwd}",
                key,
            )
        else:
            self._problem(f"{key} {text!r} does not exist", f"create {path}, or correct the path", key)
        return path

    def _plugin(
        self,
        kind: str,
        name_key: str,
        use: PluginUse,
        protocol: type[Any],
        *path: str | int,
        instead: type[Any] | None = None,
    ) -> Any | None:
        """The plugin with its options; it has to have the protocol, or be the other kind of plugin instead."""
        from runq_schemas.structure import OptionErrors

        try:
            made = self.plugins.make(kind, use.name, use.options)
        except OptionErrors as errors:
            for problem in errors.problems:
                self._problem(f"{kind} plugin {use.name!r}: {problem.message}", problem.remedy, *path, *problem.path)
            return None
        except PluginError as error:
            self._problem(error.message, error.remedy, *path, name_key)
            return None
        except Exception as error:  # a plugin may raise anything; it stops only this queue
            self._failed(kind, use.name, error, *path)
            return None
        if instead is not None and isinstance(made, instead):
            protocol = instead
        lacking = [m for m in _methods(protocol) if not _has(made, m)]
        if lacking:
            self._problem(
                f"the {kind} plugin {use.name!r} lacks {', '.join(lacking)}",
                "it was written for another version of runq; update or uninstall it",
                *path,
            )
            return None
        self.used.append((kind, use.name))
        return made

    def _probes(self) -> tuple[dict[str, BoundedProbe], dict[str, BoundedProbe]]:
        """Those that read MB, and those that tell the pressure."""
        probes: dict[str, BoundedProbe] = {}
        pressure: dict[str, BoundedProbe] = {}
        for number, use in enumerate(self.written.probes):
            probe = self._plugin("probe", "probe", use, Probe, "probes", number, instead=TellsPressure)
            label = use.name if use.name not in {*probes, *pressure} else f"{use.name}-{number}"
            if probe is not None:
                (probes if isinstance(probe, Probe) else pressure)[label] = BoundedProbe(probe)
        if not self.written.probes:
            self._problem("probes is empty", "name at least one, for example `probes: [system]`", "probes")
        elif pressure and not probes:
            self._problem("no probe reads a memory figure", "add one, for example `system`", "probes")
        free = any(isinstance(one.probe, TellsFree) for one in probes.values())
        if probes and self.written.min_free_mb is not None and not free:
            remedy = "add one that does, for example `system`, or drop min_free_mb"
            self._problem("none of the probes tells how much memory is free", remedy, "min_free_mb")
        return probes, pressure

    def _env(self) -> dict[str, str]:
        env: dict[str, str] = {}
        for name, text in self.written.env.items():
            if not name or "=" in name or "\0" in name + text:
                self._problem(
                    f"env {name!r} cannot be a variable", "use letters, digits and _ in its name", "env", name
                )
                continue
            missing = [v for v in _VARIABLE.findall(text) if v not in self.environ]
            if missing:
                self._problem(
                    f"env {name} uses ${{{missing[0]}}}, which is not set",
                    f"export {missing[0]} before starting runq, or correct the name",
                    "env",
                    name,
                )
                continue
            env[str(name)] = _VARIABLE.sub(lambda match: self.environ[match.group(1)], text)
        return env

    def _steps(self, harness: Harness, entry: Entry) -> tuple[Step, ...]:
        name = self.written.harness.name
        required = self._guarded("harness", name, harness.requires, "harness")
        lacking = [key for key in required if getattr(self.written, key, None) is None]
        for key in lacking:
            self._problem(f"the harness {name!r} needs {key}", f"add `{key}: …` to this entry")
        if lacking:
            return ()
        return tuple(self._guarded("harness", name, lambda: self._checked(tuple(harness.steps(entry))), "harness"))

    def _checked(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        names = [step.name for step in steps]
        if not steps:
            raise PluginError("it gives no steps", remedy="give it at least one step")
        for name in names:
            if not _STEP_NAME.fullmatch(name) or name == "server":
                raise PluginError(f"{name!r} is not a step name", remedy="use letters, digits, _ and -; not `server`")
            if names.count(name) > 1:
                raise PluginError(f"two steps are named {name!r}", remedy="give each step its own name")
        for step in steps:
            # The journal and the identity need them; what is no JSON would end the night with no entry to blame.
            json.dumps([dict(step.settings), list(step.artifacts)], allow_nan=False)
        return steps

    def _guarded(self, kind: str, name: str, ask: Callable[[], Sequence[T]], *path: str | int) -> Sequence[T]:
        """What a plugin answers; where it raises instead, a problem and an empty answer."""
        try:
            return ask()
        except RunqError as error:
            self._problem(f"{kind} {name!r}: {error.message}", error.remedy, *path)
        except Exception as error:  # a plugin may raise anything; it stops only this queue
            self._failed(kind, name, error, *path)
        return ()

    def _failed(self, kind: str, name: str, error: Exception, *path: str | int) -> None:
        self._problem(
            f"{kind} {name!r} failed: {type(error).__name__}: {error}", "report it to the plugin's author", *path
        )

    def _served(
        self, steps: Sequence[Step], reset_before: frozenset[str], endpoint: str | None, targets: Sequence[Target]
    ) -> None:
        """Refuse a step that asks the entry's own server for another model than the one it was started with."""
        here = {t.step for t in targets if endpoint and endpoint_name(t.base_url) == endpoint_name(endpoint)}
        serving = steps[0].model or self.written.model
        for step in steps[1:]:
            wanted = step.model or serving
            if step.name in reset_before:
                serving = wanted
            elif wanted.id != serving.id and step.name in here:
                self._problem(
                    f"step {step.name!r} wants {wanted.id}, but the server would still run {serving.id}",
                    f"add `reset_before: [{steps[0].name}, {step.name}]`",
                    "reset_before",
                )

    def _known_steps(self, key: str, given: Iterable[str], names: Sequence[str]) -> None:
        """Refuse step names that the harness has for no entry."""
        for step in given:
            if step not in names:
                self._problem(
                    f"{key}: the harness {self.written.harness.name!r} has no step {step!r} here",
                    f"its steps are {', '.join(names)}",
                    key,
                    *([step] if isinstance(given, Mapping) else []),
                )


def _methods(protocol: type[Any]) -> list[str]:
    attributes = list(getattr(protocol, "__annotations__", {}))
    return attributes + [
        name
        for name, value in vars(protocol).items()
        if name[0] != "_" and (callable(value) or isinstance(value, property))
    ]


def _has(made: Any, name: str) -> bool:
    # The class first: to ask an instance would run a property, which may raise.
    return hasattr(type(made), name) or hasattr(made, name)
