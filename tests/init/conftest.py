"""What the tests of `runq init` share with those of the commands, and stand-ins for servers."""

from __future__ import annotations

from ..commands.conftest import home, runq
from ..stand_ins.model_hosts import host

__all__ = ["home", "host", "runq"]
