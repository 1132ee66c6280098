"""Every server that the installed reset backends find."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from runq.discovery import Plugins
from runq.looking import Look, Sought
from runq_schemas.errors import PluginError


@attrs.frozen(kw_only=True)
class SoughtBy:
    """What a backend found, or why its looking failed."""

    backend: str
    sought: Sought | None
    error: str = ""


def seek(plugins: Plugins, look: Look, *, backend: str | None = None) -> Iterator[SoughtBy]:
    """Let each backend that can look for its servers; what one raises is its own.

    Args:
        backend: only this one.
    """
    for offer in plugins.available:
        if offer.kind != "reset" or backend not in (None, offer.name):
            continue
        try:
            cls = plugins.load("reset", offer.name).cls
            if not callable(getattr(cls, "find", None)):
                continue
            assert cls is not None  # noqa: S101 - for the type checker
            found = cls.find(look)
        except PluginError as error:
            yield SoughtBy(backend=offer.name, sought=None, error=error.message)
        except (Exception, SystemExit) as error:  # a plugin may raise anything; the others still look
            yield SoughtBy(backend=offer.name, sought=None, error=f"{type(error).__name__}: {error}")
        else:
            yield SoughtBy(backend=offer.name, sought=found)
