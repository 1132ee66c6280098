"""JSON lines, read for what they prove."""

from __future__ import annotations

import json

import pytest

from runq_plugins.harness.rows import scan


@pytest.fixture
def rows(tmp_path):
    def write(content: bytes | list):
        if isinstance(content, list):
            content = b"".join(json.dumps(row).encode() + b"\n" for row in content)
        (tmp_path / "rows.jsonl").write_bytes(content)
        return scan(tmp_path / "rows.jsonl")

    return write


def test_counts(rows):
    found = rows([{"ok": True}, {"ok": False, "error": "refused"}, {"ok": None, "error": "later"}, {"ok": True}, {}])
    assert (found.rows, found.judged, found.passed, found.failed) == (5, 3, 2, 3)
    assert found.first_error == "refused"
    assert found.answer_facts() == {"answers": 5, "answers_failed": 3, "first_error": "refused"}
    assert found.problem("f") == ""


def test_the_median_of_the_answers_that_are_ok_is_their_speed(rows):
    speeds = [30.0, 10, 50.004, None, "fast", True, -1, 0]
    found = rows([{"ok": True, "decode_tps": speed} for speed in speeds] + [{"ok": False, "decode_tps": 900.0}])
    assert found.tokens_per_second == [30.0, 10.0, 50.004]
    assert found.answer_facts()["tokens_per_second"] == 30.0
    assert (
        rows([{"ok": True, "decode_tps": speed} for speed in (10.0, 20.555)]).answer_facts()["tokens_per_second"]
        == 15.28
    )
    assert rows(b'{"ok": true, "decode_tps": 1e999}\n{"ok": true, "decode_tps": NaN}\n').tokens_per_second == []


def test_one_is_not_true(rows):
    found = rows([{"ok": 1}, {"ok": "true"}])
    assert (found.judged, found.passed) == (0, 0)


def test_a_torn_last_line_is_tolerated_and_counted(rows):
    found = rows(b'{"ok": true}\n{"ok": tr')
    assert (found.rows, found.torn, found.unreadable) == (1, 1, None)
    assert found.answer_facts() == {"answers": 1, "answers_failed": 0, "torn_rows": 1}


def test_a_last_line_without_an_end_that_is_whole_counts(rows):
    found = rows(b'{"ok": true}\n\n  \n{"ok": true}')
    assert (found.rows, found.torn) == (2, 0)


@pytest.mark.parametrize("line", [b"garbage", b"[1]", b"\xff\xfe", b"5", b'{"ok": tr', b"[" * 100_000])
def test_any_other_line_that_is_no_object_is_a_problem(rows, line):
    found = rows(b'{"ok": true}\n' + line + b"\n" + line + b'\n{"ok": true}\n')
    assert found.problem("f.jsonl") == "line 2 of f.jsonl is not a JSON object"


@pytest.mark.parametrize("content", [b"", b"\n\n", b'{"ok"'])
def test_no_complete_row_is_a_problem(rows, content):
    assert rows(content).problem("f.jsonl") == "f.jsonl holds no complete row"


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"_error": "judge died"}, "judge died"),
        ({"_error": {"code": 5}}, '{"code": 5}'),
        ({"report": {"scores": [{"_error": " two\nlines "}]}}, "two lines"),
        ({"type": "_error", "error": "no endpoint"}, "no endpoint"),
        ({"id": "_error", "message": "gone"}, "gone"),
        ({"kind": "_error"}, "the row is an _error row"),
    ],
)
def test_an_error_in_place_of_a_result(rows, row, text):
    found = rows([{"fine": 1}, row])
    assert found.error_rows == 1
    assert found.problem("reports.jsonl") == f"reports.jsonl holds an error instead of a result: {text}"


@pytest.mark.parametrize(
    "row", [{"_error": None}, {"_error": ""}, {"_error": False}, {"text": "_error"}, {"a": ["_error"]}]
)
def test_no_error(rows, row):
    assert rows([row]).error_rows == 0


def test_long_errors_are_cut_and_data_becomes_text(rows):
    assert len(rows([{"ok": False, "error": "x" * 9999}]).first_error) == 500
    assert rows([{"ok": False, "error": {"code": 1}}]).first_error == '{"code": 1}'
    assert rows([{"ok": False, "error": None}, {"ok": False}]).no_answer() == "2 of 2 answers failed, none is ok"


def test_a_missing_file_raises(tmp_path):
    with pytest.raises(OSError):
        scan(tmp_path / "none")
