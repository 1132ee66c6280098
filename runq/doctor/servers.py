"""The servers of this machine: which answer, and what to do when none does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runq.doctor.finding import Finding
from runq.looking import FoundServer, Sought
from runq.seeking import SoughtBy

AREA = "servers"


def server_findings(found: Sequence[SoughtBy]) -> Iterator[Finding]:
    """What answers, what is installed and does not, what is in the way."""
    for one in found:
        if one.sought is None:
            remedy = "repair or uninstall this plugin; queues that do not use it still run"
            yield Finding(area=AREA, name=one.backend, status="warn", message=one.error, remedy=remedy)
    every = [one.sought for one in found if one.sought is not None]
    answering = [sought for sought in every if sought.servers]
    for sought in every:
        yield from _of_product(sought, alone=not answering)
    absent = [sought.product for sought in every if not (sought.servers or sought.program or sought.problem)]
    if answering and absent:
        yield Finding(area=AREA, name="others", status="ok", message=f"not found here: {', '.join(absent)}")
    if not answering:
        yield _none(every)


def _of_product(sought: Sought, *, alone: bool) -> Iterator[Finding]:
    for server in sought.servers:
        yield _answers(sought.product, server)
    if sought.problem:
        reason, _, remedy = sought.problem.partition(": ")
        yield Finding(area=AREA, name=sought.product, status="warn", message=reason, remedy=remedy or sought.remedy)
    elif sought.program and not sought.servers:
        message = f"{sought.program} is here, but nothing answers at {' or '.join(sought.asked)}"
        if alone:
            yield Finding(area=AREA, name=sought.product, status="warn", message=message, remedy=sought.remedy)
        else:
            yield Finding(area=AREA, name=sought.product, status="ok", message=message)
    if sought.note:
        yield Finding(area=AREA, name=f"{sought.product}'s program", status="ok", message=sought.note)


def _answers(product: str, server: FoundServer) -> Finding:
    chats = [model for model in server.models if model.chats]
    count = "1 model" if len(chats) == 1 else f"{len(chats)} models"
    message = f"answers at {server.base_url}, {count}"
    if server.note:
        return Finding(area=AREA, name=product, status="warn", message=message, remedy=server.note)
    return Finding(area=AREA, name=product, status="ok", message=message)


def _none(every: Sequence[Sought]) -> Finding:
    """No server at all: the steps to one, for somebody who never had one."""
    here = [sought for sought in every if sought.program]
    suggested = here or [sought for sought in every if sought.for_beginners] or list(every)
    lines = ["runq runs models on a server of yours. " + ("Start one:" if here else "If you have none yet, take one:")]
    lines += [f"- {sought.product}: {sought.remedy}" for sought in suggested]
    lines += [
        "Then run `runq doctor` again; when a server answers, `runq init` writes a queue file from what it offers.",
        "A server at another address: `runq doctor --url http://HOST:PORT`.",
    ]
    products = ", ".join(sought.product for sought in every)
    return Finding(
        area=AREA,
        name="a server",
        status="fail",
        message=f"none answers; looked for {products}" if products else "no plugin can look for one",
        remedy="\n".join(lines),
    )
