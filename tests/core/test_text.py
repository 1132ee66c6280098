"""JSON that may be looked at on a terminal."""

from __future__ import annotations

import json

from runq.text import json_text


def test_json_keeps_letters_and_escapes_what_a_terminal_obeys() -> None:
    data = {"id": "gemüse 模型 \x1b[31m \x7f \x9b2J \u202etxt\u2069"}
    text = json_text(data, indent=None)
    assert text == '{"id": "gemüse 模型 \\u001b[31m \\u007f \\u009b2J \\u202etxt\\u2069"}'
    assert json.loads(text) == data
    assert json_text({"a": 1}) == '{\n  "a": 1\n}'
