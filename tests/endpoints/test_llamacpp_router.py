"""Nights on a real llama.cpp router: three sizes of one model, and a router that is held busy through the reset."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from ..stand_ins.routers import SIZES, llama_cpp, router

__all__ = ["llama_cpp", "router"]

pytestmark = [pytest.mark.real_model, pytest.mark.slow]

MODELS = [f"smollm2-{size}" for size in SIZES]


def reset(router: Any, timeout_s: float = 60) -> str:
    return f"{{ backend: llamacpp, base_url: '{router.url}', timeout_s: {timeout_s} }}"


def deltas(shop: Any, night: str) -> list[float]:
    return [entry["model_delta_mb"] for entry in shop.summary(night)["entries"]]


def test_three_sizes_rank_as_their_files_do_and_repeat_within_ten_percent(
    router: Any, llama_cpp: Any, asking: Any
) -> None:
    server = router()
    shop = asking(server.url, MODELS, reset(server), of=server, wait_s=1.5)
    for _ in range(2):
        ran = shop.night()
        assert ran.returncode == 0, ran.stderr
    second, first = shop.nights()
    for night in (first, second):
        entries = shop.summary(night)["entries"]
        assert [(entry["eval_status"], entry["baseline_proven"]) for entry in entries] == [("ok", True)] * 3
        measured = deltas(shop, night)
        assert measured == sorted(measured), "as the files rank"
        files = [(llama_cpp.models / f"{model}.gguf").stat().st_size / 2**20 for model in MODELS]
        for at, (mb, file_mb) in enumerate(zip(measured, files, strict=True)):
            assert mb > 0.9 * file_mb, f"{MODELS[at]}: its weights are all read"
        grown = [after - before for before, after in zip(measured, measured[1:], strict=False)]
        expected = [after - before for before, after in zip(files, files[1:], strict=False)]
        assert grown == pytest.approx(expected, abs=25), "they differ by what the files differ by"
    assert deltas(shop, second) == pytest.approx(deltas(shop, first), rel=0.1)
    resets = [event.data for event in shop.events("reset.finished")]
    assert [one["verdict"] for one in resets] == ["verified"] * 6
    assert [one["loaded_before"] for one in resets] == [[], *[[model] for model in (*MODELS, *MODELS)][:5]]
    for one in resets[1:]:
        (held,) = one["details"]["owners_before"]
        assert held["name"] == "llama-server" and held["rss_mb"] > 100 and one["details"]["owners_after"] == []
    assert shop.events("warning") == []
