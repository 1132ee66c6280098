"""The journal is the truth: every summary can be rebuilt from it, byte for byte, and a damaged one is found."""

import json
import shutil
import signal
import sqlite3


def summaries(shop, runs=None):
    runs = runs or shop.runs
    return {path.relative_to(runs).as_posix(): path.read_bytes() for path in runs.glob("*_queue/summary.*")}


def rebuilt(shop, *words, runs=None):
    """Delete the summaries and rebuild them."""
    runs = runs or shop.runs
    for name in summaries(shop, runs):
        (runs / name).unlink()
    result = shop.runq("replay", *words, "--runs", str(runs))
    assert result.returncode == 0, result.stderr
    return summaries(shop, runs)


def test_summaries_are_rebuilt_byte_for_byte(workshop, tmp_path):
    shop = workshop
    script = "if model == 'b' and os.path.exists('broken'): sys.exit(1)\nif model == 'c': time.sleep(600)\ndone()"
    shop.commands(["a", "b", "c"], {"work": script, "score": "done()"})
    shop.write("broken", "")
    runner = shop.start("night", "queue.yaml")
    shop.wait_for_event("step.spawned", entry=2)
    runner.send_signal(signal.SIGINT)
    assert runner.wait(timeout=60) == 130
    first = summaries(shop)
    assert len(first) == 2
    assert rebuilt(shop) == first  # an interrupted night
    (shop.folder / "broken").unlink()
    assert shop.night("--resume", "--only", "e1").returncode == 0
    second = summaries(shop)
    assert second != first
    assert rebuilt(shop) == second  # after a resume
    assert shop.night("--only", "e0").returncode == 0
    everything = summaries(shop)
    assert len(everything) == 4
    older = shop.nights()[1]
    latest = {name: text for name, text in everything.items() if not name.startswith(f"{older}_")}
    assert rebuilt(shop) == latest  # without an argument the latest night's
    assert rebuilt(shop, f"runs/{older}_queue") == {n: t for n, t in everything.items() if n not in latest}
    assert rebuilt(shop, "--all") == everything
    copy = tmp_path / "copy"
    shutil.copytree(shop.runs, copy)
    assert rebuilt(shop, "--all", runs=copy) == everything  # anywhere
    assert summaries(shop) == everything


def at(shop, event):
    result = shop.runq("replay", "--at", str(event))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_replay_at_shows_the_summary_as_it_was(workshop):
    shop = workshop
    shop.commands(["a", "b"], {"work": "if model == 'b': sys.exit(1)\ndone()"})
    assert shop.night().returncode == 1
    ids = {(e.kind, e.entry): e.id for e in shop.events()}
    before = summaries(shop)

    def told(event):
        data = at(shop, event)
        return data["state"], data["done"], [e["status"] for e in data["entries"]]

    assert told(1) == ("running", 0, ["pending", "pending"])
    assert told(ids["step.started", 0]) == ("running", 0, ["running", "pending"])
    assert told(ids["step.finished", 0]) == ("running", 1, ["complete", "pending"])
    assert told(ids["step.started", 1]) == ("running", 1, ["complete", "running"])
    assert told(ids["step.finished", 1]) == ("running", 2, ["complete", "failed"])
    last = ids["night.finished", None]
    assert told(last) == ("finished", 2, ["complete", "failed"])
    assert shop.runq("replay", "--at", str(last)).stdout == (shop.queue_folder() / "summary.json").read_text()
    assert shop.runq("replay", "--at", str(last + 1)).returncode == 2
    assert summaries(shop) == before


def test_replay_verify_finds_a_tampered_journal_and_writes_nothing(workshop):
    shop = workshop
    shop.commands(["a", "b"], {"work": "if model == 'b': sys.exit(1)\ndone()"})
    assert shop.night().returncode == 1
    whole = shop.runq("replay", "--verify")
    assert (whole.returncode, f"{len(shop.events())} events, hash chain whole" in whole.stdout) == (0, True)
    victim = next(e.id for e in shop.events("step.finished") if e.entry == 1)
    connection = sqlite3.connect(shop.journal)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')
    connection.execute("UPDATE event SET data = json_set(data, '$.status', 'ok') WHERE id = ?", (victim,))
    connection.commit()
    connection.close()
    before = shop.files(shop.runs)
    broken = shop.runq("replay", "--verify")
    assert broken.returncode == 4
    assert str(victim) in broken.stderr and "Traceback" not in broken.stderr
    after = shop.files(shop.runs)
    # SQLite's own side files for readers, as long as nothing is in them.
    assert after.pop("journal.db-wal", (0, 0, 0))[1] == 0
    after.pop("journal.db-shm", None)
    assert after == before
