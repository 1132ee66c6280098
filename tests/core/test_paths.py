"""Names of files and folders."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq import paths
from runq_schemas import UsageError

NOW = datetime(2026, 9, 1, 22, 0, 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("google/gemma-4-12b", "google-gemma-4-12b"),
        ("qwen3:8b", "qwen3-8b"),
        ("a  / b", "a-b"),
        ("under_score.v1", "under_score.v1"),
        ("größe", "gr-e"),
        ("模型", "-"),
        ("../../x<script>", "..-..-x-script-"),
        (".", "-"),
        ("..", "-"),
        ("...", "-"),
        ("", "-"),
        ("a\nb\0c", "a-b-c"),
    ],
)
def test_slug_is_touchstones(text: str, expected: str) -> None:
    assert paths.slug(text) == expected


@given(st.text(max_size=300))
def test_a_slug_is_one_harmless_name(text: str) -> None:
    made = paths.slug(text)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,80}", made)
    assert made not in (".", "..")


@given(model=st.text(max_size=300), pack=st.text(max_size=300), attempt=st.integers(1, 99))
def test_a_bundle_lies_in_the_runs_folder_whatever_the_model_is_called(model: str, pack: str, attempt: int) -> None:
    runs = Path("/runs")
    bundle = paths.bundle_dir(runs, "2026-09-01_220005-12", 123, model, pack, attempt=attempt)
    assert bundle.parent == runs
    assert len(bundle.name.encode()) <= 255


def test_the_names_of_bundles() -> None:
    def name(attempt: int) -> str:
        return paths.bundle_dir(Path("/r"), "2026-09-01_220005", 2, "google/gemma", "office", attempt=attempt).name

    assert name(1) == "2026-09-01_220005_e2_google-gemma_eval_office"
    assert name(2) == "2026-09-01_220005_e2_google-gemma_eval_office_a2"
    assert name(11) == "2026-09-01_220005_e2_google-gemma_eval_office_a11"


def test_the_names_of_logs_and_folders() -> None:
    queue = paths.queue_dir(Path("/r"), "2026-09-01_220005")
    assert queue == Path("/r/2026-09-01_220005_queue")
    assert paths.log_path(queue, 3, "judge", 2) == queue / "logs" / "e3-judge-2.log"
    assert paths.log_path(queue, 3, "../x", 2).parent == queue / "logs"


# --- packs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id: buero\ntitle: Büro\n", "buero"),
        ('{"id": "facts", "items": []}', "facts"),
        ("id: 7\n", "7"),
        ("id: a/b\n", "a-b"),
        ("id: ../../etc\n", "..-..-etc"),
        ("x: &x { a: 1 }\nid: anchored\ny: *x\n", "anchored"),
        ("\ufeffid: marked\n", "marked"),
        ("title: no id\n", "my-pack"),
        ("id:\n", "my-pack"),
        ("id: ''\n", "my-pack"),
        ("- a\n- list\n", "my-pack"),
        ("{ : [garbage", "my-pack"),
        ("id: one\nid: two\n", "my-pack"),
        ("id: !!python/object/apply:os.system [ls]\n", "my-pack"),
        ("", "my-pack"),
    ],
)
def test_a_packs_id_or_else_its_files_name(tmp_path: Path, text: str, expected: str) -> None:
    pack = tmp_path / "my pack.yaml"
    pack.write_text(text, encoding="utf-8")
    assert paths.pack_id(pack) == expected


def test_a_pack_that_cannot_be_read_is_called_by_its_files_name(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"id: \xff\xfe\0")
    (tmp_path / "folder").mkdir()
    assert paths.pack_id(tmp_path / "bytes.yaml") == "bytes"
    assert paths.pack_id(tmp_path / "folder") == "folder"
    assert paths.pack_id(tmp_path / "gone.yaml") == "gone"
    assert paths.pack_id(None) == "nopack"


def test_a_pack_of_many_aliases_is_named_at_once(tmp_path: Path) -> None:
    pack = tmp_path / "bomb.yaml"
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))
    pack.write_text(f"id: bomb\na0: &a0 [x]\n{levels}\n")
    assert paths.pack_id(pack) == "bomb"


# --- the runs folder --------------------------------------------------------------------------------------------


def test_the_runs_folder_is_looked_for_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"RUNQ_RUNS": "from-env"}
    beside = tmp_path / "queue-folder"
    assert paths.runs_dir(Path("given"), environ=environ, beside=beside) == tmp_path / "given"
    assert paths.runs_dir(None, environ=environ, beside=beside) == tmp_path / "from-env"
    assert paths.runs_dir(None, environ={}, beside=beside) == beside / "runs"
    assert paths.runs_dir(None, environ={"RUNQ_RUNS": ""}, beside=beside) == beside / "runs"

    with pytest.raises(UsageError) as caught:
        paths.runs_dir(None, environ={}, beside=None)
    assert caught.value.exit_code == 2
    for place in ("--runs", "$RUNQ_RUNS", str(tmp_path / "runs" / "journal.db")):
        assert place in caught.value.message, "it says where it looked"
    assert "--runs DIR" in caught.value.remedy

    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "journal.db").write_text("something")
    assert paths.runs_dir(None, environ={}, beside=None) == tmp_path / "runs"


def test_a_folder_without_a_journal_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no journal\.db"):
        paths.existing_journal(tmp_path)
    (tmp_path / "journal.db").touch()
    with pytest.raises(UsageError, match=r"has no journal\.db"):
        paths.existing_journal(tmp_path)  # what a runner leaves that dies while it makes one
    (tmp_path / "journal.db").write_text("something")
    assert paths.existing_journal(tmp_path) == tmp_path / "journal.db"


# --- night ids --------------------------------------------------------------------------------------------------


def test_a_night_is_called_by_its_start(tmp_path: Path) -> None:
    assert paths.new_night_id(NOW, tmp_path, frozenset()) == "2026-09-01_220005"


def test_a_taken_night_gets_a_number(tmp_path: Path) -> None:
    first = "2026-09-01_220005"
    assert paths.new_night_id(NOW, tmp_path, frozenset({first})) == f"{first}-2"
    assert paths.new_night_id(NOW, tmp_path, frozenset({first, f"{first}-2"})) == f"{first}-3"


@pytest.mark.parametrize("folder", ["_queue", "_check", "_e0_model_eval_pack"])
def test_any_folder_of_that_name_takes_it(tmp_path: Path, folder: str) -> None:
    (tmp_path / f"2026-09-01_220005{folder}").mkdir()
    assert paths.new_night_id(NOW, tmp_path, frozenset()) == "2026-09-01_220005-2"


def test_the_folder_of_a_numbered_night_does_not_take_the_first(tmp_path: Path) -> None:
    (tmp_path / "2026-09-01_220005-2_queue").mkdir()
    assert paths.new_night_id(NOW, tmp_path, frozenset()) == "2026-09-01_220005"


def test_paths_are_shown_relative_where_they_lie_inside() -> None:
    assert paths.shown("/home/nora/runs/x", Path("/home/nora")) == "runs/x"
    assert paths.shown("/srv/runs/x", Path("/home/nora")) == "/srv/runs/x"
