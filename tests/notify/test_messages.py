"""The words of a notification, and where it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from runq.notify.messages import TITLE_LENGTH, Watch, message, night_over
from runq.notify.urls import kind_of, urls_of
from runq_schemas.errors import UsageError
from runq_schemas.events import EntryFinished, NightInterrupted


def entry(number: int, **more: object) -> dict[str, object]:
    return {"id": number, "model_id": f"m{number}", "status": "complete", "reason": "", **more}


def test_the_end_in_one_line_and_every_entry_below() -> None:
    entries = [entry(0), entry(1, status="incomplete", reason="eval: it\nexited with 1"), entry(2, status="pending")]
    told = night_over({"total": 3, "complete": 1, "failed": 1, "entries": entries}, "3 failures in a row")
    assert told.title == "runq: night finished - 1 of 3 complete, 1 failed, 1 left"
    assert told.body.splitlines() == [
        "stopped early: 3 failures in a row", "e0 m0: complete", "e1 m1: incomplete - eval: it exited with 1",
        "e2 m2: pending",
    ]  # fmt: skip
    assert told.urgency == "warning"
    assert night_over({"total": 1, "complete": 1, "failed": 0, "entries": [entry(0)]}).urgency == "success"


def test_a_first_line_fits_a_lock_screen() -> None:
    long = message("x" * 500 + "\nmore", "", "info").title
    assert len(long) == TITLE_LENGTH
    assert long.endswith("…")


def test_a_good_entry_ends_a_row_of_bad_ones() -> None:
    watch = Watch()
    ends = ["failed", "complete", "failed", "skipped", "failed"]
    told = [watch.event(EntryFinished(status=end, reason="r"), 0) for end in ends]  # type: ignore[arg-type]
    assert [one.title if one else None for one in told] == [
        "runq: entry 0 failed - r", None, "runq: entry 0 failed - r",
        "runq: night in trouble - 2 entries in a row failed", "runq: entry 0 failed - r",
    ]  # fmt: skip


def test_an_interrupted_night_is_told() -> None:
    told = Watch().event(NightInterrupted(reason="SIGTERM"), None)
    assert told is not None
    assert told.title == "runq: night interrupted - SIGTERM"


def test_where_urls_come_from(tmp_path: Path) -> None:
    (tmp_path / "default").write_text("ntfy://host/topic\n  # no\n\n json://x \n")
    (tmp_path / "named").write_text("gotify://h/t\n")
    default = tmp_path / "default"
    assert urls_of({}, default) == ("ntfy://host/topic", "json://x")
    assert urls_of({"RUNQ_NOTIFY_FILE": str(tmp_path / "named")}, default) == ("gotify://h/t",)
    assert urls_of({"RUNQ_NOTIFY": "a://1  b://2\nc://3"}, default) == ("a://1", "b://2", "c://3")
    assert urls_of({"RUNQ_NOTIFY": ""}, default) == ()
    assert urls_of({}, tmp_path / "none") == ()
    with pytest.raises(UsageError, match="does not exist"):
        urls_of({"RUNQ_NOTIFY_FILE": str(tmp_path / "none")}, default)


@pytest.mark.parametrize(
    ("url", "kind"),
    [("tgram://123:secret/1", "tgram"), ("no url", "a text that is no URL"), ("", "a text that is no URL")],
)
def test_only_the_kind_of_a_url_is_shown(url: str, kind: str) -> None:
    assert kind_of(url) == kind
