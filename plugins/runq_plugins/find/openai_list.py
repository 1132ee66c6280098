"""The list of models at `/v1/models`, as every OpenAI-compatible server gives it."""

from __future__ import annotations

from typing import Any

from runq.plugin import Look


def listed(look: Look, url: str, key: str = "") -> list[dict[str, Any]] | None:
    """The models with an id; ``None`` when the answer is no such list.

    Raises:
        PermissionError: the server wants a key.
    """
    body = look.get(url, "/v1/models", key=key)
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list):
        return None
    return [one for one in data if isinstance(one, dict) and isinstance(one.get("id"), str) and one["id"]]
