"""Machines with addresses of their own on one kernel: a network namespace each, joined by a bridge in the head's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

NET = "10.213.7"


class Network:
    """Made by root alone, and gone after `close`.

    Raises:
        OSError: namespaces or links cannot be made here; says why.
    """

    def __init__(self, machines: Sequence[str]) -> None:
        self.tag = f"rq{os.getpid() % 100000}"
        self.head = f"{self.tag}-head"
        self.address = f"{NET}.1"
        self.machines = list(machines)
        self.made: list[str] = []
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        self._namespace(self.head)
        self._ip("-n", self.head, "link", "add", "br0", "type", "bridge")
        self._ip("-n", self.head, "addr", "add", f"{self.address}/24", "dev", "br0")
        self._ip("-n", self.head, "link", "set", "br0", "up")
        for number, name in enumerate(self.machines):
            space = self.of(name)
            self._namespace(space)
            self._ip("-n", self.head, "link", "add", f"to-{name}", "type", "veth", "peer", "eth0", "netns", space)
            self._ip("-n", self.head, "link", "set", f"to-{name}", "master", "br0", "up")
            self._ip("-n", space, "addr", "add", f"{NET}.{10 + number}/24", "dev", "eth0")
            self._ip("-n", space, "link", "set", "eth0", "up")

    def _namespace(self, name: str) -> None:
        self._ip("netns", "add", name)
        self.made.append(name)
        self._ip("-n", name, "link", "set", "lo", "up")

    def of(self, name: str) -> str:
        return f"{self.tag}-{name}"

    def inside(self, name: str = "") -> tuple[str, ...]:
        """What a command is prefixed with to run on a machine, or on the head."""
        return ("ip", "netns", "exec", self.of(name) if name else self.head)

    def cut(self, name: str) -> None:
        """Pull a machine's cable."""
        self._ip("-n", self.head, "link", "set", f"to-{name}", "down")

    def mend(self, name: str) -> None:
        self._ip("-n", self.head, "link", "set", f"to-{name}", "up")

    def _ip(self, *words: str) -> None:
        try:
            done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise OSError("there is no `ip` (iproute2) on this machine") from error
        if done.returncode != 0:
            raise OSError(f"`ip {' '.join(words)}`: {done.stderr.strip()}")

    def close(self) -> None:
        for name in self.made:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
