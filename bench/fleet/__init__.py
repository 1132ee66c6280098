"""A night on a hundred machines, played: real head, real scheduler, real workers, entries that only sleep."""
