"""The shapes of answers that OpenAI-compatible servers send."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq.chat import ChatAnswer, error_text, parse_answer


def reply(message: dict[str, object], finish: str | None = "stop", **more: object) -> str:
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more})


def test_a_plain_answer() -> None:
    text = reply({"role": "assistant", "content": "ready"}, model="qwen3-8b", usage={"completion_tokens": 2})
    answer = parse_answer(200, text)
    assert answer == ChatAnswer(content="ready", model="qwen3-8b", finish_reason="stop", completion_tokens=2)
    assert answer.status == "ok"
    assert answer.loaded


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize("content", [None, "", "absent"])
def test_a_thinking_model_that_ran_out_of_tokens_is_reasoning_only(field: str, content: str | None) -> None:
    message: dict[str, object] = {"role": "assistant", field: "Hmm"}
    if content != "absent":
        message["content"] = content
    answer = parse_answer(200, reply(message, "length"))
    assert (answer.status, answer.reasoning, answer.loaded) == ("reasoning_only", "Hmm", True)


def test_a_stream_without_space_with_comments_and_with_usage_behind_it() -> None:
    text = (
        'data:{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\r\n\r\n'
        ": keepalive 1/9\r\n\r\ndata:\r\n\r\n"
        'data:{"choices":[{"index":0,"delta":{"content":"o"},"finish_reason":null}]}\r\n\r\n'
        'data:{"choices":[{"index":0,"delta":{"content":"k"},"finish_reason":"stop"}]}\r\n\r\n'
        'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}\r\n\r\n'
        "data: [DONE]\r\n\r\n"
    )
    assert parse_answer(200, text) == ChatAnswer(content="ok", finish_reason="stop", completion_tokens=1)


def test_a_stream_that_ends_without_done() -> None:
    text = (
        'data: {"choices":[{"index":0,"delta":{"reasoning":"Hmm"},"finish_reason":null}]}\n\n'
        'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n'
    )
    assert parse_answer(200, text).status == "reasoning_only"


def test_made_up_loading_text_is_no_proof_of_a_load() -> None:
    text = (
        'data: {"choices":[{"index":0,"delta":{"reasoning_content":"━━━━━\\nllama-swap loading model: q\\n"}}]}\n\n'
        'data: {"error":{"message":"upstream exited","type":"server_error","code":502}}\n\n'
    )
    answer = parse_answer(200, text)
    assert (answer.status, answer.error, answer.loaded) == ("error", "upstream exited", False)
    cut = parse_answer(200, text.split("\n\n", maxsplit=1)[0])
    assert (cut.status, cut.loaded) == ("empty", False)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"error":{"message":"model not found","type":"x","param":null,"code":null}}', "model not found"),
        ('{"error":{"type":"server_error"}}', "server_error"),
        ('{"error":"Unexpected endpoint or method. (POST /v1/x)"}', "Unexpected endpoint or method. (POST /v1/x)"),
        ('{"object":"error","message":"no such model","code":404}', "no such model"),
        ('{"detail":"Not Found"}', "Not Found"),
        ('"a bare string"', "a bare string"),
        ('data: "a bare string"\n\n', "a bare string"),
        ("data: not json at all\n\n", "not json at all"),
        ('error: {"message":"out of memory","code":500}\n\n', "out of memory"),
    ],
)
def test_errors_inside_http_200(body: str, message: str) -> None:
    answer = parse_answer(200, body)
    assert (answer.status, answer.error, answer.loaded) == ("error", message, False)


def test_an_http_error_is_an_error_whatever_the_body_says() -> None:
    assert parse_answer(503, '{"error":{"code":503,"message":"Loading model"}}').error == "HTTP 503: Loading model"
    assert parse_answer(500, reply({"content": "ready"})).status == "error"
    assert parse_answer(502, "").error == "HTTP 502: an empty body"


@pytest.mark.parametrize("body", ["", "<html>hello</html>", "\n\n"])
def test_what_is_neither_json_nor_a_stream(body: str) -> None:
    assert parse_answer(200, body).error == "the answer is neither JSON nor server-sent events"


def test_an_empty_answer_with_a_finish_reason_is_loaded_but_empty() -> None:
    answer = parse_answer(200, reply({"content": ""}))
    assert (answer.status, answer.loaded) == ("empty", True)


def test_content_parts() -> None:
    assert parse_answer(200, reply({"content": [{"type": "text", "text": "re"}, {"text": "ady"}]})).content == "ready"


def test_an_error_message_beside_choices_is_an_error() -> None:
    assert error_text({"choices": [], "error": {"message": "cut off"}}) == "cut off"
    assert error_text({"choices": [{"index": 0}], "detail": "of the answer"}) == ""


@given(st.text(), st.integers(100, 599))
def test_nothing_that_a_server_sends_raises(text: str, status: int) -> None:
    answer = parse_answer(status, text)
    assert answer.loaded is False or answer.finish_reason or answer.content.strip()


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["choices", "message", "error", "usage", "x"]), inner)
    ),
)


@given(json_values)
def test_no_json_raises(value: object) -> None:
    parse_answer(200, json.dumps(value))
