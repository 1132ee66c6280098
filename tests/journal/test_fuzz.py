"""Journals that any damage has befallen are read or refused as damaged, and nothing else; reading changes none."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runq import summary
from runq_journal import Journal, JournalReader
from runq_journal.reader import PLAN_FIELDS
from runq_journal.view_rows import ORDERS
from runq_schemas import events as ev
from runq_schemas.errors import JournalError

GOLDEN = Path(__file__).with_name("golden-v1.db").read_bytes()
PAGE_BYTES = 4096


def read_everything(path: Path) -> None:
    """Whatever any command reads."""
    with JournalReader.open(path) as reader:
        list(reader.breaks())
        list(reader.events())
        reader.unfinished_helper()
        for view in ORDERS:
            reader.view(view)
        for night in reader.night_ids():
            reader.samples(night)
            reader.deaths(night)
            reader.open_entry(night)
            list(reader.plans(night))
            built = summary.build(reader, night)
            summary.to_json(built)
            summary.to_markdown(built)


def is_read_or_refused(content: bytes) -> bool:
    """Whether it is read; a `JournalError` is the only way to refuse it, and no byte of it may change."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        path.write_bytes(content)
        try:
            read_everything(path)
        except JournalError as error:
            assert error.remedy
            return False
        finally:
            assert path.read_bytes() == content
        return True


places = st.integers(0, len(GOLDEN) - 1)
damages = st.one_of(
    st.tuples(st.just("put"), places, st.binary(min_size=1, max_size=20)),
    st.tuples(st.just("insert"), places, st.binary(min_size=1, max_size=20)),
    st.tuples(st.just("cut"), places, st.just(b"")),
    st.tuples(st.just("blank"), places, st.just(bytes(PAGE_BYTES))),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(damages, min_size=1, max_size=6))
def test_a_damaged_journal_is_read_or_refused(told: list[tuple[str, int, bytes]]) -> None:
    content = bytearray(GOLDEN)
    for how, place, text in told:
        if how == "cut":
            del content[place:]
        elif how == "insert":
            content[place:place] = text
        else:
            content[place : place + len(text)] = text[: max(0, len(content) - place)]
    is_read_or_refused(bytes(content))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=3000))
def test_any_file_is_refused(content: bytes) -> None:
    assert not is_read_or_refused(content)
    assert not is_read_or_refused(GOLDEN[:100] + content)


def scattered(seed: int) -> bytes:
    """The damage of a seed: changed bytes and bits, cuts, blank stretches, insertions and copies from elsewhere."""
    rng, content = random.Random(seed), bytearray(GOLDEN)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        kind, place = rng.random(), rng.randrange(len(content))
        if kind < 0.5:
            content[place] = rng.randrange(256)
        elif kind < 0.6:
            del content[place:]
        elif kind < 0.7:
            content[place : place + PAGE_BYTES] = bytes(min(PAGE_BYTES, len(content) - place))
        elif kind < 0.8:
            content[place:place] = rng.randbytes(rng.randrange(1, 50))
        elif kind < 0.9:
            content[place] ^= 1 << rng.randrange(8)
        else:
            other = rng.randrange(len(content))
            content[place : place + 100] = content[other : other + 100]
        content = content or bytearray(b"x")
    return bytes(content)


FOUND = (
    pytest.param(13, id="an event without data"),
    pytest.param(472, id="data that is no text"),
    pytest.param(1626, id="a sample without a time"),
    pytest.param(5491, id="a plan without plugins"),
)


@pytest.mark.parametrize("seed", FOUND)
def test_damage_that_once_was_not_told_as_damage(seed: int) -> None:
    is_read_or_refused(scattered(seed))


@pytest.mark.parametrize("seed", range(60))
def test_scattered_damage_never_loses_an_event_unseen(tmp_path: Path, seed: int) -> None:
    """What still opens for writing holds its last event, and what still verifies holds all of them, unchanged."""
    sound, damaged = tmp_path / "sound.db", tmp_path / "damaged.db"
    sound.write_bytes(GOLDEN)
    damaged.write_bytes(scattered(seed))
    with JournalReader.open(sound) as reader:
        events = list(reader.events())
    try:
        with JournalReader.open(damaged) as reader:
            whole = reader.verify() is None and list(reader.events()) == events
            broken = reader.verify() is not None
    except JournalError:
        return
    assert whole or broken
    try:
        Journal.open(damaged).close()
    except JournalError:
        return
    with JournalReader.open(damaged) as reader:
        last = reader.last_event()
    assert last is not None and last.id == events[-1].id


def test_what_every_plan_says_is_what_its_class_requires() -> None:
    required = {f.name for f in attrs.fields(ev.NightStarted) if f.default is attrs.NOTHING}
    assert required == set(PLAN_FIELDS)
