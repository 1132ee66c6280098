"""What an OpenAI-compatible server answered to one chat request, in whatever shape it came.

The shapes are those that servers were seen to send: plain JSON, or server-sent events although none were asked for;
reasoning in ``reasoning_content`` (llama.cpp, LM Studio) or ``reasoning`` (Ollama, mlx_lm, vLLM); errors inside
HTTP 200, as an object, as a string, flat, or as FastAPI's ``detail``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import attrs

AnswerStatus = Literal["ok", "reasoning_only", "empty", "error"]
"""touchstone's words for what a model answered."""


@attrs.frozen(kw_only=True)
class ChatAnswer:
    """One answer. ``model`` is the name that the server says has answered; ``None`` where it does not."""

    content: str = ""
    reasoning: str = ""
    model: str | None = None
    finish_reason: str | None = None
    completion_tokens: int | None = None
    error: str = ""

    @property
    def status(self) -> AnswerStatus:
        """touchstone's word for the answer.

        Reasoning alone counts only with a finish reason: llama-swap streams made-up reasoning while it still loads
        the model, and a thinking model that ran out of tokens ends with ``length``.
        """
        if self.error:
            return "error"
        if self.content.strip():
            return "ok"
        if self.reasoning.strip() and self.finish_reason:
            return "reasoning_only"
        return "empty"

    @property
    def loaded(self) -> bool:
        """Whether the answer shows that a model is loaded."""
        return self.status in ("ok", "reasoning_only") or (self.status == "empty" and self.finish_reason is not None)


def parse_answer(status: int, text: str) -> ChatAnswer:
    """The answer in the body of an HTTP reply.

    Args:
        status: the HTTP status; from 400 on the answer is an error whatever the body says.
        text: the body.
    """
    objects = list(_objects(text))
    error = next((found for one in objects if (found := error_text(one))), "")
    if status >= 400:
        error = f"HTTP {status}: {error or ' '.join(text.split())[:200] or 'an empty body'}"
    if not objects and not error:
        error = "the answer is neither JSON nor server-sent events"
    answer = ChatAnswer(error=error)
    for one in objects:
        if isinstance(one, Mapping):
            answer = _with(answer, one)
    return answer


def error_text(data: Any) -> str:
    """The error that a JSON value holds, in any of the shapes servers use; empty when it holds none."""
    if isinstance(data, str):
        return data
    if not isinstance(data, Mapping):
        return "" if data is None else "the answer is not a JSON object"
    error = data.get("error")
    if isinstance(error, Mapping):
        return str(error.get("message") or error.get("type") or error.get("code") or "an error without a message")
    if error:
        return str(error)
    if data.get("object") == "error":
        return str(data.get("message") or "an error without a message")
    if "choices" not in data and data.get("detail"):
        return str(data["detail"])
    return ""


def _with(answer: ChatAnswer, data: Mapping[str, Any]) -> ChatAnswer:
    """The answer so far and one more object: a whole reply, or a piece of a stream."""
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}
    part = choice.get("message") or choice.get("delta") or {}
    if not isinstance(part, Mapping):
        part = {}
    usage = data.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
    return attrs.evolve(
        answer,
        content=answer.content + _text(part.get("content") or choice.get("text")),
        reasoning=answer.reasoning + _text(part.get("reasoning_content") or part.get("reasoning")),
        model=_text(data.get("model")) or answer.model,
        finish_reason=_text(choice.get("finish_reason")) or answer.finish_reason,
        completion_tokens=tokens if isinstance(tokens, int) else answer.completion_tokens,
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):  # content parts
        return "".join(str(item["text"]) for item in value if isinstance(item, Mapping) and "text" in item)
    return ""


def _objects(text: str) -> Iterator[Any]:
    """The JSON values of a body: the one it is, or those of its server-sent events."""
    try:
        yield json.loads(text)
        return
    except (ValueError, RecursionError):
        pass
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        field, colon, value = line.partition(":")
        if not colon or field not in ("data", "error"):
            continue  # comments, such as `: keepalive 1/9`, and other fields
        value = value.strip()
        if not value or value == "[DONE]":
            continue
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            parsed = value  # a bare text in a stream is an error message
        yield {"error": parsed} if field == "error" and not error_text(parsed) else parsed
