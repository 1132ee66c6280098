"""`runq init` against servers that answer as the real ones do: what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runq.init.offers import Candidate, candidates, named, numbered, same_server, size_text
from runq.init.writing import scalar, timeout_s
from runq.looking import FoundServer, OfferedModel, Sought
from runq.seeking import SoughtBy
from runq_schemas.document import read_document
from runq_schemas.errors import UsageError
from runq_schemas.parse import load_queue
from runq_schemas.scalar import to_json


@pytest.fixture
def folder(home: Path) -> Path:
    """An empty folder that is the current one."""
    (home / "queue.yaml").unlink()
    return home


@pytest.fixture
def models() -> dict[str, int]:
    """What `router` offers: id to size in MB; a test changes it."""
    return {"b-Q8_0": 4096, "a-Q4_K_M": 1024, "bge-m3": 600}


@pytest.fixture
def router(serve: Any, models: dict[str, int]) -> Any:
    """A llama.cpp router, as far as its lists go."""

    def answer(_method: str, path: str, _body: Any) -> Any:
        if path == "/props":
            return 200, {"role": "router"}
        if path == "/v1/models":
            return 200, {"data": [{"id": id, "meta": {"size": mb * 2**20}} for id, mb in models.items()]}
        return 404, {}

    return serve(answer)


def ids(path: Path) -> list[str]:
    return [entry.model.id for entry in load_queue(path).entries]


# --- a new file -------------------------------------------------------------------------------------------------


def test_one_entry_a_model_the_smallest_first_with_backend_and_timeout(runq: Any, folder: Path, router: Any) -> None:
    ran = runq("init", "--yes", "--url", router.url)
    assert ran.code == 0, ran.err
    first, second = load_queue(folder / "queue.yaml").entries
    assert (first.model.id, first.model.quant, second.model.id) == ("a-Q4_K_M", "Q4_K_M", "b-Q8_0")
    assert first.reset.name == "llamacpp" and first.reset.options == {"base_url": router.url}
    assert first.pack == "starter/questions.json"
    assert (first.harness.name, first.harness.options["endpoint"]) == ("command", f"{router.url}/v1")
    assert first.step_timeout_s == {"eval": 5400}, "an hour and 25 minutes, in quarter hours"
    assert second.step_timeout_s == {"eval": 9900}, "an hour and 100 minutes: 160, rounded up to 165"
    assert ran.out.splitlines() == [
        "+ a-Q4_K_M                1.0 GB, Q4_K_M, llama.cpp",
        "+ b-Q8_0                  4.0 GB, Q8_0, llama.cpp",
        "+ starter/ask.py          new file",
        "+ starter/questions.json  new file",
    ]
    assert "runq check queue.yaml" in ran.err
    assert stat.S_IMODE((folder / "queue.yaml").stat().st_mode) & 0o400
    assert all(method == "GET" for method, _, _ in router.requests), "it only reads"
    plan = runq("plan", "queue.yaml", "--json")
    assert plan.code == 0 and [e["model"]["id"] for e in json.loads(plan.out)["entries"]] == ids(folder / "queue.yaml")


def test_two_servers_in_one_file(runq: Any, folder: Path, router: Any, host: Any) -> None:
    ollama = host("ollama")
    assert runq("init", "--yes", "--url", router.url, "--url", ollama.url).code == 0
    entries = load_queue(folder / "queue.yaml").entries
    assert [(e.model.id, e.reset.name) for e in entries] == [
        ("a-Q4_K_M", "llamacpp"), ("gemma3:4b", "ollama"), ("b-Q8_0", "llamacpp"), ("qwen3:8b", "ollama"),
    ]  # fmt: skip
    assert [e.harness.options["endpoint"] for e in entries] == [f"{router.url}/v1", f"{ollama.url}/v1"] * 2
    assert runq("plan", "queue.yaml").code == 0


def test_the_starter_asks_and_scores(runq: Any, folder: Path, router: Any, serve: Any) -> None:
    runq("init", "--yes", "--url", router.url)
    questions = json.loads((folder / "starter/questions.json").read_text())
    known = {p["prompt"]: p for category in questions["categories"] for p in category["prompts"]}

    def answer(_method: str, path: str, body: Any) -> Any:
        assert path == "/v1/chat/completions" and body["model"] == "m"
        prompt = known[body["messages"][0]["content"]]
        if prompt["id"] == "river":
            return 500, {"error": "out of memory"}
        text = "No idea." if prompt["id"] == "ocean" else f"<think>Rome?</think> It is {prompt['expect'][0]}."
        return 200, {"choices": [{"message": {"content": text}}]}

    served = serve(answer)
    words = ["--pack", "starter/questions.json", "--model", "m", "--out", ".", "--endpoint", f"{served.url}/v1"]
    argv = [sys.executable, "starter/ask.py", *words, "--key-env", "SOME_KEY"]
    ran = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60, env={"SOME_KEY": "secret"})
    assert ran.returncode == 0, ran.stderr
    rows = {row["prompt_id"]: row for row in map(json.loads, (folder / "responses.jsonl").read_text().splitlines())}
    assert len(rows) == 8 == len(known)
    assert rows["river"]["ok"] is False and "out of memory" in rows["river"]["error"]
    assert (rows["ocean"]["ok"], rows["ocean"]["passed"]) == (True, False)
    assert rows["capital"]["response_text"] == "It is Paris." and rows["capital"]["passed"] is True
    assert ran.stdout.splitlines()[-1] == "6 of 8 as expected"
    assert (folder / "scores.csv").read_text().splitlines()[1:4] == ["capital,true", "river,false", "ocean,false"]
    assert served.headers[0]["Authorization"] == "Bearer secret"


def test_models_are_named_or_asked_for(runq: Any, folder: Path, router: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = runq("init", "--url", router.url)
    assert ran.code == 2 and "--yes" in ran.err and not (folder / "queue.yaml").exists()
    ran = runq("init", "--models", "c", "--url", router.url)
    assert ran.code == 2 and "no server offers a model 'c'" in ran.err
    assert runq("init", "--models", "b-*", "--url", router.url).code == 0
    assert ids(folder / "queue.yaml") == ["b-Q8_0"]


def test_touchstone_gets_its_configuration(runq: Any, folder: Path, router: Any) -> None:
    ran = runq("init", "--yes", "--harness", "touchstone", "--url", router.url)
    assert ran.code == 2 and "--pack" in ran.err
    ran = runq("init", "--yes", "--harness", "touchstone", "--pack", "packs/office.yaml", "--url", router.url)
    assert ran.code == 0, ran.err
    first = load_queue(folder / "queue.yaml").entries[0]
    assert (first.config, first.pack, first.harness.name) == ("config.llamacpp.yaml", "packs/office.yaml", "touchstone")
    config = to_json(read_document((folder / "config.llamacpp.yaml").read_text(), "config").data)
    assert config["endpoint"]["base_url"] == f"{router.url}/v1" and config["models"] == [{"id": "a-Q4_K_M"}]
    assert not (folder / "starter").exists()
    assert runq("plan", "queue.yaml").code == 0


def test_what_would_be_refused_is_not_written(runq: Any, folder: Path, router: Any) -> None:
    ran = runq("init", "--yes", "--harness", "touchstone", "--pack", "packs/none.yaml", "--url", router.url)
    assert ran.code == 2 and "packs/none.yaml" in ran.err
    assert not (folder / "queue.yaml").exists()
    ran = runq("init", "--yes", "--harness", "touchston", "--pack", "packs/office.yaml", "--url", router.url)
    assert ran.code == 2 and "did you mean 'touchstone'?" in ran.err


def test_a_dry_run_writes_nothing(runq: Any, folder: Path, router: Any) -> None:
    before = sorted(folder.rglob("*"))
    ran = runq("init", "--yes", "--dry-run", "--url", router.url)
    assert ran.code == 0 and "  - model: { id: a-Q4_K_M, quant: Q4_K_M }" in ran.out
    assert sorted(folder.rglob("*")) == before


def test_without_a_server_it_says_how_to_get_one(runq: Any, folder: Path, free_port: int) -> None:
    ran = runq("init", "--yes", "--port", str(free_port))
    assert ran.code == 1 and "a server: none answers" in ran.err and "https://ollama.com/download" in ran.err


# --- a file that is there ---------------------------------------------------------------------------------------


def test_called_again_it_changes_nothing(runq: Any, folder: Path, router: Any) -> None:
    runq("init", "--yes", "--url", router.url)
    before = (folder / "queue.yaml").read_bytes()
    ran = runq("init", "--yes", "--url", router.url)
    assert ran.code == 0 and (folder / "queue.yaml").read_bytes() == before
    assert [line[0] for line in ran.out.splitlines()] == ["=", "="]
    assert "up to date already" in ran.err


def test_edits_stay_what_is_new_is_added_and_what_is_gone_is_marked(
    runq: Any, folder: Path, router: Any, models: dict[str, int]
) -> None:
    runq("init", "--yes", "--url", router.url)
    path = folder / "queue.yaml"
    edited = path.read_text().replace(
        "step_timeout_s: { eval: 5400 }", "step_timeout_s: {eval:   77}  # mine\n    # so"
    )
    edited = edited.replace("defaults:\n", "defaults:\n  retries: 2   # my own\n")
    path.write_text(edited)
    path.chmod(0o640)
    models |= {"c-Q4_0": 2048}
    del models["b-Q8_0"]
    ran = runq("init", "--yes", "--url", router.url)
    assert ran.code == 0, ran.err
    assert [line.split()[:2] for line in ran.out.splitlines()] == [["+", "c-Q4_0"], ["=", "a-Q4_K_M"], ["-", "b-Q8_0"]]
    text = path.read_text()
    lines = text.splitlines()
    gone = lines.index("  # runq init: its server does not list this model any more")
    assert lines[gone + 1].startswith("  - model: { id: b-Q8_0, quant: Q8_0 }")
    assert ids(path) == ["a-Q4_K_M", "b-Q8_0", "c-Q4_0"]
    third = load_queue(path).entries[2]
    assert third.pack == "starter/questions.json" and third.step_timeout_s == {"eval": 7200}
    added = {
        "  - model: { id: c-Q4_0, quant: Q4_0 }    # 2.0 GB, Q4_0, llama.cpp",
        "    pack: starter/questions.json",
    }
    new = [line for line in lines if line not in edited.splitlines()]
    assert set(new) - added == {lines[gone], "    step_timeout_s: { eval: 7200 }", "#   c-Q4_0"}
    assert [line for line in lines if line in edited.splitlines()].count("    # so") == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    models["b-Q8_0"] = 4096
    assert runq("init", "--yes", "--url", router.url).code == 0
    assert "does not list" not in path.read_text(), "it is offered again"


def test_what_was_removed_is_not_added_again_unless_it_is_named(
    runq: Any, folder: Path, router: Any, models: dict[str, int]
) -> None:
    runq("init", "--yes", "--url", router.url)
    path = folder / "queue.yaml"
    head, _, tail = path.read_text().partition("  - model: { id: b-Q8_0")
    path.write_text(head + "\n" + tail[tail.index("# Models") :])
    assert ids(path) == ["a-Q4_K_M"]
    ran = runq("init", "--yes", "--url", router.url)
    assert ids(path) == ["a-Q4_K_M"]
    assert ". b-Q8_0    left out; add it with --models" in ran.out.splitlines()
    runq("init", "--models", "b-Q8_0", "--url", router.url)
    assert ids(path) == ["a-Q4_K_M", "b-Q8_0"]


FOREIGN = """\
# my nights
defaults: { reset: { backend: llamacpp, base_url: "URL" } }
entries:
- config: config.yaml
  pack: packs/office.yaml
  model: "a-Q4_K_M"
  judge_config: judge.yaml   # strict

  # the end of it
# and this is about the matrix
matrix:
  models: [z]
  config: config.yaml
  pack: packs/office.yaml
"""


def test_a_file_of_the_users_own_gets_entries_like_its_others(runq: Any, folder: Path, router: Any) -> None:
    path = folder / "queue.yaml"
    path.write_text(FOREIGN.replace("URL", router.url))
    ran = runq("init", "--yes", "--url", router.url)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[2] == "- z         its server does not list it any more; its entry stays"
    lines = path.read_text().splitlines()
    at = lines.index("  # the end of it")
    assert lines[at + 1 : at + 8] == [
        "- model: { id: b-Q8_0, quant: Q8_0 }    # 4.0 GB, Q8_0, llama.cpp",
        "  config: config.yaml",
        "  pack: packs/office.yaml",
        "  judge_config: judge.yaml",
        "  step_timeout_s: { eval: 9900 }",
        "# and this is about the matrix",
        "matrix:",
    ]
    assert ids(path) == ["a-Q4_K_M", "b-Q8_0", "z"]


def test_a_new_server_in_a_file_of_another(runq: Any, folder: Path, router: Any, host: Any) -> None:
    path = folder / "queue.yaml"
    runq("init", "--yes", "--url", router.url)
    ollama = host("ollama")
    assert runq("init", "--models", "gemma3:4b", "--url", router.url, "--url", ollama.url).code == 0
    added = load_queue(path).entries[-1]
    assert (added.model.id, added.reset.name) == ("gemma3:4b", "ollama")
    assert added.harness.options["endpoint"] == f"{ollama.url}/v1"
    assert added.pack == "starter/questions.json"


def test_a_matrix_alone_gets_entries_beside_it(runq: Any, folder: Path, router: Any) -> None:
    path = folder / "queue.yaml"
    path.write_text(
        f"defaults: {{ reset: {{ backend: llamacpp, base_url: '{router.url}' }} }}\n"
        "matrix: { models: [a-Q4_K_M], config: config.yaml, packs: [packs/office.yaml] }\n"
    )
    assert runq("init", "--yes", "--url", router.url).code == 0
    assert ids(path) == ["b-Q8_0", "a-Q4_K_M"], "the entries come first"
    assert load_queue(path).entries[0].config == "config.yaml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("entries: [{ model: z, config: config.yaml, pack: packs/office.yaml }]\n", "stand in brackets"),
        ("entries:\n  - modle: z\n", "`modle` is not a key"),
    ],
)
def test_a_file_that_cannot_be_added_to_is_not_touched(
    runq: Any, folder: Path, router: Any, text: str, message: str
) -> None:
    path = folder / "queue.yaml"
    path.write_text(text)
    ran = runq("init", "--yes", "--url", router.url)
    assert ran.code == 2 and message in ran.err
    assert path.read_text() == text


def test_a_file_of_windows_keeps_its_line_ends(runq: Any, folder: Path, router: Any, models: dict[str, int]) -> None:
    runq("init", "--yes", "--url", router.url)
    path = folder / "queue.yaml"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    models["c"] = 1
    assert runq("init", "--yes", "--url", router.url).code == 0
    raw = path.read_bytes()
    assert b"id: c" not in raw and b"- model: c " in raw
    assert raw.count(b"\n") == raw.count(b"\r\n")


def test_a_character_that_only_python_takes_for_a_line_end_stays(
    runq: Any, folder: Path, router: Any, models: dict[str, int]
) -> None:
    runq("init", "--yes", "--url", router.url)
    path = folder / "queue.yaml"
    mine = '  env: { A: "one\u2028line of mine" }\n'
    path.write_text(path.read_text().replace("defaults:\n", f"defaults:\n{mine}", 1), encoding="utf-8")
    models["c"] = 1
    assert runq("init", "--yes", "--url", router.url).code == 0
    assert ids(path)[-1] == "c" and mine in path.read_bytes().decode()


def test_at_a_terminal_it_asks(folder: Path, router: Any) -> None:
    terminal, ours = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "runq", "init", "--url", router.url],
        cwd=folder,
        stdin=ours,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.write(terminal, b"7\n2\n")
    out, err = process.communicate(timeout=60)
    os.close(terminal)
    os.close(ours)
    assert process.returncode == 0, err
    assert "  1  a-Q4_K_M  1.0 GB, Q4_K_M, llama.cpp\n  2  b-Q8_0    4.0 GB, Q8_0, llama.cpp\n" in err
    assert "'7' is not one of 1 to 2" in err
    assert ids(folder / "queue.yaml") == ["b-Q8_0"]
    assert ". a-Q4_K_M                left out; add it with --models" in out.splitlines()


# --- rules ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size_mb", "seconds"),
    [(None, None), (0.0, 3600), (1.0, 4500), (1024.0, 5400), (7.2 * 1024, 14400), (40960.0, 63900)],
)
def test_timeouts_by_size(size_mb: float | None, seconds: int | None) -> None:
    assert timeout_s(size_mb) == seconds


@pytest.mark.parametrize(
    "value",
    ["a", "a b", "qwen3:8b", "true", "No", "null", "1", "1.5", "0x1f", "", "#", "a: b", "{x}", "ü", '"', "-", 7, True],
)  # fmt: skip
def test_a_value_is_read_as_it_was_written(value: Any) -> None:
    data = to_json(read_document(f"a: {{ b: [{scalar(value)}], c: {scalar({'d': value})} }}\n", "q").data)
    assert data == {"a": {"b": [value], "c": {"d": value}}}


def _candidate(name: str, size_mb: float | None = None, url: str = "http://127.0.0.1:1/v1") -> Candidate:
    server = FoundServer(base_url=url, engine="e", reset={"backend": "b"}, models=())
    return Candidate(product="P", server=server, model=OfferedModel(id=name, size_mb=size_mb))


def test_the_order_and_no_server_twice() -> None:
    models = (
        OfferedModel(id="unknown"), OfferedModel(id="large", size_mb=9.0), OfferedModel(id="small", size_mb=1.0),
        OfferedModel(id="embed", size_mb=0.1, chats=False),
    )  # fmt: skip
    here = FoundServer(base_url="http://127.0.0.1:8080/v1", engine="e", reset={"backend": "b"}, models=models)
    same = FoundServer(base_url="http://localhost:8080/v1", engine="f", reset={"backend": "c"}, models=models)
    found = [
        SoughtBy(backend=n, sought=Sought(product=n, asked=(), servers=(s,))) for n, s in (("x", here), ("y", same))
    ]
    assert [(c.model.id, c.product) for c in candidates(found)] == [("small", "x"), ("large", "x"), ("unknown", "x")]


@pytest.mark.parametrize(
    ("answer", "chosen"), [("", "abc"), ("all", "abc"), ("none", ""), ("2", "b"), ("3, 1", "ac"), ("2-3", "bc")]
)
def test_an_answer_by_numbers(answer: str, chosen: str) -> None:
    assert [c.model.id for c in numbered([_candidate(name) for name in "abc"], answer)] == list(chosen)


@pytest.mark.parametrize("answer", ["0", "4", "x", "1-", "1-9", "-1"])
def test_a_wrong_answer_is_refused(answer: str) -> None:
    with pytest.raises(UsageError):
        numbered([_candidate(name) for name in "abc"], answer)


def test_names_with_stars() -> None:
    offered = [_candidate(name) for name in ("qwen3:8b", "qwen3:4b", "gemma", "a[1]")]
    assert [c.model.id for c in named(offered, ["qwen*"])] == ["qwen3:8b", "qwen3:4b"]
    assert [c.model.id for c in named(offered, ["a[1]", "gemma"])] == ["gemma", "a[1]"], "an id is no pattern"
    with pytest.raises(UsageError, match="gema"):
        named(offered, ["gema"])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"backend": "ollama"}, {"backend": "ollama", "host": "127.0.0.1:11434"}, True),
        ({"backend": "ollama", "host": "http://localhost:1"}, {"backend": "ollama", "host": "127.0.0.1:1"}, True),
        ({"backend": "ollama", "host": "127.0.0.1:1"}, {"backend": "ollama", "host": "127.0.0.1:2"}, False),
        ({"backend": "vllm", "base_urls": ["http://a:1"]}, {"backend": "vllm", "base_urls": ["http://a:1/v1"]}, True),
        ({"backend": "mlx", "port": 1}, {"backend": "mlx", "port": "1"}, True),
        ({"backend": "lms"}, {"backend": "ollama"}, False),
    ],
)
def test_which_settings_mean_one_server(one: dict[str, Any], other: dict[str, Any], same: bool) -> None:
    assert same_server(one, other) is same


def test_sizes_for_people() -> None:
    assert [size_text(mb) for mb in (None, 94.4, 999.0, 1024.0, 4983.0)] == ["", "94 MB", "999 MB", "1.0 GB", "4.9 GB"]
