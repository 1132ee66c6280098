"""A secret never survives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq.redact import HIDDEN, Redactor, is_secret_name, secret_values

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "HF_TOKEN",
        "api_key",
        "api-key",
        "apikey",
        "apiKey",
        "openaiApiKey",
        "Authorization",
        "authorization",
        "X-Api-Key",
        "--api-key",
        "--token",
        "AWS_SECRET_ACCESS_KEY",
        "client_secret",
        "PGPASSWORD",
        "db.password",
        "passphrase",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["api_key_file", "max_tokens", "tokens", "monkey", "keyboard", "KEYS", "tokenizer", "id", "", "author", "passed"],
)
def test_names_of_other_things(name: str) -> None:
    assert not is_secret_name(name)


def test_values_are_found_in_environments_and_options() -> None:
    found = secret_values(
        {"HF_TOKEN": "hf_abcdefgh", "HOME": "/home/nora", "PORT_TOKEN": "1234"},
        {"reset": {"headers": {"Authorization": f"Bearer {KEY}"}, "api_key": ["one-secret", "two-secret"]}},
        {"extra_body": {"api_key": 12345678, "token": True}},
    )
    assert found == {"hf_abcdefgh", f"Bearer {KEY}", KEY, "one-secret", "two-secret", "12345678"}


@pytest.mark.parametrize(
    "options",
    [
        {"argv": ["server", "--api-key", KEY]},
        {"argv": ["server", f"--api-key={KEY}"]},
        {"argv": ["env", f"OPENAI_API_KEY={KEY}", "server"]},
        {"argv": ["curl", "-H", f"Authorization: Bearer {KEY}"]},
        {"command": f"unload --api-key {KEY} --all"},
        {"command": f"unload --api-key '{KEY}' --all"},
        {"host": f"http://nora:{KEY}@box:11434"},
    ],
)
def test_a_secret_of_a_command_line_is_hidden_there_and_wherever_it_turns_up(options: dict[str, Any]) -> None:
    redact = Redactor.of(options)
    assert KEY not in json.dumps(redact(options))
    assert redact({"log_tail": [f"using key {KEY}."]}) == {"log_tail": [f"using key {HIDDEN}."]}


def test_by_name_whatever_is_below() -> None:
    assert Redactor()({"api_key": "x", "token": {"value": ["y", 7, None, True]}, "password": ""}) == {
        "api_key": HIDDEN,
        "token": {"value": [HIDDEN, HIDDEN, None, True]},
        "password": "",
    }


def test_by_the_option_before_it() -> None:
    assert Redactor()(["x", "--api-key", "short", "--port", "80"]) == ["x", "--api-key", HIDDEN, "--port", "80"]
    assert Redactor()(("--token=abc", "rest")) == [f"--token={HIDDEN}", "rest"]
    assert Redactor()(["--api-key", "--verbose", "rest"]) == ["--api-key", "--verbose", "rest"]


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: sort key=lambda x: x",
        "12 tokens: 3.4 s",
        "max_tokens=400",
        "see https://example.org:8080/a@b",
        "a token",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor()(text) == text


def test_a_secret_that_begins_with_another_leaves_nothing_over() -> None:
    redact = Redactor.of({"A_TOKEN": "abcdef", "B_TOKEN": "abcdefghij"})
    assert redact("x abcdefghij y abcdef") == f"x {HIDDEN} y {HIDDEN}"


def test_a_secret_of_several_lines_is_hidden_line_by_line() -> None:
    redact = Redactor.of({"SSH_KEY": "-----BEGIN-----\nMIIEabcdef\n-----END-----\n"})
    assert redact(["MIIEabcdef"]) == [HIDDEN]


@pytest.mark.parametrize("value", ["ollama", "lm-studio", "not-needed", "EMPTY"])
def test_what_manuals_say_to_write_is_no_secret(value: str) -> None:
    # Hidden by value, the backend `ollama` and every path with its name would be lost from the journal.
    redact = Redactor.of({"OPENAI_API_KEY": value})
    assert redact({"backend": value, "bundle": f"/runs/{value}/e0"}) == {
        "backend": value,
        "bundle": f"/runs/{value}/e0",
    }


def test_the_input_is_not_changed() -> None:
    data = {"api_key": "x", "argv": ["--token", "y"]}
    Redactor()(data)
    assert data == {"api_key": "x", "argv": ["--token", "y"]}


secrets = st.text("abcdefghXYZ0123-_.", min_size=6, max_size=20).filter(lambda text: text[0].isalnum())
ordinary = st.text("ghij kl/", max_size=8)


def nested(secret: str) -> st.SearchStrategy[Any]:
    """JSON data with the secret anywhere: in texts, keys, lists, under any name."""
    texts = st.tuples(ordinary, st.sampled_from(["", secret]), ordinary).map("".join)
    return st.recursive(
        texts | st.none() | st.booleans() | st.integers(0, 9),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts | st.just("api_key"), inner, max_size=4),
        max_leaves=12,
    )


@given(secret=secrets, data=st.data())
def test_a_secret_never_survives_anywhere(secret: str, data: st.DataObject) -> None:
    redact = Redactor.of({"MY_TOKEN": secret})
    given_data = data.draw(nested(secret))
    clean = redact(given_data)
    assert secret not in json.dumps(clean)
    assert redact(clean) == clean, "redacting twice changes nothing more"


@given(first=secrets, second=secrets, text=st.lists(st.sampled_from(["a", "b", " "]), max_size=6))
def test_of_two_secrets_neither_survives(first: str, second: str, text: list[str]) -> None:
    mixed = "".join({"a": first, "b": second, " ": " "}[letter] for letter in text)
    clean = Redactor.of({"A_KEY": first, "B_KEY": second})(mixed)
    assert first not in clean and second not in clean


@given(secret=secrets)
def test_a_hidden_command_line_keeps_its_shape(secret: str) -> None:
    argv = ["server", "--port", "80", "--api-key", secret, "--model", "m"]
    assert Redactor.of({"argv": argv})(argv) == ["server", "--port", "80", "--api-key", HIDDEN, "--model", "m"]


@pytest.mark.parametrize("secret", ["pässwort-geheim-1", 'with"quote"inside', "back\\slash\\key"])
def test_a_secret_inside_json_on_a_command_line_is_hidden(secret: str) -> None:
    redact = Redactor.of({"models": [{"extra_body": {"api_key": secret}}]})
    for ascii_only in (True, False):
        word = json.dumps({"id": "m", "extra": secret}, ensure_ascii=ascii_only)
        hidden = redact(["touchstone", "--models-json", word])[2]
        assert json.loads(hidden) == {"id": "m", "extra": HIDDEN}


def test_a_value_that_is_part_of_a_path_or_a_name_is_no_secret() -> None:
    redact = Redactor.of({"A_KEY": "local-llm", "B_KEY": "sk-123456"}, plain=["/home/me/local-llm/queue.yaml", "gemma"])
    assert redact("/home/me/local-llm/runs sk-123456") == f"/home/me/local-llm/runs {HIDDEN}"


_TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "--api-key x1",
            "HF_TOKEN=abc",
            "x-api-key: q",
            "http://me:pw@host",
            "max_tokens",
            "Authorization",
            "pa\u017f\u017fword",
            "\u212aEY",
            KEY,
            "--out file",
            "a=b",
        ]
    ),
)
_DATA = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), _TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_TEXTS, inner, max_size=4)),
    max_leaves=12,
)


@given(_DATA)
def test_what_is_not_suspect_holds_no_secret(data: Any) -> None:
    redactor = Redactor(frozenset({KEY}))
    text = json.dumps(data, separators=(",", ":"))
    if redactor(data) != data:
        assert redactor.suspects(text)


def test_an_ordinary_event_is_not_suspect() -> None:
    ordinary = {"argv": ["llama-server", "--port", "8080"], "model": {"id": "m", "max_tokens_default": 400}}
    assert not Redactor(frozenset({KEY})).suspects(json.dumps(ordinary))
