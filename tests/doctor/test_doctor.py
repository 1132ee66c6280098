"""`runq doctor` on real servers (stand-ins), real interpreters, real journals."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from runq.discovery import Plugins
from runq.doctor.needs import need_finding
from runq.looking import Need

Rows = dict[tuple[str, str], dict[str, Any]]


def rows(ran: Any) -> Rows:
    data = json.loads(ran.out)
    found = {(row["area"], row["name"]): row for row in data["findings"]}
    assert len(found) == len(data["findings"]), "no two of a name"
    assert data["ok"] == all(row["status"] != "fail" for row in data["findings"]) == (ran.code == 0)
    for row in data["findings"]:
        assert row["message"] and bool(row["remedy"]) == (row["status"] != "ok"), row
    return found


# --- a machine without a server ---------------------------------------------------------------------------------


def test_without_any_server_a_newcomer_is_told_the_steps(
    runq: Any, free_port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    ran = runq("doctor", "--port", str(free_port))
    assert ran.code == 1
    lines = ran.out.splitlines()
    at = lines.index(
        "  fail  a server: none answers; looked for llama-swap, llama.cpp, LM Studio, mlx_lm, Ollama, vLLM"
    )
    assert lines[at + 1 : at + 6] == [
        "        runq runs models on a server of yours. If you have none yet, take one:",
        "        - LM Studio: install it from https://lmstudio.ai, get a model in it, and start its server (Developer)",
        "        - Ollama: install it from https://ollama.com/download, then get a model: `ollama pull qwen3:4b`",
        "        Then run `runq doctor` again; when a server answers, `runq init` writes a queue file from what it"
        " offers.",
        "        A server at another address: `runq doctor --url http://HOST:PORT`.",
    ]
    assert lines[-1].startswith("a night would fail: 1 to mend")


def test_what_is_installed_and_does_not_run_is_to_be_started(
    runq: Any, free_port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "ollama"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho started >> ${0}.log\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    ran = runq("doctor", "--port", str(free_port), "--json")
    found = rows(ran)
    assert ran.code == 1
    ollama = found["servers", "Ollama"]
    assert ollama["status"] == "warn" and str(program) in ollama["message"] and "ollama serve" in ollama["remedy"]
    none = found["servers", "a server"]["remedy"]
    assert "Start one:" in none and "ollama serve" in none and "LM Studio" not in none
    assert not program.with_name("ollama.log").exists(), "looking starts nothing"


# --- servers, harnesses -----------------------------------------------------------------------------------------


def test_a_server_that_answers_is_enough(runq: Any, host: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    ollama = host("ollama")
    ran = runq("doctor", "--url", ollama.url, "--json")
    found = rows(ran)
    assert ran.code == 0, ran.out
    assert found["servers", "Ollama"]["message"] == f"answers at {ollama.url}/v1, 2 models"
    assert "LM Studio" in found["servers", "others"]["message"]
    assert {("machine", name) for name in ("Python", "disk", "memory", "power", "sleep")} <= set(found)


def test_an_interpreter_is_really_asked(tmp_path: Path) -> None:
    def ask(need: Need) -> Any:
        return need_finding(need, area="a", name="n", missing="fail", base_dir=tmp_path, env=dict(os.environ))

    there = ask(Need(program=sys.executable, module="strictyaml", remedy="x"))
    assert there.status == "ok" and there.message.startswith("strictyaml 1.") and sys.executable in there.message
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    broken = ask(Need(program=sys.executable, module="broken", remedy="mend it"))
    assert broken.status == "fail" and broken.remedy == "mend it"
    assert broken.message.endswith("ModuleNotFoundError: No module named 'nothing_of_that_name'")
    (tmp_path / "loud.py").write_text("print('hello')\n")
    assert ask(Need(program=sys.executable, module="loud")).status == "ok"
    assert ask(Need(program="no-such-program-here", remedy="r")).message == "no-such-program-here is not on the PATH"
    assert ask(Need(program="./tool", remedy="r")).message == "./tool is not there"
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    assert ask(Need(program="./tool")).message == f"./tool is {tmp_path}/tool"


# --- the journal ------------------------------------------------------------------------------------------------


def test_a_whole_journal(runq: Any, past: Path, free_port: int) -> None:
    found = rows(runq("doctor", "--port", str(free_port), "--json"))
    assert found["journal", "journal"]["message"].endswith("events, hash chain whole")
    assert found["journal", "permissions"]["status"] == "ok"
    assert found["journal", "lock"]["message"] == "no night runs"
    (past / "journal.db").chmod(0o644)
    found = rows(runq("doctor", "--port", str(free_port), "--json"))
    assert found["journal", "permissions"]["status"] == "warn"
    assert found["journal", "permissions"]["remedy"] == f"chmod -R go-rwx {past}"


def test_an_edited_journal_fails(runq: Any, past: Path, host: Any) -> None:
    with sqlite3.connect(past / "journal.db") as db:
        db.execute("DROP TRIGGER event_no_update")
        db.execute("UPDATE event SET data = replace(data, 'it exited with 3', 'it was fine') WHERE id = 3")
    db.close()
    ran = runq("doctor", "--url", host("ollama").url, "--json")
    row = rows(ran)["journal", "journal"]
    assert ran.code == 1 and row["status"] == "fail" and "damaged" in row["message"]


NOBODY = """
import os, sys
from pathlib import Path
from runq.doctor.journal import journal_findings
runs = Path(sys.argv[1]) / "runs"
list(journal_findings(runs))  # imports what it needs, which nobody may not be able to read
if os.geteuid() == 0:  # root may write everywhere
    os.setgid(65534)
    os.setuid(65534)
print(*[(f.name, f.status, f.message) for f in journal_findings(runs)], sep="\\n")
"""


def test_a_folder_of_somebody_else_fails() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        ran = subprocess.run([sys.executable, "-c", NOBODY, name], capture_output=True, text=True, timeout=60)
        assert ran.stdout.splitlines()[0] == str(("writable", "fail", f"{name} cannot be written by this user")), ran
        folder.chmod(0o700)


def test_a_night_that_runs_is_told(workshop: Any, free_port: int) -> None:
    workshop.commands(["m"], {"eval": "time.sleep(60)"})
    workshop.start("night", "queue.yaml")
    workshop.wait_for_event("step.spawned")
    ran = workshop.runq("doctor", "--port", str(free_port), "--json")
    (lock,) = [row for row in json.loads(ran.stdout)["findings"] if row["name"] == "lock"]
    assert lock["status"] == "warn" and f"queue {workshop.queue}" in lock["message"]


# --- a queue ----------------------------------------------------------------------------------------------------

QUEUE = """\
defaults:
  reset: {{ backend: ollama, host: "{url}" }}
  harness:
    harness: command
    endpoint: {url}/v1
    steps: {{ eval: {{ argv: [{program}, "{{model}}"], artifacts: [a] }} }}
entries:
  - model: {model}
"""


def test_what_a_queue_needs_is_there(runq: Any, home: Path, host: Any) -> None:
    url = host("ollama").url
    (home / "queue.yaml").write_text(QUEUE.format(url=url, program="sh", model='"gemma3:4b"'))
    ran = runq("doctor", "queue.yaml", "--json")
    found = rows(ran)
    assert ran.code == 0, ran.out
    assert found["queue", "step eval"]["status"] == "ok"
    assert found["queue", f"{url}/v1"]["message"] == "answers, 2 models"
    assert found["queue", "reset ollama"]["message"] == f"Ollama answers at {url}"
    assert "the largest model, gemma3:4b, has weights of 3.1 GB" in found["machine", "memory"]["message"]
    assert ("servers", "Ollama") not in found, "only what this queue needs"


def test_what_a_queue_needs_and_is_not_there(runq: Any, home: Path, host: Any) -> None:
    url = host("ollama").url
    (home / "queue.yaml").write_text(QUEUE.format(url=url, program="no-such-program", model='"gemma3:4"'))
    ran = runq("doctor", "queue.yaml", "--json")
    data = json.loads(ran.out)["findings"]
    assert ran.code == 1
    told = [(row["name"], row["status"], row["message"]) for row in data if row["area"] == "queue"]
    assert ("step eval", "fail", "no-such-program is not on the PATH") in told
    (unlisted,) = [row for row in data if "does not list" in row["message"]]
    assert unlisted["status"] == "warn" and unlisted["remedy"].startswith("did you mean 'gemma3:4b'?")


def test_a_server_that_a_queue_needs_does_not_run(runq: Any, home: Path, free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}"
    (home / "queue.yaml").write_text(QUEUE.format(url=url, program="sh", model="m"))
    ran = runq("doctor", "queue.yaml", "--json")
    found = rows(ran)
    assert ran.code == 1
    assert found["queue", f"{url}/v1"]["status"] == "fail"
    assert "ollama" in found["queue", f"{url}/v1"]["remedy"]
    assert found["queue", "reset ollama"]["status"] == "warn"


def test_a_server_that_runq_starts_has_its_place_free(runq: Any, home: Path, serve: Any, free_port: int) -> None:
    def queue(port: int) -> Rows:
        text = QUEUE.format(url=f"http://127.0.0.1:{port}", program="sh", model="m")
        server = f'reset: {{ backend: server, argv: [sh, "{{model}}"], port: {port} }}'
        reset = f'reset: {{ backend: ollama, host: "http://127.0.0.1:{port}" }}'
        (home / "queue.yaml").write_text(text.replace(reset, server))
        return rows(runq("doctor", "queue.yaml", "--json"))

    found = queue(free_port)
    assert found["queue", "server"]["message"].startswith("sh is /")
    assert found["queue", f"http://127.0.0.1:{free_port}/v1"]["status"] == "ok"
    taken = serve(lambda *_: (200, {}))
    assert queue(taken.port)["queue", f"{taken.url}/v1"]["status"] == "fail"


def test_a_wrong_queue_is_told_with_its_places(runq: Any, home: Path) -> None:
    (home / "queue.yaml").write_text("entries: [{ model: m, reset: olama, pack: packs/none.yaml }]\n")
    ran = runq("doctor", "queue.yaml")
    assert ran.code == 1
    assert "fail  queue.yaml, entry 0, line 1, column 30: there is no reset plugin named 'olama'" in ran.out
    assert "did you mean 'ollama'?" in ran.out


def test_a_plugin_that_breaks_while_it_looks_costs_only_itself() -> None:
    from runq.looking import Look
    from runq.seeking import seek

    plugins = Plugins()
    plugins.load("reset", "ollama")

    class Broken:
        @classmethod
        def find(cls, look: Look) -> Any:
            raise RuntimeError("no idea")

    import attrs

    loaded = plugins._loaded
    loaded["reset", "ollama"] = attrs.evolve(loaded["reset", "ollama"], cls=Broken)
    (one,) = seek(plugins, Look(urls=("http://127.0.0.1:9",)), backend="ollama")
    assert one.sought is None and one.error == "RuntimeError: no idea"
