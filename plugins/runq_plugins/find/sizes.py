"""What a model's name and files tell about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

MB = 2**20

_QUANT = re.compile(
    r"(?i)(?<![a-z0-9])(i?q\d(?:_[a-z0-9]+)*|bf16|f16|f32|fp16|fp8|mxfp4|nvfp4|awq|gptq|w\d+a\d+|(?:int)?\d-?bit)(?![a-z0-9])"
)
"""The usual spellings: llama.cpp's (`Q4_K_M`, `IQ2_XS`, `F16`), MLX's (`4bit`), vLLM's (`awq`, `fp8`)."""

_EMBEDS = re.compile(r"(?i)embed|(?<![a-z])(bert|bge|rerank\w*)(?![a-z])")


def quant_in(name: str) -> str:
    """The quantisation that a name bears, as it is written there; empty when it bears none."""
    found = _QUANT.findall(name)
    return found[-1] if found else ""


def embeds(name: str) -> bool:
    """Whether a name says that the model makes embeddings or ranks, and so does not chat."""
    return _EMBEDS.search(name) is not None


def file_mb(path: str | Path) -> float | None:
    """The size of a file in MB; of all its parts where it is split as llama.cpp splits (`-00001-of-00003.gguf`)."""
    first = Path(path)
    parts = re.fullmatch(r"(.*)-00001-of-(\d{5})\.gguf", first.name)
    names = [first.name]
    if parts:
        names = [f"{parts[1]}-{number:05}-of-{parts[2]}.gguf" for number in range(1, int(parts[2]) + 1)]
    try:
        return sum((first.parent / name).stat().st_size for name in names) / MB
    except OSError:
        return None


def hub_mb(repository: str, env: Mapping[str, str]) -> float | None:
    """The weights of a model in this machine's Hugging Face cache, in MB; ``None`` when it is not there.

    The layout is `hub/models--ORGANISATION--NAME/snapshots/REVISION/` (huggingface_hub, "Understand caching").
    """
    home = Path(env.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(env.get("HF_HUB_CACHE") or home / "hub")
    folder = hub / f"models--{repository.replace('/', '--')}" / "snapshots"
    try:
        newest = max(folder.iterdir(), key=lambda one: one.stat().st_mtime)
        sizes = [file.stat().st_size for file in newest.rglob("*.safetensors")]
    except (OSError, ValueError):
        return None
    return sum(sizes) / MB if sizes else None
