from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from runq_journal import Journal, JournalReader
from runq_schemas import events as ev

WRITER = """
import sys
from pathlib import Path
from runq_journal import Journal
from runq_schemas.events import Warned

journal = Journal.open(Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    stored = journal.append(Warned(message="x" * (number % 3000)), night=sys.argv[3])
    print(stored.id, stored.hash, flush=True)
"""


def writer(path: Path, count: int, night: str = "n") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(count), night], stdout=subprocess.PIPE, text=True
    )


def test_another_process_reads_while_one_writes(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    process = writer(path, 700)  # their lines fit into the pipe
    try:
        assert process.stdout is not None
        process.stdout.readline()
        seen = [0]
        with JournalReader.open(path) as reader:
            while process.poll() is None and seen[-1] < 700:
                seen.append(reader.count())
                assert reader.verify() is None
                assert len(reader.warnings("n")) >= seen[-1]
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert seen == sorted(seen)
    assert len(set(seen)) > 3, "the reader did not follow the writer"
    with JournalReader.open(path) as reader:
        assert reader.count() == 700


def test_two_writing_processes_make_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    both = [writer(path, 300, night) for night in ("a", "b")]  # also both make the file
    told = [process.communicate(timeout=120)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    ids = sorted(int(word) for words in told for word in words[::2])
    assert ids == list(range(1, 601))
    with JournalReader.open(path) as reader:
        assert reader.verify() is None
        events = list(reader.events())
        assert {event.night for event in events} == {"a", "b"}
        assert [event.at for event in events] == sorted(event.at for event in events)


def test_threads_share_a_journal(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:

        def work() -> None:
            for _ in range(50):
                journal.append(ev.EntryStarted(), night="n")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert journal.reader().count() == 200
        assert journal.reader().verify() is None


def test_a_killed_writer_loses_nothing_it_was_told_is_written(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    acknowledged: dict[int, str] = {}
    chance = random.Random(7)
    deaths = 0
    while deaths < 12 or len(acknowledged) <= 100:  # on a busy machine few are written before each
        deaths += 1
        process = writer(path, 100_000)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.15))
        process.kill()
        rest = process.communicate()[0]
        for line in rest.splitlines():
            number, _, digest = line.partition(" ")
            if len(digest) == 71:  # the last line may be torn
                acknowledged[int(number)] = digest
    with JournalReader.open(path) as reader:
        assert reader.verify() is None
        stored = {event.id: event.hash for event in reader.events()}
    assert acknowledged.items() <= stored.items()
    with Journal.open(path) as journal:
        assert journal.append(ev.EntryStarted(), night="n").id == len(stored) + 1
