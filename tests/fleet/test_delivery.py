"""What a machine tells of its outbox: every event once, under the lease it was written under."""

from runq.fleet import station
from runq.fleet.wire import Ask
from runq_journal import Journal
from runq_schemas import events as ev


def begin(journal, lease, entry):
    journal.append(ev.LeaseRenewed(lease=lease, host="anna", until=""), night="n", entry=entry)
    journal.append(ev.EntryStarted(), night="n", entry=entry)


def end(journal, entry):
    journal.append(ev.EntryFinished(status="complete"), night="n", entry=entry)


def told(journal, have, most=500):
    ask = Ask(journal="j", night="n", have=have, terms={}, hold_s=0.0, most=most)
    uuid, written, _ = station._after(journal.path, ask)
    return uuid, [(one.seq, one.lease, one.kind, one.entry) for one in written]


def test_each_event_is_told_under_its_lease(tmp_path):
    with Journal.open(tmp_path / "journal.db") as journal:
        begin(journal, 7, 0)
        end(journal, 0)
        begin(journal, 12, 3)
        uuid, first = told(journal, {})
        assert first == [
            (2, 7, "entry.started", 0),
            (3, 7, "entry.finished", 0),
            (5, 12, "entry.started", 3),
        ]
        assert told(journal, {uuid: (3, 0)})[1] == first[2:]
        assert told(journal, {uuid: (5, 0)})[1] == []
        assert told(journal, {}, most=2)[1] == first[:2]


def test_a_lease_that_begins_while_the_outbox_is_read_is_seen(tmp_path):
    """A hundred played machines found it: the leases were read first, the events after, and one began in between."""
    with Journal.open(tmp_path / "journal.db") as journal:
        begin(journal, 7, 0)
        end(journal, 0)
        reader = journal.reader()

        class Slow:
            def events(self, **which):
                found = list(reader.events(**which))
                if "kinds" in which:
                    begin(journal, 12, 3)
                return found

        written = [(one.seq, one.lease, one.kind) for one in station._with_lease(Slow(), "n", 3)]
        assert written == [(5, 12, "entry.started")]
