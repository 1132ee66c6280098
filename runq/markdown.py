"""Text from outside in a Markdown file."""

from __future__ import annotations

import re

from runq.logs import one_line

_BARE_LINK = re.compile(r"(:(?=//)|www(?=\.))", re.IGNORECASE)


def escaped(text: str) -> str:
    """Text from outside as harmless Markdown: no table cell, tag, link, emphasis or line of its own."""
    flat = one_line(text)
    for character in "\\`*_[]|~$":
        flat = flat.replace(character, f"\\{character}")
    # A bare address becomes a link without any mark-up in most readers; it reads the same with the slash escaped.
    flat = _BARE_LINK.sub(r"\1\\", flat)
    return flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
