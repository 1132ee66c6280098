"""What a stranger can name or send: nothing of it leaves the runs folder, is run, or is more than text on a terminal.

Pages of `runq browse` are looked at in tests/browse; here it is the same hostile night, from the queue file on.
"""

import ast
import json
import re
import stat
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import psutil
import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("runq", "schemas/runq_schemas", "journal/runq_journal", "plugins/runq_plugins")

ESCAPES = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e"
HOSTILE = f"../../x<script>alert(1)</script>|`{ESCAPES}"
YAML_HOSTILE = json.dumps(HOSTILE)

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def hostile(shop):
    """A night in which model, pack, entry's files and the step's own output are hostile."""
    shop.write("packs/evil.yaml", f"id: {YAML_HOSTILE}\ntitle: x\n")
    shop.write(
        "work.py",
        f"""
import os, sys
from pathlib import Path
bundle = Path(sys.argv[1])
print({HOSTILE!r})
(bundle / {"<img src=x>|" + chr(27) + "[31m.txt"!r}).write_text("x")
(bundle / "out.txt").write_text("x")
os.symlink("/etc/passwd", bundle / "link")
sys.exit(0 if sys.argv[2] == "good" else 3)
""",
    )
    shop.write("evict.py", f"import sys\nprint({HOSTILE!r}, file=sys.stderr)\nsys.exit(1)\n")
    work = "{ argv: ['{python}', work.py, '{bundle}', '{model}'], artifacts: [out.txt] }"
    shop.write(
        "queue.yaml",
        f"""\
defaults:
  reset: {{ backend: command, command: [python, evict.py] }}
  settle: {{ timeout_s: 2, plateau_polls: 1, poll_interval_s: 0.02, epsilon_mb: 100000 }}
  harness: {{ harness: command, steps: {{ work: {work} }} }}
entries:
  - {{ pack: packs/evil.yaml, model: {YAML_HOSTILE} }}
  - {{ pack: packs/evil.yaml, model: good }}
""",
    )


SHOWING = (
    *("status", "status --json", "nights", "nights --json", "log e0", "log e1", "watch", "watch --json"),
    *("plan queue.yaml --resume", "plan queue.yaml --json", "doctor queue.yaml", "check queue.yaml"),
    *("report", "report --format md", "report --format csv", "compare {night} {night}", "export events --format jsonl"),
    *(
        "export events --format csv",
        "prune --older-than 1d --dry-run",
        "replay --at 9",
        "night queue.yaml --resume --json",
    ),
)
"""Every command that shows something of a night to people or programs."""


@pytest.fixture
def everything(tmp_path):
    """Every path below the test's folder, so that what leaves the runs folder is seen."""
    return lambda: {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}


def test_a_hostile_night_stays_in_its_folder_and_is_text_everywhere(workshop, everything, free_port):
    shop = workshop
    hostile(shop)
    before = everything()
    told = [shop.runq("plan", "queue.yaml"), shop.night()]
    assert [one.returncode for one in told] == [0, 1], told[-1].stderr
    made = {path for path in everything() - before if not path.startswith("state")}
    assert {path for path in made if not path.startswith("night/runs")} == set()
    assert all(not (path.count("<") or path.count("\x1b")) for path in made if "_eval_" not in path)
    for bundle in shop.runs.glob("*_eval_*"):
        assert re.fullmatch(r"[A-Za-z0-9._-]+", bundle.name)

    markdown = shop.markdown()
    assert UNSAFE.search(markdown) is None
    assert re.search(r"<[a-z]", markdown) is None
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {10}  # nine cells each, whatever they hold

    night = shop.nights()[0]
    told += [shop.runq(*words.format(night=night).split()) for words in SHOWING]
    assert [one.returncode for one in told if one.returncode not in (0, 1)] == []
    pages = [path.read_text() for path in shop.runs.rglob("*") if path.name in ("report.html", "check.md")]
    assert len(pages) == 2
    for page in pages:
        assert UNSAFE.search(page) is None and "<script>alert" not in page and "<img src=x" not in page
    told += [shop.runq("rerun", "e9"), shop.runq("log", "e0", HOSTILE.replace("\x00", ""))]
    for one in told:
        shown = one.stdout + one.stderr
        assert UNSAFE.search(shown) is None, (one.args, UNSAFE.search(shown))
    assert json.loads(shop.runq("status", "--json").stdout)["entries"][0]["model_id"] == HOSTILE

    browse = shop.start("browse", "--port", str(free_port))
    url = f"http://127.0.0.1:{free_port}"
    shop.wait_for(lambda: _page(url) is not None)
    for path in ("/", f"/night/{shop.nights()[0]}", "/journal/event", "/journal/attempt", "/journal/failure"):
        page = _page(url + path)
        assert "<script>alert" not in page and "<img src=x" not in page, path
    with pytest.raises(HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, headers={"Host": "evil.example"}), timeout=10)
    assert refused.value.code == 400
    browse.terminate()


def _page(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except HTTPError:
        raise
    except OSError:  # it has not opened its port yet
        return None


@pytest.mark.parametrize("name", ["../out.txt", "/tmp/out.txt", "a/../../out.txt", ".."])
def test_an_artifact_outside_its_bundle_is_refused_before_anything_runs(workshop, name):
    workshop.commands(["a"], {"work": "done()"})
    workshop.queue.write_text(workshop.queue.read_text().replace("[work.txt]", f"['{name}']"))
    result = workshop.night()
    assert result.returncode == 2
    assert "must be a file inside the bundle" in result.stderr
    assert not workshop.runs.exists()


def test_an_error_about_a_hostile_queue_file_is_text(workshop):
    workshop.write("queue.yaml", f"entries:\n  - model: a\n    {YAML_HOSTILE}: 1\n    reset: {YAML_HOSTILE}\n")
    result = workshop.night()
    assert result.returncode == 2
    assert UNSAFE.search(result.stderr) is None


# --- for the user alone -----------------------------------------------------------------------------------------


def test_whatever_a_night_creates_is_its_users_alone(workshop, tmp_path):
    """Also where the umask would give it to everybody, and while it runs: side files, lock, socket."""
    shop = workshop
    shop.env["XDG_STATE_HOME"] = str(tmp_path / "home" / "state")
    shop.write("config.yaml", "endpoint: { base_url: http://127.0.0.1:9 }\n")
    step = "while not os.path.exists('go'): time.sleep(0.02)\ndone()"
    shop.commands(["a"], {"work": step}, defaults='reset: { backend: ollama, host: "127.0.0.1:9", timeout_s: 0.1 }')
    begun = shop.night("--detach", "--json", umask=0)
    assert begun.returncode == 0, begun.stderr
    shop.wait_for_event("step.spawned")
    assert shop.runq("pause", umask=0).returncode == 0
    assert shop.runq("status", umask=0).returncode == 0
    seen = _modes(shop.runs) | _modes(tmp_path / "home")
    assert shop.runq("stop", umask=0).returncode == 0
    seen |= _modes(shop.runs)
    assert {"journal.db", "journal.db-wal", "journal.db.lock", "socket", "night.log"} <= {path.name for path in seen}
    assert {"summary.json", "summary.md", "endpoints", "e0-work-1.log"} <= {path.name for path in seen}
    # What a step writes has the modes that the step gives it, in a folder that nobody else enters.
    ours = {path: mode for path, mode in seen.items() if "_eval_" not in path.parent.name}
    assert {path: oct(mode) for path, mode in ours.items() if mode & 0o077} == {}


def _modes(folder):
    found = {}
    for path in [folder, *folder.rglob("*")]:
        try:
            found[path] = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:  # a side file of SQLite, a lock
            continue
    return found


# --- no shell, no secrets ---------------------------------------------------------------------------------------


def test_nothing_in_the_code_can_start_a_shell():
    found = []
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                name = ast.unparse(node.func)
                shell = any(k.arg == "shell" and ast.unparse(k.value) != "False" for k in node.keywords)
                if shell or name in (
                    "os.system",
                    "os.popen",
                    "subprocess.getoutput",
                    "asyncio.create_subprocess_shell",
                ):
                    found.append(f"{path}:{node.lineno} {name}")
    assert found == []


def test_what_a_shell_would_run_is_handed_over_as_words(workshop):
    shop = workshop
    shop.write("evict.py", "import json, sys\nopen('evicted.json', 'w').write(json.dumps(sys.argv[1:]))\n")
    words = "$(touch owned) ; touch owned & `touch owned` | tee owned > owned"
    shop.commands([f'"{words}"'], {"work": "done()"}, defaults=f"reset_command: 'python3 evict.py {words}'")
    assert shop.night().returncode == 0, shop.night().stderr
    assert not (shop.folder / "owned").exists()
    assert json.loads((shop.folder / "evicted.json").read_text()) == words.split()
    assert (shop.bundle(0, "work") / "work.txt").read_text() == words


def test_no_secret_is_in_the_title_of_a_process_or_in_a_file(workshop):
    shop = workshop
    secret = "sk-very-secret-4711"
    step = "print(os.environ['MY_API_KEY'], flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nsys.exit(3)"
    shop.commands(["a"], {"work": step}, defaults='reset_command: ""\nenv: { MY_API_KEY: "${NIGHT_API_KEY}" }')
    shop.env["NIGHT_API_KEY"] = secret
    runner = shop.start("night", "queue.yaml")
    spawned = shop.wait_for_event("step.spawned")
    shop.runq("pause")
    shop.runq("unpause")
    family = [psutil.Process(pid) for pid in (runner.pid, spawned.data["pid"])]
    titles = [" ".join(process.cmdline()) for process in family]
    assert "night" in titles[0] and "work.py" in titles[1]
    assert all(secret not in title for title in titles)
    shop.go.touch()
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 1 and secret not in out
    log = shop.queue_folder() / "logs" / "e0-work-1.log"
    assert secret in log.read_text()  # the step's own words, in a file for its user alone
    for path in [p for p in shop.runs.rglob("*") if p.is_file() and p != log]:
        assert secret.encode() not in path.read_bytes(), path
    told = [
        shop.runq(*words.format(night=shop.nights()[0]).split()) for words in SHOWING if not words.startswith("log")
    ]
    assert "failed" in told[0].stdout
    assert all(secret not in one.stdout + one.stderr for one in told)
    for path in [p for p in shop.runs.rglob("*") if p.is_file() and p.parent != log.parent]:
        assert secret.encode() not in path.read_bytes(), path
