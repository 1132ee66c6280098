"""Finds plugins through entry points and makes them from the queue file's options.

Listing imports nothing. Bare `importlib.metadata` rather than pluggy: these are one-to-one look-ups by name, and
a broken plugin or a name offered twice has to be a value that can be shown, not a loader that stops.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import TYPE_CHECKING, Any

import attrs

from runq_schemas.errors import PluginError

if TYPE_CHECKING:
    from runq_schemas.event_parts import UsedPlugin

GROUPS: Mapping[str, str] = {"reset": "runq.reset", "probe": "runq.probe", "harness": "runq.harness"}
"""The kind of plugin and its entry-point group."""


@attrs.frozen(kw_only=True)
class Offer:
    """One plugin that an installed distribution offers."""

    kind: str
    name: str
    distribution: str
    version: str
    target: str
    point: EntryPoint = attrs.field(repr=False, eq=False)

    def data(self) -> dict[str, str]:
        """What the journal records, as JSON data."""
        return {
            "group": GROUPS[self.kind],
            "name": self.name,
            "distribution": self.distribution,
            "version": self.version,
        }

    def used(self) -> UsedPlugin:
        """The offer as the journal records it."""
        from runq_schemas.event_parts import UsedPlugin

        return UsedPlugin(**self.data())


@attrs.frozen(kw_only=True)
class Loaded:
    """An offer whose class was asked for: the class, or why there is none."""

    offer: Offer
    cls: type[Any] | None
    error: str = ""


def offers() -> tuple[Offer, ...]:
    """Every plugin on offer, sorted by kind and name; nothing is imported."""
    found: dict[tuple[str, str, str], Offer] = {}
    kinds = {group: kind for kind, group in GROUPS.items()}
    for distribution in distributions():
        ours = [point for point in _points(distribution) if point.group in kinds]
        name, version = _name_and_version(distribution) if ours else ("", "")
        for point in ours:
            kind = kinds[point.group]
            # One distribution can be seen twice on sys.path (an editable install beside a build folder). The first
            # is the one that Python imports.
            found.setdefault(
                (kind, point.name, _canonical(name)),
                Offer(kind=kind, name=point.name, distribution=name, version=version, target=point.value, point=point),
            )
    order = list(GROUPS)
    return tuple(sorted(found.values(), key=lambda o: (order.index(o.kind), o.name, o.distribution)))


def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    """Name and version; an installation that broke off may lack either, or all of its metadata."""
    name: str | None = None
    version: str | None = None
    with contextlib.suppress(Exception):
        metadata = distribution.metadata  # parsed anew, description and all, each time it is asked for
        name, version = metadata["Name"], metadata["Version"]
    return name or "unknown", version or "unknown"


def _points(distribution: Distribution) -> Iterator[EntryPoint]:
    """Its entry points; none where the file is no such list: one bad distribution must not hide all others."""
    with contextlib.suppress(Exception):
        yield from distribution.entry_points


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()  # as package indexes compare names


def load(offer: Offer) -> Loaded:
    """Import one plugin's class. A failure is a value: a broken plugin must not break its neighbours."""
    try:
        # Standard output is for results: what a foreign module prints at import must not stand in a `--json`.
        with contextlib.redirect_stdout(sys.stderr):
            cls = offer.point.load()
    except (Exception, SystemExit) as error:  # whatever a foreign module raises at import is what we report
        return Loaded(offer=offer, cls=None, error=f"{type(error).__name__}: {error}")
    if not (isinstance(cls, type) and attrs.has(cls)):
        return Loaded(offer=offer, cls=None, error=f"{offer.target} is not an attrs class")
    return Loaded(offer=offer, cls=cls)


@attrs.define
class Plugins:
    """The plugins of this environment; each class is imported when it is first named."""

    available: tuple[Offer, ...] = attrs.field(factory=offers)
    _loaded: dict[tuple[str, str], Loaded] = attrs.field(factory=dict, init=False)

    def find(self, kind: str, name: str) -> Offer:
        """The one offer of this name.

        Raises:
            PluginError: there is none, or there are several.
        """
        same_kind = [offer for offer in self.available if offer.kind == kind]
        named = [offer for offer in same_kind if offer.name == name]
        if len(named) == 1:
            return named[0]
        if not named:
            names = sorted({offer.name for offer in same_kind})
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise PluginError(
                f"there is no {kind} plugin named {name!r}",
                remedy=f"{hint}known are {', '.join(names) or 'none'}; `runq plugins` lists them",
            )
        brought = " and ".join(f"{offer.distribution} {offer.version}" for offer in named)
        raise PluginError(
            f"the {kind} plugin {name!r} is offered twice, by {brought}",
            remedy=f"uninstall one of them: {', '.join(sorted({offer.distribution for offer in named}))}",
        )

    def load(self, kind: str, name: str) -> Loaded:
        """The class of a plugin.

        Raises:
            PluginError: it is unknown, offered twice, or does not import.
        """
        if (kind, name) not in self._loaded:
            self._loaded[kind, name] = load(self.find(kind, name))
        loaded = self._loaded[kind, name]
        if loaded.cls is None:
            offer = loaded.offer
            raise PluginError(
                f"the {kind} plugin {name!r} of {offer.distribution} {offer.version} is broken: {loaded.error}",
                remedy=f"repair or uninstall {offer.distribution}; queues that do not use it still run",
            )
        return loaded

    def make(self, kind: str, name: str, options: Mapping[str, Any]) -> Any:
        """An instance of a plugin with its options.

        Raises:
            PluginError: it cannot be loaded.
            OptionErrors: an option is unknown or has the wrong type (`runq_schemas.structure`).
        """
        from runq_schemas.structure import structure_options

        cls = self.load(kind, name).cls
        assert cls is not None  # noqa: S101 - load() raises otherwise; for the type checker
        return structure_options(cls, options)

    def used(self, names: Sequence[tuple[str, str]]) -> tuple[Offer, ...]:
        """The offers that a night uses, without repeats."""
        return tuple(self.find(kind, name) for kind, name in dict.fromkeys(names))
