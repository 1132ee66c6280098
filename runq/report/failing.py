"""What failed, why, how its log ended and what to do: a card for each entry that is not complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from runq.report import remedies

if TYPE_CHECKING:
    from runq.report.gathered import Gathered

_NOT_FAILED = frozenset({"complete", "pending", "running"})


@attrs.frozen(kw_only=True)
class FailedAttempt:
    """One attempt that ended otherwise than ok: its row of the view `failure`, and what to do."""

    row: Mapping[str, Any]
    remedy: str


@attrs.frozen(kw_only=True)
class FailedEntry:
    """An entry that is not complete, or became so only in a later attempt.

    Args:
        entry: the summary's.
        attempts: those that failed, the newest first.
        remedy: what to do where no attempt tells; empty otherwise.
    """

    entry: Mapping[str, Any]
    attempts: tuple[FailedAttempt, ...]
    remedy: str = ""

    @property
    def mended(self) -> bool:
        """Whether a later attempt was good."""
        return bool(self.entry["status"] in _NOT_FAILED)


def failed_entries(found: Gathered) -> list[FailedEntry]:
    """The entries with a failure, in the order of the queue; those that a later attempt mended come last."""
    limits = {(row["entry"], row["step"], row["attempt"]): row for row in found.attempts}
    rows: dict[int, list[FailedAttempt]] = {}
    for row in reversed(found.failures):
        attempt = limits.get((row["entry"], row["step"], row["attempt"]), {"timeout_s": None, "stall_timeout_s": None})
        rows.setdefault(row["entry"], []).append(FailedAttempt(row=row, remedy=remedies.of_attempt(row, attempt)))
    cards = [_card(entry, rows.get(entry["id"], [])) for entry in found.entries]
    return sorted((card for card in cards if card is not None), key=lambda card: card.mended)


def _card(entry: Mapping[str, Any], attempts: Sequence[FailedAttempt]) -> FailedEntry | None:
    if entry["status"] in _NOT_FAILED and not attempts:
        return None
    reason = entry["reason"] or entry["error"] or ""
    # An attempt that failed says all; an entry that was skipped or set aside has a reason of its own.
    told = entry["status"] in _NOT_FAILED or any(attempt.row["reason"] == reason for attempt in attempts)
    return FailedEntry(entry=entry, attempts=tuple(attempts), remedy="" if told else remedies.of_entry(reason))
