"""What the doctor says of one thing: how it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import attrs

from runq.logs import one_line

Status = Literal["ok", "warn", "fail"]


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that was looked at.

    Args:
        area: the group it belongs to, such as ``machine``.
        name: the thing.
        status: ``fail`` when tonight would fail because of it, ``warn`` when it may, or when its figures would be
            worth less.
        message: how it is; one sentence.
        remedy: what to do; empty with ``ok``. Several lines where there are several steps.
    """

    area: str
    name: str
    status: Status
    message: str
    remedy: str = ""


def as_data(findings: Iterable[Finding]) -> dict[str, Any]:
    """The findings as JSON data."""
    rows = [attrs.asdict(finding) for finding in findings]
    return {"ok": all(row["status"] != "fail" for row in rows), "findings": rows}


def as_text(findings: Sequence[Finding]) -> str:
    """The findings for people, the remedies beneath what they are for."""
    lines: list[str] = []
    area = ""
    for finding in findings:
        if finding.area != area:
            area = finding.area
            lines += [*([""] if lines else []), area]
        lines.append(f"  {finding.status:<4}  {finding.name}: {one_line(finding.message)}")
        lines += [f"        {one_line(line)}" for line in finding.remedy.splitlines()]
    counts = {status: sum(f.status == status for f in findings) for status in ("fail", "warn")}
    lines += ["", _verdict(counts["fail"], counts["warn"])]
    return "\n".join(lines)


def _verdict(failed: int, warned: int) -> str:
    if failed:
        return f"a night would fail: {failed} to mend" + (f", {warned} to look at" if warned else "")
    return "ready for a night" + (f", {warned} to look at" if warned else "")
