"""Nights that notify: a receiver that hears, one that is dead, one that hangs, and no receiver at all."""

from __future__ import annotations

import threading
from typing import Any

BREAK = "if model == 'second':\n    sys.exit('no such layer')\ndone()"


def titles(receiver: Any) -> list[str]:
    return [one["title"] for one in receiver.heard]


def test_the_receiver_hears_of_the_failed_entry_and_of_the_end(workshop: Any, receiver: Any) -> None:
    workshop.commands(["first", "second", "third"], {"work": BREAK})
    assert workshop.night(env={"RUNQ_NOTIFY": receiver.url}).returncode == 1
    assert titles(receiver) == [
        "runq: second failed - work: it exited with 1",
        "runq: night finished - 2 of 3 complete, 1 failed",
    ]
    assert receiver.heard[1]["message"].splitlines() == [
        "e0 first: complete",
        "e1 second: failed - it exited with 1",
        "e2 third: complete",
    ]
    assert [one["type"] for one in receiver.heard] == ["warning", "warning"]
    assert workshop.summary()["warnings"] == []


def test_two_failures_in_a_row_are_trouble(workshop: Any, receiver: Any) -> None:
    workshop.commands(["a", "b", "c"], {"work": "sys.exit(4)"})
    assert workshop.night(env={"RUNQ_NOTIFY": receiver.url}).returncode == 1
    assert titles(receiver) == [
        "runq: a failed - work: it exited with 4",
        "runq: night in trouble - 2 entries in a row failed",
        "runq: c failed - work: it exited with 4",
        "runq: night finished - 0 of 3 complete, 3 failed",
    ]
    assert receiver.heard[1]["type"] == "failure"


def test_a_dead_receiver_changes_nothing_but_a_warning(workshop: Any, free_port: int) -> None:
    workshop.commands(["a"], {"work": "done()"})
    assert workshop.night().returncode == 0
    quiet = [(e.kind, e.entry, e.step) for e in workshop.events()]
    url = f"json://user:a-secret-word@127.0.0.1:{free_port}/hook"
    assert workshop.night(env={"RUNQ_NOTIFY": url}).returncode == 0
    after = [(e.kind, e.entry, e.step) for e in workshop.events()][len(quiet) :]
    assert [one for one in after if one[0] != "warning"] == quiet
    (warning,) = workshop.summary()["warnings"]
    assert warning["message"] == "a notification failed: json did not take 'runq: night finished - 1 of 1 complete'"
    assert warning["remedy"] == "try `runq notify --test`"
    for file in workshop.runs.rglob("*"):
        assert not file.is_file() or b"a-secret-word" not in file.read_bytes(), file


def test_a_receiver_that_hangs_is_left(workshop: Any, receiver: Any) -> None:
    """Its time is cut short here; the night ends all the same and says so."""
    receiver.hang = threading.Event()
    workshop.commands(["a"], {"work": "done()"})
    short = "import runq.night\nrunq.night.LAST_NOTICE_S = 0.1\nimport runq.notify.notifier as n\n"
    short += "night_over = n.AppriseNotifier.night_over\n"
    short += "def cut(self, *words):\n    self.last_s = 1.0\n    return night_over(self, *words)\n"
    short += "n.AppriseNotifier.night_over = cut"
    assert workshop.night(env={"RUNQ_NOTIFY": receiver.url}, code=short).returncode == 0
    (warning,) = workshop.summary()["warnings"]
    assert warning["message"] == "a notification failed: 1 not sent after 1 s"
    assert workshop.summary()["state"] == "finished"


def test_urls_from_a_file(workshop: Any, receiver: Any) -> None:
    workshop.commands(["a"], {"work": "done()"})
    urls = workshop.write("urls.txt", f"# my phone\n\n{receiver.url}\n")
    assert workshop.night(env={"RUNQ_NOTIFY_FILE": str(urls)}).returncode == 0
    assert titles(receiver) == ["runq: night finished - 1 of 1 complete"]
    assert workshop.night(env={"RUNQ_NOTIFY_FILE": str(urls), "RUNQ_NOTIFY": ""}).returncode == 0
    assert len(receiver.heard) == 1, "set to nothing it is off"


def test_notify_test(workshop: Any, receiver: Any, free_port: int) -> None:
    shown = workshop.runq("notify", env={"RUNQ_NOTIFY": receiver.url})
    assert (shown.returncode, shown.stdout) == (0, "json\n")
    tried = workshop.runq("notify", "--test", env={"RUNQ_NOTIFY": receiver.url})
    assert (tried.returncode, tried.stdout) == (0, "1 of 1 sent\n")
    assert titles(receiver) == ["runq: a test"]
    both = workshop.runq("notify", "--test", env={"RUNQ_NOTIFY": f"{receiver.url} json://127.0.0.1:{free_port}/"})
    assert (both.returncode, both.stdout) == (1, "1 of 2 sent\n")
    assert "json: not sent" in both.stderr
    assert "a-secret-word" not in shown.stdout + tried.stdout + both.stdout + both.stderr
    none = workshop.runq("notify", env={"RUNQ_NOTIFY": ""})
    assert none.returncode == 2
    assert "RUNQ_NOTIFY" in none.stderr


def test_no_step_sees_where_notifications_go(workshop: Any, receiver: Any) -> None:
    workshop.commands(["a"], {"work": "print(dict(os.environ))\ndone()"})
    assert workshop.night(env={"RUNQ_NOTIFY": receiver.url}).returncode == 0
    assert titles(receiver) == ["runq: night finished - 1 of 1 complete"]
    log = workshop.runq("log", "e0", "work").stdout
    assert "RUNQ_STEP" in log and "RUNQ_NOTIFY" not in log


def test_no_secret_of_the_night_leaves_the_machine(workshop: Any, receiver: Any) -> None:
    """A server's error quotes the key that it was asked with; the journal hides it, and so does what is sent."""
    secret = "a-key-nobody-may-see"
    script = (
        "import json\n(bundle / 'rows.jsonl').write_text(json.dumps({'ok': False, 'error': "
        "'no such key: ' + os.environ['MY_API_KEY']}))\ndone()"
    )
    workshop.commands(["a"], {"work": script})
    queue = workshop.queue.read_text().replace("[work.txt]", "[work.txt, rows.jsonl]")
    workshop.queue.write_text(queue)
    assert workshop.night(env={"RUNQ_NOTIFY": receiver.url, "MY_API_KEY": secret}).returncode == 1
    assert "no such key: " in receiver.heard[0]["title"]
    assert secret not in repr(receiver.heard)
