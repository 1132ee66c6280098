"""Reading a journal, live or past: its events and its views."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from runq_journal.connection import connect_read_only, connect_reader, damaged, has_wal, is_journal, translated
from runq_journal.stored import Sample, StoredEvent, parsed_data, stored_event, timestamp
from runq_journal.thinning import THINNED
from runq_journal.view_files import create_temporary, stale_views
from runq_journal.view_rows import ORDERS, Row, meant
from runq_schemas.errors import JournalError

if TYPE_CHECKING:
    from runq_journal.chain import Break
    from runq_journal.tables import Table

PLAN_FIELDS = (
    "queue_path",
    "queue_sha256",
    "base_dir",
    "runs_dir",
    "queue_dir",
    "started_local",
    "entries",
    "host",
    "boot_id",
    "pid",
    "versions",
    "plugins",
)
"""What every plan has said since the first version; a test compares it with the class, which is not imported here."""

_EVENT = "SELECT id, night, at, elapsed_s, kind, entry, step, attempt, data, prev_hash, hash FROM event"


class JournalReader:
    """Answers from the journal. Made by `JournalReader.open`, or by `Journal.reader` over the writer's connection.

    Every method raises `JournalError` when the journal cannot be read.
    """

    def __init__(self, path: Path, conn: sqlite3.Connection, *, owns: bool = False) -> None:
        self.path = path
        self._conn = conn
        self._owns = owns

    @classmethod
    def open(cls, path: Path, *, upto: int | None = None, at_rest: bool = False) -> Self:
        """Open the journal for reading only; a writer may be busy meanwhile.

        Args:
            path: the file.
            upto: the last event that counts: every answer is what it was right after that event.
            at_rest: nobody writes meanwhile; then no `-shm` file is made beside a journal that has no `-wal` file.

        Raises:
            JournalError: there is none, it is something else, or it cannot be read.
        """
        path = Path(path)
        if not path.exists():
            raise JournalError(
                "There is no journal",
                where=str(path),
                remedy="Start a night with `runq night QUEUE`, or name the runs folder with --runs.",
            )
        with translated(path, "read"):
            if not is_journal(path):
                raise JournalError("The journal is still empty", where=str(path), remedy="Start a night first.")
            still = at_rest and not has_wal(path)
            conn = connect_read_only(path, immutable=True) if still else connect_reader(path)
            try:
                _scope(conn, upto)
            except BaseException:
                conn.close()
                raise
        return cls(path, conn, owns=True)

    def close(self) -> None:
        """Close the file, unless the connection is the writer's; closing twice does nothing."""
        if self._owns:
            self._conn.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def uuid(self) -> str:
        """The journal's own id."""
        rows = self._query("SELECT value FROM meta WHERE key = 'uuid'")
        return str(rows[0]["value"]) if rows else ""

    @property
    def last_event_id(self) -> int:
        """The number of the last event; 0 when there is none."""
        return int(self._query("SELECT coalesce(max(id), 0) AS id FROM event")[0]["id"])

    def verify(self) -> Break | None:
        """The first break of the hash chain of the whole journal; ``None`` when it holds."""
        return next(self.breaks(), None)

    def breaks(self) -> Iterator[Break]:
        """Every break of the hash chain of the whole journal; see `runq_journal.verify`."""
        from runq_journal.chain import verify

        with translated(self.path, "read"):
            yield from verify(self._conn)

    def count(self) -> int:
        """How many events there are."""
        return int(self._query("SELECT count(*) AS n FROM event")[0]["n"])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Every answer inside the block is of one moment, though a night writes meanwhile."""
        with translated(self.path, "read"):
            self._conn.execute("BEGIN")
        try:
            yield
        finally:
            self._conn.execute("ROLLBACK")

    def events(
        self,
        night: str | None = None,
        entry: int | None = None,
        step: str | None = None,
        kinds: Iterable[str] | None = None,
        *,
        after: int = 0,
    ) -> Iterator[StoredEvent]:
        """The events in their order, one by one; ``None`` does not restrict.

        Args:
            night: only of this night.
            entry: only of this entry id.
            step: only of this step.
            kinds: only of these kinds.
            after: only those with a greater id, to follow a night.
        """
        where = ["id > ?"]
        values: list[Any] = [after]
        for column, value in (("night", night), ("entry", entry), ("step", step)):
            if value is not None:
                where.append(f"{column} = ?")
                values.append(value)
        if kinds is not None:
            chosen = tuple(kinds)
            where.append(f"kind IN ({', '.join('?' * len(chosen))})")
            values.extend(chosen)
        with translated(self.path, "read"):
            for row in self._conn.execute(f"{_EVENT} WHERE {' AND '.join(where)} ORDER BY id", values):
                yield stored_event(self.path, row)

    def rows(self, table: Table, nights: Collection[str] = ()) -> Generator[tuple[Any, ...], None, None]:
        """The rows of a table one by one, their values as SQLite keeps them; holds one row at a time.

        Args:
            table: one of `runq_journal.tables.TABLES`.
            nights: only of these; of all when there is none.
        """
        with translated(self.path, "read"):
            yield from self._conn.execute(table.select(len(nights)), tuple(nights))

    def last_event(self, night: str | None = None) -> StoredEvent | None:
        """The last event of a night, or of all; ``None`` when there is none."""
        where, values = ("", ()) if night is None else (" WHERE night = ?", (night,))
        return self._one(f"{_EVENT}{where} ORDER BY id DESC LIMIT 1", values)

    def night_of(self, event: int) -> str | None:
        """The night an event belongs to; ``None`` when there is no such event, or its night has no plan yet."""
        found = self._one(f"{_EVENT} WHERE id = ?", (event,))
        return found.night if found and self.view("night_plan", found.night) else None

    def samples(self, night: str, entry: int | None = None, step: str | None = None) -> list[Sample]:
        """The probe readings of a night, an entry or a step, in the order of time."""
        rows = self._query(
            "SELECT night, at, entry, step, probe, mb FROM sample WHERE night = ?1"
            " AND (?2 IS NULL OR entry = ?2) AND (?3 IS NULL OR step = ?3) ORDER BY at, id",
            (night, entry, step),
        )
        return [self._sample(row) for row in rows]

    def count_samples(self, before: datetime) -> int:
        """How many probe readings are older than a moment."""
        return int(self._query("SELECT count(*) AS n FROM sample WHERE at < ?", (timestamp(before),))[0]["n"])

    def newer_samples(self, night: str, entry: int, step: str, *, after: int) -> tuple[int, list[Sample]]:
        """To follow a step: its probe readings with a greater id than ``after``, in the order they were written, and
        the greatest id (``after`` itself when there is none)."""
        rows = self._query(
            # By id: the other columns' index would lead through every reading of a step that runs for hours.
            "SELECT id, night, at, entry, step, probe, mb FROM sample"
            " WHERE id > ? AND +night = ? AND +entry = ? AND +step = ? ORDER BY id",
            (after, night, entry, step),
        )
        return (rows[-1]["id"] if rows else after), [self._sample(row) for row in rows]

    def readings_after(self, night: str, after: int) -> Iterator[tuple[int, str, int, str, str, float]]:
        """The probe readings of a night behind a number: number, UTC time (ISO 8601), entry, step, probe, MB."""
        with translated(self.path, "read"):
            yield from self._conn.execute(
                "SELECT id, at, entry, step, probe, mb FROM sample WHERE night = ? AND id > ? ORDER BY id",
                (night, after),
            )

    def leases(self, night: str | None = None) -> list[Row]:
        """Every lease, oldest first; ``ended`` is ``None`` for one that is open."""
        return self.view("lease", night)

    def thinned_samples(self, night: str, width_s: float) -> list[Sample]:
        """The lowest and the highest reading of each probe and step in every ``width_s`` seconds, in the order of time.

        No peak is lost, and a night of half a million readings becomes a line that can be drawn.
        """
        return [self._sample(row) for row in self._query(THINNED, {"night": night, "width_s": width_s})]

    def last_sample_at(self, night: str, entry: int, step: str, before: str | None = None) -> datetime | None:
        """When the last reading was taken while a step ran; ``before`` an event's ``at``."""
        rows = self._query(
            "SELECT max(at) AS at FROM sample WHERE night = ?1 AND entry = ?2 AND step = ?3"
            " AND (?4 IS NULL OR at < ?4)",
            (night, entry, step, before),
        )
        return None if rows[0]["at"] is None else datetime.fromisoformat(rows[0]["at"])

    def last_sample(self, night: str, entry: int, step: str, probe: str | None) -> Sample | None:
        """The latest reading of a probe while a step ran; ``None`` when there is none."""
        rows = self._query(
            "SELECT night, at, entry, step, probe, mb FROM sample"
            " WHERE night = ? AND entry = ? AND step = ? AND probe = ? ORDER BY at DESC LIMIT 1",
            (night, entry, step, probe),
        )
        return self._sample(rows[0]) if rows else None

    def latest_plan(self, night: str) -> dict[str, Any]:
        """What the newest ``night.started`` or ``night.resumed`` of the night says.

        Raises:
            JournalError: there is no such night.
        """
        rows = self._query("SELECT plan_event, data FROM night_plan WHERE night = ?", (night,))
        if not rows:
            raise self._no_night(night)
        event = rows[0]["plan_event"]
        return self._plan(event, parsed_data(self.path, event, rows[0]["data"]))

    def plans(self, night: str) -> Iterator[dict[str, Any]]:
        """What every ``night.started`` and ``night.resumed`` of the night says, the oldest first."""
        plans = self.events(night, kinds=("night.started", "night.resumed"))
        return (self._plan(event.id, event.data) for event in plans)

    def _plan(self, event: int, data: dict[str, Any]) -> dict[str, Any]:
        """A plan that has all that any version ever wrote into one: whoever uses it need not ask."""
        if missing := next((name for name in PLAN_FIELDS if name not in data), None):
            raise damaged(self.path, f"the plan in event {event} has no {missing!r}")
        return data

    def references(self, night: str, boot_id: str) -> dict[str, float]:
        """For each probe the last baseline of the night in this boot that settled after a verified reset, in MB."""
        rows = self._query(
            "SELECT probe, baseline_mb, max(event) FROM baseline WHERE night = ? AND boot_id = ?"
            " AND reset_verdict = 'verified' AND status = 'settled' GROUP BY probe",
            (night, boot_id),
        )
        return {row["probe"]: float(row["baseline_mb"]) for row in rows}

    def view(self, name: str, night: str | None = None) -> list[Row]:
        """The rows of a view, of one night or of all.

        Args:
            name: a view's name, as its ``.sql`` file has it.
            night: only of this night.

        Raises:
            KeyError: there is no such view.
        """
        order = ORDERS[name]  # also keeps any other text out of the statement
        if night is None:
            return self._query(f"SELECT * FROM {name} ORDER BY {order}")  # noqa: S608
        return self._query(f"SELECT * FROM {name} WHERE night = ? ORDER BY {order}", (night,))  # noqa: S608

    def night_ids(self) -> list[str]:
        """Every night's id, the newest first; answered by an index alone."""
        rows = self._query(
            "SELECT night FROM event WHERE kind IN ('night.started', 'night.resumed') GROUP BY night"
            " ORDER BY min(id) DESC"
        )
        return [row["night"] for row in rows]

    def latest_night(self) -> str | None:
        """The id of the night that began last; ``None`` when there is none."""
        rows = self._query("SELECT night FROM event WHERE +kind = 'night.started' ORDER BY id DESC LIMIT 1")
        return str(rows[0]["night"]) if rows else None

    def nights(self) -> list[Row]:
        """Every night's queue, state and times, the newest first; cheaper than their summaries."""
        return self.view("night")

    def unfinished_nights(self) -> list[str]:
        """The nights without a written end, the oldest first: running, or their runner died."""
        return [row["night"] for row in reversed(self.nights()) if row["state"] == "running"]

    def unfinished(self) -> list[Row]:
        """Every step and server of any night without a written end, with its process."""
        return self.view("unfinished")

    def unfinished_helper(self) -> StoredEvent | None:
        """The reset (with its settling) or restart that was under way when the last runner stopped writing.

        There is one writer at a time, so only the newest can be.
        """
        kinds = ("reset.started", "settle.finished", "entry.finished", "restart.started", "restart.finished")
        marks = ", ".join("?" * len(kinds))
        # The plus: walk backwards from the end, where the newest is near, instead of sorting what the index holds.
        last = self._one(f"{_EVENT} WHERE +kind IN ({marks}) ORDER BY id DESC LIMIT 1", kinds)
        return last if last is not None and last.kind.endswith(".started") else None

    def night_summary(self, night: str) -> Row:
        """The night's counts and state.

        Raises:
            JournalError: there is no such night.
        """
        rows = self.view("night_summary", night)
        if not rows:
            raise self._no_night(night)
        return rows[0]

    def night_summaries(self) -> list[Row]:
        """Every night's counts and state, the newest first."""
        return self.view("night_summary")

    def entry_results(self, night: str) -> list[Row]:
        """touchstone's fields and ours, one row for each entry of the newest plan, in the order of the file."""
        return self.view("entry_result", night)

    def step_states(self, night: str) -> list[Row]:
        """The last word on each step that has one."""
        return self.view("step_state", night)

    def step_results(self, night: str) -> list[Row]:
        """What each step of the newest plan stands at."""
        return self.view("step_result", night)

    def step_evidence(self, night: str) -> list[Row]:
        """What the last attempt of each step left behind, with the identity it ran with."""
        return self.view("step_evidence", night)

    def attempts(self, night: str | None = None) -> list[Row]:
        """Every attempt, oldest first within its entry; ``status`` is ``running`` for one that has no end."""
        return self.view("attempt", night)

    def attempts_of(self, night: str, entry: int, step: str) -> list[Row]:
        """Every attempt of one step, oldest first; costs the same in a long night."""
        return self._query(
            f"SELECT * FROM attempt WHERE night = ? AND entry = ? AND step = ? ORDER BY {ORDERS['attempt']}",  # noqa: S608
            (night, entry, step),
        )

    def servers(self, night: str | None = None) -> list[Row]:
        """Every server that was started; ``status`` is ``running`` for one that has no end."""
        return self.view("server", night)

    def todo(self, night: str) -> list[Row]:
        """The steps a resume runs by the journal's word, with the reason."""
        return self.view("todo", night)

    def deferred(self, night: str) -> list[Row]:
        """The steps of the newest plan that were left because of the deadline and have not started since."""
        return self.view("deferred", night)

    def deaths(self, night: str) -> dict[int, int]:
        """How often the runner died while an entry ran, by entry id; a count that was lifted is not there."""
        return {row["entry"]: row["deaths"] for row in self.view("entry_death", night)}

    def open_entry(self, night: str) -> int | None:
        """The entry that has started and not ended in a night that has no end: it runs, or its runner died."""
        kinds = (
            "night.started",
            "night.resumed",
            "night.interrupted",
            "night.finished",
            "entry.started",
            "entry.finished",
        )
        row = self._query(
            "SELECT kind, entry, json_extract(data, '$.origin') AS origin FROM event"  # noqa: S608
            f" WHERE night = ? AND kind IN ({', '.join('?' * len(kinds))})"
            " ORDER BY id DESC LIMIT 1",
            (night, *kinds),
        )
        return row[0]["entry"] if row and row[0]["kind"] == "entry.started" and row[0]["origin"] is None else None

    def model_deltas(self, night: str | None = None) -> list[Row]:
        """Baseline, peak and delta in MB of each attempt and probe."""
        return self.view("model_delta", night)

    def step_metrics(self, night: str) -> list[Row]:
        """The scores of a night's entries, of the steps that are ok and count."""
        return self.view("step_metric", night)

    def metrics(self, night: str | None = None) -> list[Row]:
        """Every score of every ok attempt, the oldest first; ``newest`` marks the last of its model, pack and name."""
        return self.view("metric", night)

    def failures(self, night: str | None = None) -> list[Row]:
        """Every attempt that ended otherwise than ok."""
        return self.view("failure", night)

    def checks(self, check: str | None = None) -> list[Row]:
        """What a check, or every check, found of each model."""
        return self.view("check_result", check)

    def warnings(self, night: str | None = None) -> list[Row]:
        """What the user was to know."""
        return self.view("warning", night)

    def durations(self, host: str | None = None) -> list[Row]:
        """The median seconds of each step, model and pack over all nights, on one machine of a cluster or on none."""
        return [row for row in self.view("duration_estimate") if row["host"] == host]

    def hosts(self, night: str) -> dict[int, str]:
        """The machine of a cluster that each entry ran on last; empty for a night on one machine."""
        return {row["entry"]: row["host"] for row in self.view("entry_host", night)}

    def _sample(self, row: Row) -> Sample:
        columns = {name: value for name, value in row.items() if name != "id"}
        try:
            return Sample(**{**columns, "at": datetime.fromisoformat(row["at"])})
        except (ValueError, TypeError) as exc:
            raise damaged(self.path, f"a sample has no time: {exc}") from exc

    def usual_seconds(self, step: str, model_id: str, pack: str | None) -> float | None:
        """The median seconds of a step, model and pack over all nights; ``None`` without an ok attempt."""
        rows = self._query(
            "SELECT seconds FROM duration_estimate WHERE step = ? AND model_id = ? AND pack IS ? AND host IS NULL",
            (step, model_id, pack),
        )
        return float(rows[0]["seconds"]) if rows else None

    def _no_night(self, night: str) -> JournalError:
        return JournalError(
            f"There is no night {night!r}", where=str(self.path), remedy="See which there are with `runq nights`."
        )

    def _one(self, sql: str, values: tuple[Any, ...]) -> StoredEvent | None:
        with translated(self.path, "read"):
            row = self._conn.execute(sql, values).fetchone()
        return stored_event(self.path, row) if row else None

    def _query(self, sql: str, values: tuple[Any, ...] | dict[str, Any] = ()) -> list[Row]:
        with translated(self.path, "read"):
            cursor = self._conn.execute(sql, values)
            names = [column[0] for column in cursor.description]
            try:
                return [{name: meant(name, value) for name, value in zip(names, row, strict=True)} for row in cursor]
            except (ValueError, TypeError, RecursionError) as exc:  # not JSON where it should be
                raise damaged(self.path, str(exc)) from exc


def _scope(conn: sqlite3.Connection, upto: int | None) -> None:
    """Make the views this version's own, over the events that count."""
    conn.execute("PRAGMA temp_store = MEMORY")
    conn.execute("BEGIN")
    if upto is not None or stale_views(conn):
        create_temporary(conn)
    if upto is not None:
        # The views say just "event": SQLite finds the temporary one first. A view takes no parameters.
        conn.execute(f"CREATE TEMP VIEW event AS SELECT * FROM main.event WHERE id <= {int(upto)}")  # noqa: S608
        conn.execute(
            "CREATE TEMP VIEW sample AS SELECT * FROM main.sample"
            " WHERE at <= (SELECT at FROM event ORDER BY id DESC LIMIT 1)"
        )
    conn.execute("SELECT 1 FROM event LIMIT 1").fetchone()  # a damaged file is found here, not later
    conn.execute("COMMIT")
    conn.execute("PRAGMA query_only = ON")
