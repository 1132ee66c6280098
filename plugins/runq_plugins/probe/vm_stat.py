"""What macOS's `vm_stat` prints."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PAGE_SIZE = re.compile(r"page size of (\d+) bytes")
_COUNTER = re.compile(r'^"?([^":]+)"?:\s+(\d+)\.$')


def parse(text: str) -> Mapping[str, float]:
    """Every counter by its printed name, in MB (2**20 bytes).

    Raises:
        ValueError: it does not begin with the page size, as vm_stat(1) does.
    """
    size = _PAGE_SIZE.search(text)
    if size is None:
        raise ValueError("no page size in the output of vm_stat")
    pages = (_COUNTER.match(line.strip()) for line in text.splitlines())
    return {match[1]: int(match[2]) * int(size[1]) / 2**20 for match in pages if match}
