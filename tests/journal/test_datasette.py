from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasette.app import Datasette

from runq_journal import Journal, metadata_path
from runq_journal.datasette import about, cells, plugins_path, static_path, templates_path, words
from runq_journal.datasette.guard import host_name
from runq_journal.datasette.starter import starter
from runq_journal.view_files import views
from runq_schemas import events as ev

TABLES = ("event", "sample", "meta")


def told() -> dict[str, Any]:
    tables: dict[str, Any] = about.metadata()["databases"]["journal"]["tables"]
    return tables


def with_plugin(path: Path, visit: Callable[[Datasette], Awaitable[None]]) -> None:
    """Visit a Datasette as `runq browse` starts it."""

    async def run() -> None:
        datasette = Datasette(
            [str(path)],
            plugins_dir=str(plugins_path()),
            template_dir=str(templates_path()),
            static_mounts=[("runq", str(static_path()))],
        )
        await datasette.invoke_startup()
        await visit(datasette)

    asyncio.run(run())


# --- what it is told --------------------------------------------------------------------------------------------


def test_every_view_is_described_by_its_own_file_and_by_nothing_else() -> None:
    written = yaml.safe_load(metadata_path().read_text(encoding="utf-8"))["databases"]["journal"]["tables"]
    tables = told()
    assert set(tables) == {view.name for view in views()} | {*TABLES, "_sqlite_migrations"}
    for view in views():
        assert tables[view.name]["title"]
        assert tables[view.name]["description"] == view.about
        assert tables[view.name]["columns"] == view.columns
        assert not {"description", "columns"} & set(written.get(view.name, {})), "two places would drift apart"


def test_every_column_of_a_table_is_described(golden_db: Path) -> None:
    with Journal.open(golden_db) as journal:
        for table in TABLES:
            columns = [row[1] for row in journal._conn.execute(f"PRAGMA table_info({table})")]
            assert list(told()[table]["columns"]) == columns
            assert told()[table]["description"]


def test_orders_and_facets_name_columns_that_there_are() -> None:
    for name, table in told().items():
        named = {*table.get("facets", ()), *(table[key] for key in ("sort", "sort_desc") if key in table)}
        assert named <= set(table.get("columns", {})), name
    assert told()["attempt"]["sort_desc"] == "started_event"
    assert told()["entry_result"]["facets"] == ["status", "model_id"]
    assert told()["check_result"]["facets"] == ["status", "verdict", "model_id"]


def test_figures_say_their_units() -> None:
    for table in told().values():
        for column, text in table.get("columns", {}).items():
            if column == "mb" or column.endswith("_mb"):
                assert "in MB (2^20 bytes)" in text, column
            elif column == "seconds" or column.endswith(("_s", "_seconds")):
                assert "second" in text, column


def test_what_datasette_writes_into_the_metadata_stays_with_it() -> None:
    told()["event"]["title"] = "changed"
    assert told()["event"]["title"] == "Events"


# --- Datasette itself -------------------------------------------------------------------------------------------


def test_a_plain_datasette_shows_a_live_journal_with_every_page_and_query(golden_db: Path) -> None:
    async def visit(journal: Journal) -> None:
        metadata = yaml.safe_load(metadata_path().read_text(encoding="utf-8"))
        datasette = Datasette([str(golden_db)], metadata=metadata)
        await datasette.invoke_startup()
        for name in (*TABLES, *(view.name for view in views())):
            response = await datasette.client.get(f"/journal/{name}")
            assert response.status_code == 200, name
        for name in metadata["databases"]["journal"]["queries"]:
            response = await datasette.client.get(f"/journal/{name}.json?_shape=array")
            assert response.status_code == 200, name
            assert response.json() or name in ("checks", "scores"), name  # the golden nights have neither
        for expected in (1, 2):
            journal.append(ev.Warned(message="new"), night="2026-09-02_223000")
            response = await datasette.client.get("/journal/warning.json?_shape=array&message=new")
            assert len(response.json()) == expected

    with Journal.open(golden_db) as journal:
        asyncio.run(visit(journal))


def test_not_even_a_plugin_can_write_it(golden_db: Path) -> None:
    async def visit(datasette: Datasette) -> None:
        database = datasette.get_database("journal")
        for sql in ("INSERT INTO meta VALUES ('a', 'b')", "DELETE FROM sample", "DROP VIEW todo"):
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                await database.execute_write(sql)

    with_plugin(golden_db, visit)


def test_the_views_are_this_versions_whatever_the_file_holds(golden_db: Path) -> None:
    async def visit(datasette: Datasette) -> None:
        assert (await datasette.get_database("journal").execute("SELECT * FROM check_result")).rows == []

    conn = sqlite3.connect(golden_db)
    assert not conn.execute("SELECT 1 FROM sqlite_master WHERE name = 'check_result'").fetchone()
    conn.close()
    with_plugin(golden_db, visit)


# --- words and cells --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1:00 min"),
        (185, "3:05 min"),
        (3600, "1:00 h"),
        (14400.5, "4:00 h"),
    ],
)
def test_durations_read_as_in_runqs_own_tables(seconds: float | None, text: str) -> None:
    from runq.text import duration

    assert words.duration(seconds) == text
    if seconds is not None:
        assert words.duration(seconds) == duration(seconds)


def test_a_line_spans_its_box_and_a_flat_one_is_one() -> None:
    assert words.points([1.0, 3.0, 2.0]) == "0.0,23.0 50.0,1.0 100.0,12.0"
    assert words.points([5.0, 5.0]) == "0.0,23.0 100.0,23.0"


def test_a_description_is_text_with_code() -> None:
    assert words.prose("`a` < <b>") == "<code>a</code> &lt; &lt;b&gt;"


@pytest.mark.parametrize(
    ("column", "value", "html"),
    [
        ("night", "n/1", '<a href="/night/n~2F1">n/1</a>'),
        ("entry", 2, '<a href="/night/n/e2">2</a>'),
        ("step", "eval", '<a href="/journal/event?night__exact=n&amp;entry__exact=2&amp;step__exact=eval">eval</a>'),
        ("started_event", 7, '<a href="/journal/event/7">7</a>'),
        ("status", "timeout", '<span class="badge bad">timeout</span>'),
        ("baseline_proven", 0, '<span class="badge odd">no</span>'),
        ("peak_mb", 12500.4, '<span class="number" title="12500.4 MB">12,500</span>'),
        ("seconds", 3600.04, '<span class="number" title="3600.04 s">1:00 h</span>'),
        ("log", "/a<b", '<code class="copy">/a&lt;b</code>'),
        ("log_tail", "a\n<b>", '<pre class="log" tabindex="0">a\n&lt;b&gt;</pre>'),
        ("argv", '["<b>"]', "<code>[&#34;&lt;b&gt;&#34;]</code>"),
        ("reason", "[1]", None),
        ("reason", None, None),
        ("status", "", None),
    ],
)
def test_a_value_is_shown_as_what_it_is(column: str, value: Any, html: str | None) -> None:
    row = {"night": "n", "entry": 2, "step": "eval", column: value}
    assert cells.cell(row, column, value) == html


def test_a_row_without_its_night_links_nowhere() -> None:
    assert cells.cell({"entry": 2}, "entry", 2) is None
    assert cells.cell({"step": "eval"}, "step", "eval") is None


def test_long_json_is_folded_and_readable() -> None:
    html = cells.cell({}, "data", '{"a": "' + "<" * 100 + '"}')
    assert html is not None
    assert html.startswith("<details><summary><code>{&#34;a&#34;: ")
    assert "<pre>{\n  &#34;a&#34;: &#34;&lt;&lt;" in html


# --- who asks, and who started it -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8001", "localhost"),
        ("[::1]:8001", "[::1]"),
        ("[::1]", "[::1]"),
        ("::1", ":"),
        ("localhost:", "localhost:"),
        ("localhost:80:80", "localhost:80"),
        ("", ""),
    ],
)
def test_a_host_loses_its_port_and_nothing_else(host: str, name: str) -> None:
    assert host_name(host) == name


@pytest.mark.parametrize("note", [None, "", "a note of somebody else"])
def test_a_plain_datasette_has_no_starter(note: str | None) -> None:
    nobody = starter(note)
    assert nobody.states(Path(), None, {"n": "running"}) == {"n": "running"}  # type: ignore[arg-type]
    assert nobody.resume({}, "n", Path()) == ""
