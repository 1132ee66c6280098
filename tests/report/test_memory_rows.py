"""The curve of memory as rows, from a night told at known seconds; and readings thinned without losing a peak."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runq.report.gathered import gather
from runq.report.labels import DOT, HEIGHT, WIDTH, Box, place
from runq.report.memory_rows import panels, probes
from runq_journal import Journal, JournalReader, Sample
from runq_schemas import events as ev

NIGHT = "2026-10-01_220000"


def settle(told: Any, entry: int, seconds: float, start_mb: float, final_mb: float, *, proven: bool) -> None:
    told.say(ev.SettleStarted(reference_mb={"system": None}), entry)
    told.seconds += seconds - 1
    one = ev.SettledProbe(
        probe="system",
        status="settled" if proven else "dirty",
        proven=proven,
        waited_s=seconds,
        start_mb=start_mb,
        final_mb=final_mb,
        polls=3,
        reference_mb=None,
        still_loaded=None,
    )
    told.say(
        ev.SettleFinished(
            status=one.status, proven=proven, waited_s=seconds, baseline_mb={"system": final_mb}, probes=(one,)
        ),
        entry,
    )


def step(told: Any, entry: int, readings: list[float], status: Any = "ok") -> None:
    told.started(entry, "eval")
    begin = told.seconds
    told.journal.add_samples(
        Sample(
            night=told.night,
            at=told.start + timedelta(seconds=begin + number),
            entry=entry,
            step="eval",
            probe="system",
            mb=mb,
        )
        for number, mb in enumerate(readings)
    )
    told.seconds = begin + len(readings) - 1
    told.finished(entry, "eval", status, seconds=float(len(readings)))


def test_curve_bands_baselines_and_names(told: Any) -> None:
    told.plan("gemma", "qwen")  # second 1, which is 22:00:01 on the night's own clock
    told.say(ev.EntryStarted(), 0)
    settle(told, 0, 10, 5000.0, 4000.0, proven=True)  # 3 to 13
    step(told, 0, [4000.0, 9000.0, 12000.0])  # 14 to 17
    told.say(ev.EntryStarted(), 1)
    settle(told, 1, 10, 12000.0, 4900.0, proven=False)  # 19 to 29
    step(told, 1, [5000.0, 6000.0], "failed")  # 30 to 32
    told.say(ev.EntryFinished(status="incomplete"), 1)
    told.say(ev.NightFinished(total=2, complete=1))  # 34

    found = gather(told.path, None)
    assert probes(found) == ["system"]
    (panel,) = panels(found, "system")

    def second(moment: datetime) -> float:
        return (moment - datetime(2026, 10, 1, 22)).total_seconds()

    assert (panel.title, second(panel.start), second(panel.end)) == ("Started 22:00", 1, 34)
    assert [(second(p["at"]), p["mb"], p["part"]) for p in panel.points] == [
        (3, 5000.0, 0),
        (13, 4000.0, 0),
        (14, 4000.0, 0),
        (15, 9000.0, 0),
        (16, 12000.0, 0),
        (19, 12000.0, 0),
        (29, 4900.0, 0),
        (30, 5000.0, 0),
        (31, 6000.0, 0),
    ]
    assert [(b["about"], second(b["start"]), second(b["end"])) for b in panel.bands] == [
        ("e0 settle settled, 10 s", 3, 13),
        ("e0 eval ok, 3 s", 14, 17),
        ("e1 settle dirty, 10 s", 19, 29),
        ("e1 eval failed, 2 s", 30, 32),
    ]
    assert [(b["mb"], b["proven"], second(b["start"]), second(b["end"])) for b in panel.baselines] == [
        (4000.0, True, 13, 19),
        (4900.0, False, 29, 34),
    ]
    assert [(e["name"], second(e["at"]), e["bad"]) for e in panel.entries] == [("e0", 3, False), ("e1", 19, True)]


def test_a_line_breaks_where_nobody_read(told: Any) -> None:
    told.plan("gemma")
    step(told, 0, [1.0, 2.0])
    told.seconds += 3600
    step(told, 0, [3.0])
    (panel,) = panels(gather(told.path, None), "system")
    assert [(p["mb"], p["part"]) for p in panel.points] == [(1.0, 0), (2.0, 0), (3.0, 1)]


def test_each_resume_has_a_panel_of_its_own(told: Any) -> None:
    told.plan("gemma")
    step(told, 0, [1.0, 2.0], "interrupted")
    told.say(ev.NightInterrupted(reason="SIGINT"))
    told.seconds = 7200
    told.plan("gemma", cls=ev.NightResumed)
    step(told, 0, [3.0, 4.0])
    told.say(ev.NightFinished(total=1, complete=1))
    assert [(p.title, [point["mb"] for point in p.points]) for p in panels(gather(told.path, None), "system")] == [
        ("Started 22:00", [1.0, 2.0]),
        ("Resumed 00:00", [3.0, 4.0]),
    ]


@settings(max_examples=30, deadline=None)
@given(
    readings=st.lists(st.floats(0, 1e6).map(lambda mb: round(mb, 1)), min_size=1, max_size=60),
    width=st.integers(1, 40),
)
def test_thinning_loses_no_extreme(tmp_path_factory: Any, readings: list[float], width: int) -> None:
    """Against a plain loop: of every ``width`` seconds since 1970 the lowest and the highest, and nothing else."""
    path = tmp_path_factory.mktemp("thin") / "journal.db"
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    pieces: dict[int, list[float]] = {}
    with Journal.open(path) as journal:
        journal.append(ev.Warned(message="so that it is begun"), night=NIGHT)
        rows = []
        for number, mb in enumerate(readings):
            # In the middle of a second: julianday() is good to a millisecond.
            at = begin + timedelta(seconds=number + 0.5)
            rows.append(Sample(night=NIGHT, at=at, entry=0, step="eval", probe="system", mb=mb))
            pieces.setdefault(int((at.timestamp() + 210866760000) // width), []).append(mb)  # Julian days begin then
        journal.add_samples(rows)
    with JournalReader.open(path) as reader:
        kept = [sample.mb for sample in reader.thinned_samples(NIGHT, float(width))]
    assert sorted(set(kept)) == sorted({extreme(piece) for piece in pieces.values() for extreme in (min, max)})
    assert len(kept) <= 2 * len(pieces)


def test_names_of_points_never_meet() -> None:
    points = [
        (100.0, 100.0, "e0 gemma"),
        (110.0, 102.0, "e1 qwen"),
        (395.0, 50.0, "e2 llama"),
        (100.0, 100.0, "e3 phi"),
    ]
    spots = place(points, 400, 200)
    # To the right of the first point stands the second: its name goes to the left.
    assert spots[0] == (100.0 - DOT - 3 - len("e0 gemma") * WIDTH, 100.0)
    boxes = [
        Box(spot[0], spot[1] - HEIGHT / 2, spot[0] + WIDTH * len(name), spot[1] + HEIGHT / 2)
        for spot, (_, _, name) in zip(spots, points, strict=True)
        if spot is not None
    ]
    assert len(boxes) == 4
    for number, box in enumerate(boxes):
        assert box.left >= 0 and box.right <= 400
        assert not any(box.meets(other) for other in boxes[number + 1 :])
        assert not any(box.meets(Box(x - DOT, y - DOT, x + DOT, y + DOT)) for x, y, _ in points)


def test_a_name_without_room_is_left_out() -> None:
    crowd = [(50.0, 50.0, "a long name")] * 20
    spots = place(crowd, 100, 100)
    assert 0 < sum(spot is not None for spot in spots) < 20


def test_the_offset_of_the_night_s_own_clock(told: Any, tmp_path: Path) -> None:
    told.plan("gemma")
    assert gather(told.path, None).offset == timedelta(hours=2)
