"""The disk of the runs folder while a night runs: whether it is full, and the room that is kept back for that case.

A step that fills the disk costs itself. What was kept back goes to the journal's words and to the entries that still
have their turn; nothing that a step wrote is deleted or cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runq_journal.reserve import Reserve, free_bytes, reserve_path

if TYPE_CHECKING:
    from runq.record import Recorder
    from runq_journal.journal import Journal

MB = 2**20

FULL_BYTES = 2**17
"""With less room a disk counts as full: 128 KiB hold a commit of the journal and a summary, and no more."""

FULL_FOR_S = 3.0
"""A step is ended when the disk has been full for so long: another program's file may be gone again at once."""

NO_SPACE = "no space left on the disk of the runs folder"


@attrs.define
class NightDisk:
    """Looks at the disk, and gives away what is kept back on it.

    Args:
        recorder: where a warning goes.
        folder: the runs folder.
        free: the bytes that may still be written on the disk of a folder.
    """

    recorder: Recorder
    folder: Path
    free: Callable[[Path], int] = free_bytes
    took_mb: dict[str, float] = attrs.field(factory=dict, init=False)
    """What the largest good bundle of each pack took so far, in MB; the pack as written, empty without one."""
    was_full: bool = attrs.field(default=False, init=False)
    """Whether the disk was full since `begin_step`."""
    _full_since_s: float | None = attrs.field(default=None, init=False)
    _reserve: Reserve | None = attrs.field(default=None, init=False)
    _untold: int = attrs.field(default=0, init=False)

    @contextmanager
    def keeping(self, journal: Journal) -> Iterator[None]:
        """Keep room back until the block ends, for the journal and for what `ready` is called before."""
        self._reserve = Reserve(reserve_path(journal.path))
        self._reserve.keep()
        journal.room = self._room
        try:
            yield
        finally:
            self._reserve.close()

    def free_mb(self) -> float | None:
        """What may still be written, in MB; ``None`` where the folder cannot be looked at."""
        try:
            return self.free(self.folder) / MB
        except OSError:
            return None

    def full(self) -> bool:
        """Whether the disk has no room to speak of."""
        free_mb = self.free_mb()
        return free_mb is not None and free_mb * MB < FULL_BYTES

    def took(self, pack: str | None, mb: float) -> None:
        """A good attempt on a pack has taken so much."""
        self.took_mb[pack or ""] = max(mb, self.took_mb.get(pack or "", 0.0))

    def begin_step(self) -> None:
        """What was before does not count against the step that begins."""
        self.was_full, self._full_since_s = False, None

    def full_for_long(self, now_s: float) -> bool:
        """Look while a step runs: whether the disk has been full at every look of the last `FULL_FOR_S` seconds."""
        if not self.full():
            self._full_since_s = None
            return False
        self.was_full = True
        if self._full_since_s is None:
            self._full_since_s = now_s
        return now_s - self._full_since_s >= FULL_FOR_S

    def ready(self) -> None:
        """Call it before anything starts: on a full disk it makes some room, on another it keeps some back again."""
        if self.full():
            self.give()
        elif self._reserve is not None:
            self._reserve.keep()
        if self._untold:
            given, self._untold = self._untold, 0
            left = self._reserve.held if self._reserve is not None else 0
            self.recorder.warn(
                f"the disk of {self.folder} was full; of the room kept back on it {given / MB:.1f} MB went to what was"
                f" still to be written, {left / MB:.1f} MB are left",
                "free space there: the night goes on in what is left",
            )

    def give(self) -> int:
        """Give half of the room that is kept back. Returns the bytes given, 0 when none is left."""
        given = self._reserve.give() if self._reserve is not None else 0
        self._untold += given
        return given

    @contextmanager
    def _room(self) -> Iterator[Callable[[], object]]:
        """Room for the journal; what fills the disk stands still meanwhile, and so cannot take it."""
        from runq.processes import freeze, thaw

        frozen = freeze()
        try:
            yield self.give
        finally:
            thaw(frozen)
