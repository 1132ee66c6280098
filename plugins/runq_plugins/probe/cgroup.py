"""Memory inside a container, where the machine's own counters are the host's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

import attrs

from runq.plugin import PluginError

MB = 2**20

NO_LIMIT = 2**62
"""From here on a limit of version 1 is none: it says so by the largest multiple of the page size below 2**63."""

PROC = Path("/proc/self")


@attrs.frozen(kw_only=True)
class _Names:
    """What the two versions of control groups call the same figures."""

    limit: str
    usage: str
    anonymous: str
    mapped: str
    files: tuple[str, str]


V1 = _Names(
    limit="memory.limit_in_bytes",
    usage="memory.usage_in_bytes",
    anonymous="total_rss",
    mapped="total_mapped_file",
    files=("total_inactive_file", "total_active_file"),
)
V2 = _Names(
    limit="memory.max",
    usage="memory.current",
    anonymous="anon",
    mapped="file_mapped",
    files=("inactive_file", "active_file"),
)


@attrs.frozen
class Group:
    """One control group: its folder and the names of its version's figures."""

    folder: Path
    names: _Names

    def held_mb(self) -> float:
        """Anonymous memory and mapped files, in MB."""
        stat = self._stat()
        return (self._of(stat, self.names.anonymous) + self._of(stat, self.names.mapped)) / MB

    def left_mb(self) -> float | None:
        """What its limit leaves, in MB; ``None`` without a limit. Files that nobody maps are given back when asked."""
        limit = self._read(self.names.limit).strip()
        if limit == "max" or int(limit) >= NO_LIMIT:
            return None
        stat = self._stat()
        unmapped = sum(self._of(stat, name) for name in self.names.files) - self._of(stat, self.names.mapped)
        return (int(limit) - int(self._read(self.names.usage)) + max(0, unmapped)) / MB

    def _stat(self) -> dict[str, int]:
        pairs = (line.split() for line in self._read("memory.stat").splitlines())
        return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}

    def _of(self, stat: dict[str, int], name: str) -> int:
        if name not in stat:
            raise PluginError(f"{self.folder / 'memory.stat'} has no {name}", remedy="use the probe `system`")
        return stat[name]

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="ascii")
        except OSError as error:
            raise PluginError(
                f"{self.folder / name} cannot be read: {error.strerror}", remedy="use the probe `system`"
            ) from error


@attrs.frozen(kw_only=True)
class CgroupProbe:
    """What the processes of a control group hold: anonymous memory and mapped files.

    The group's whole usage would count the page cache too, which the last model leaves behind and the system takes
    back whenever it likes (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst). What is free is told by the
    least limit of the group and all above it.
    """

    path: str | None = attrs.field(
        default=None,
        metadata={"description": "The group's folder, somewhere under /sys/fs/cgroup; runq's own group without it."},
    )

    formula: ClassVar[str] = (
        "memory.stat of the control group: anon + file_mapped (version 1: total_rss + total_mapped_file),"
        " in MB (2**20 bytes)"
    )

    def read_mb(self) -> float:
        """The figure now, in MB.

        Raises:
            PluginError: there is no control group for memory, or its files cannot be read.
        """
        return self._groups()[0].held_mb()

    def free_mb(self) -> float:
        """What the least limit leaves, in MB.

        Raises:
            PluginError: as above, or no group has a limit; then the machine's memory is the limit.
        """
        left = [mb for group in self._groups() if (mb := group.left_mb()) is not None]
        if not left:
            raise PluginError(
                "no control group above the probe's has a limit, so what is free is the machine's",
                remedy="name the probe `system` before `cgroup`",
            )
        return min(left)

    def _groups(self) -> list[Group]:
        """The group and those above it."""
        if sys.platform != "linux":
            raise PluginError("control groups are Linux's", remedy="use the probe `system`")
        if self.path is None:
            return own_groups(PROC)
        folder = Path(self.path)
        return above(folder, V2 if (folder / V2.usage).exists() else V1, top=folder)


def own_groups(proc: Path) -> list[Group]:
    """The memory group of a process and those above it, as far as they can be seen from where it runs.

    Args:
        proc: the process's folder in /proc (cgroups(7): ``cgroup`` and ``mountinfo``).

    Raises:
        PluginError: there is none.
    """
    paths: dict[str, str] = {}
    for line in _text(proc / "cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        paths.update(
            dict.fromkeys(controllers.split(","), path) if controllers else {"": path} if number == "0" else {}
        )
    mounts = [_mount(line) for line in _text(proc / "mountinfo").splitlines()]
    for key, names in (("memory", V1), ("", V2)):
        if key not in paths:
            continue
        for root, point, kind, options in mounts:
            if (kind == "cgroup2") if names is V2 else (kind == "cgroup" and "memory" in options.split(",")):
                # In a container the mount may begin at the group itself, whose path is then told from the host's root.
                inner = paths[key].removeprefix(root.rstrip("/")).lstrip("/")
                folder = Path(point) / inner if (Path(point) / inner).is_dir() else Path(point)
                groups = [group for group in above(folder, names, top=Path(point)) if _counts(group)]
                if groups:
                    return groups
    raise PluginError("this process has no control group that counts memory", remedy="use the probe `system`")


def above(folder: Path, names: _Names, *, top: Path) -> list[Group]:
    """The group of a folder and those above it, up to ``top``."""
    folders = [folder, *folder.parents]
    return [Group(one, names) for one in folders[: folders.index(top) + 1]]


def _counts(group: Group) -> bool:
    """The root group of version 2 has no usage of its own."""
    return (group.folder / group.names.usage).exists()


def _mount(line: str) -> tuple[str, str, str, str]:
    """Root, mount point, type and super options of a line of mountinfo (proc_pid_mountinfo(5))."""
    before, _, after = line.partition(" - ")
    fields, rest = before.split(), after.split()
    return fields[3], fields[4], rest[0], rest[-1]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise PluginError(f"{file} cannot be read: {error.strerror}", remedy="use the probe `system`") from error
