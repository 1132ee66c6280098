from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import yaml
from datasette.app import Datasette

from runq_journal import Journal, metadata_path
from runq_journal.view_files import views
from runq_schemas import events as ev


def told() -> dict[str, Any]:
    metadata: dict[str, Any] = yaml.safe_load(metadata_path().read_text(encoding="utf-8"))
    return metadata


def test_every_table_view_and_column_is_described_as_its_file_describes_it(golden_db: Path) -> None:
    tables = told()["databases"]["journal"]["tables"]
    assert set(tables) == {view.name for view in views()} | {"event", "sample", "meta", "_sqlite_migrations"}
    for view in views():
        assert tables[view.name]["title"]
        assert tables[view.name]["description"] == view.about
        assert tables[view.name]["columns"] == view.columns
    with Journal.open(golden_db) as journal:
        for table in ("event", "sample", "meta"):
            columns = [row[1] for row in journal._conn.execute(f"PRAGMA table_info({table})")]
            assert list(tables[table]["columns"]) == columns


def test_figures_say_their_units() -> None:
    for table in told()["databases"]["journal"]["tables"].values():
        for column, text in table.get("columns", {}).items():
            if column == "mb" or column.endswith("_mb"):
                assert "in MB (2^20 bytes)" in text, column
            elif column == "seconds" or column.endswith(("_s", "_seconds")):
                assert "second" in text, column


def test_datasette_shows_a_live_journal_with_every_page_and_query(golden_db: Path) -> None:
    async def visit(journal: Journal) -> None:
        metadata = told()
        datasette = Datasette([str(golden_db)], metadata=metadata)
        await datasette.invoke_startup()
        for name in metadata["databases"]["journal"]["tables"]:
            response = await datasette.client.get(f"/journal/{name}")
            assert response.status_code == 200, name
        values = "model_id=gemma-12b&night=2026-09-01_220000&entry=0&step=eval"
        for name in metadata["databases"]["journal"]["queries"]:
            response = await datasette.client.get(f"/journal/{name}.json?_shape=array&{values}")
            assert response.status_code == 200, name
            assert response.json(), name
        for expected in (1, 2):
            journal.append(ev.Warned(message="new"), night="2026-09-02_223000")
            response = await datasette.client.get("/journal/warning.json?_shape=array&message=new")
            assert len(response.json()) == expected

    with Journal.open(golden_db) as journal:
        asyncio.run(visit(journal))
