-- The newest plan of each night: its latest `night.started` or `night.resumed`.
--
-- Columns:
--   night       the night's id
--   plan_event  number of the event
--   kind        night.started or night.resumed
--   at          when, UTC, ISO 8601
--   data        the whole plan: queue file, entries, steps, machine, versions (JSON)
CREATE VIEW night_plan AS
SELECT
  event.night,
  event.id AS plan_event,
  event.kind,
  event.at,
  event.data
FROM event
WHERE event.kind IN ('night.started', 'night.resumed')
  -- Every view looks the newest event up like this, because it costs one step in an index, and because SQLite can
  -- then push "night = ?" down to the table, as it cannot through nested GROUP BYs.
  AND event.id = (
    SELECT max(+other.id) FROM event AS other
    WHERE other.night = event.night AND other.kind IN ('night.started', 'night.resumed')
  );
