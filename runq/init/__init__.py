"""A queue file from what the servers of this machine offer: written once, then brought up to date."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs

from runq.discovery import Plugins
from runq.init.offers import Candidate
from runq.init.updating import QueueText
from runq.init.writing import STARTER, STARTER_PACK, Harness, config_text, fresh_text
from runq.looking import FoundServer
from runq.summary import replace_file
from runq_schemas.errors import QueueFileError, UsageError
from runq_schemas.parse import parse_queue

Choose = Callable[[Sequence[Candidate]], Sequence[Candidate]]


@attrs.frozen(kw_only=True)
class Written:
    """What `runq init` did, or with ``dry_run`` would do.

    Args:
        created: the queue file was not there.
        text: its text now.
        changed: whether the text is another than before.
        added: models that got an entry.
        kept: ids of models that had one.
        gone: ids of models that have one and whose server does not list them any more.
        skipped: ids of models that have none on purpose: left out before, or not chosen.
        files: other files that were written.
    """

    path: Path
    created: bool
    text: str
    changed: bool
    added: tuple[Candidate, ...]
    kept: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


@attrs.frozen(kw_only=True)
class Init:
    """One call of `runq init`.

    Args:
        path: the queue file.
        offered: what the servers offer, the smallest first.
        servers: those servers, with models that do not chat too.
        harness: the one asked for; ``None`` for the starter, or in a file that is there for that of its neighbours.
        choose: picks among models that have no entry.
        dry_run: write nothing.
    """

    path: Path
    offered: tuple[Candidate, ...]
    servers: tuple[FoundServer, ...]
    harness: Harness | None
    choose: Choose
    plugins: Plugins
    dry_run: bool = False

    def run(self, *, every: bool) -> Written:
        """Write the file, or bring it up to date.

        Args:
            every: models that were left out before are offered to ``choose`` again.

        Raises:
            UsageError: nothing was chosen, or a harness lacks something.
            QueueFileError: the file that is there is wrong, or the new one would be.
            OSError: a file could not be written.
        """
        if self.path.exists():
            return self._update(every=every)
        return self._create()

    def _create(self) -> Written:
        harness = self.harness or Harness(name=STARTER, pack=STARTER_PACK)
        harness.check()
        chosen, twins = _without_twins(self.choose(self.offered))
        if not chosen:
            raise UsageError("no model was chosen", remedy="choose at least one, or name it with --models")
        known = list(dict.fromkeys(candidate.model.id for candidate in self.offered))
        today = date.today().isoformat()
        text = fresh_text(chosen, known, harness, today=today, name=self.path.name)
        written = self._support(harness, chosen)
        self._write(text, check=True)
        left = [c.model.id for c in self.offered if c not in chosen]
        return Written(
            path=self.path,
            created=True,
            text=text,
            changed=True,
            added=chosen,
            skipped=tuple(dict.fromkeys([*left, *twins])),
            files=written,
        )

    def _update(self, *, every: bool) -> Written:
        if self.harness is not None:
            self.harness.check()
        before = self.path.read_bytes().decode("utf-8-sig")
        old = QueueText(self.path, before)
        known = old.known()
        fresh = [c for c in self.offered if not old.entries_of(c)]
        chosen = tuple(self.choose([c for c in fresh if every or c.model.id not in known]))
        taken = {entry.model.id for entry in old.spec.entries}
        added, _ = _without_twins(c for c in chosen if self.harness is not None or c.model.id not in taken)
        written = self._support(self.harness, added) if added else ()
        gone = old.gone(self.servers)
        text = before
        for timed in (True, False):
            now = QueueText(self.path, before)
            keys = [now.keys_for(candidate, self.harness) for candidate in added]
            now.add(added, keys, timed=timed)
            now.mark(now.gone(self.servers))
            now.remember(candidate.model.id for candidate in self.offered)
            text = now.joined()
            if not added or self._fits(text, last=not timed):
                break
        changed = text != before
        if changed:
            self._write(text, check=False)
        return Written(
            path=self.path,
            created=False,
            text=text,
            changed=changed,
            added=added,
            kept=tuple(dict.fromkeys(e.model.id for e in old.spec.entries if e not in gone)),
            gone=tuple(dict.fromkeys(entry.model.id for entry in gone)),
            skipped=tuple(dict.fromkeys(c.model.id for c in fresh if c not in added)),
            files=written,
        )

    def _support(self, harness: Harness | None, chosen: Sequence[Candidate]) -> tuple[Path, ...]:
        """The files that the entries name and that `runq init` brings along; what is there is never replaced."""
        wanted: dict[Path, str] = {}
        folder = self.path.parent
        if harness is not None and harness.name == STARTER:
            wanted[folder / "starter" / "ask.py"] = _brought("ask.py")
        if harness is not None and harness.pack == STARTER_PACK:
            wanted[folder / STARTER_PACK] = _brought("questions.json")
        for candidate in chosen:
            config = harness.config(candidate.server) if harness is not None else None
            if config is not None:
                wanted.setdefault(folder / config, config_text(candidate.server, candidate.model.id))
        missing = {path: text for path, text in wanted.items() if not path.exists()}
        for path, text in missing.items() if not self.dry_run else ():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tuple(missing)

    def _fits(self, text: str, *, last: bool) -> bool:
        """Whether a night would take the text. With ``last`` what is wrong is raised."""
        try:
            self._prepare(text)
        except QueueFileError:
            if last:
                raise
            return False
        return True

    def _prepare(self, text: str) -> None:
        from runq.prepare import prepare

        if self.dry_run:
            return
        base = self.path.parent.absolute()
        prepare(parse_queue(text, self.path), base_dir=base, plugins=self.plugins, environ=os.environ, cwd=Path.cwd())

    def _write(self, text: str, *, check: bool) -> None:
        if check:
            self._prepare(text)
        if self.dry_run:
            return
        mode = self.path.stat().st_mode & 0o777 if self.path.exists() else None
        replace_file(self.path, text)
        self.path.chmod(mode if mode is not None else 0o666 & ~_umask())


def _without_twins(chosen: Iterable[Candidate]) -> tuple[tuple[Candidate, ...], list[str]]:
    """The models without those of the same name on a second server: a queue has no two such entries."""
    first: dict[str, Candidate] = {}
    twins: list[str] = []
    for candidate in chosen:
        if candidate.model.id in first:
            twins.append(candidate.model.id)
        first.setdefault(candidate.model.id, candidate)
    return tuple(first.values()), twins


def _brought(name: str) -> str:
    return (files("runq.init") / "starter" / name).read_text(encoding="utf-8")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def data_of(written: Written) -> Mapping[str, Any]:
    """What was done, as JSON data."""
    return {
        "queue": str(written.path),
        "created": written.created,
        "changed": written.changed,
        "added": [
            {
                "model": c.model.id,
                "size_mb": None if c.model.size_mb is None else round(c.model.size_mb, 1),
                "quant": c.model.quant,
                "product": c.product,
                "base_url": c.server.base_url,
            }
            for c in written.added
        ],
        "kept": list(written.kept),
        "gone": list(written.gone),
        "skipped": list(written.skipped),
        "files": [str(path) for path in written.files],
    }


def text_of(written: Written) -> str:
    """What was done, for people: a line per model, ``+`` added, ``=`` kept, ``-`` gone, ``.`` left out."""
    from runq.logs import one_line

    rows = [("+", c.model.id, c.about()) for c in written.added]
    rows += [("=", name, "has an entry") for name in written.kept]
    rows += [("-", name, "its server does not list it any more; its entry stays") for name in written.gone]
    rows += [(".", name, "left out; add it with --models") for name in written.skipped]
    rows += [("+", str(path.relative_to(written.path.parent)), "new file") for path in written.files]
    width = min(50, max((len(name) for _, name, _ in rows), default=0))
    return "\n".join(f"{sign} {one_line(name):<{width}}  {one_line(about)}" for sign, name, about in rows)
