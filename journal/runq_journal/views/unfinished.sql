-- Steps and servers that were started and have no end: running now, or left behind by a runner that died.
--
-- Columns:
--   night          the night's id
--   entry          entry id, from 0
--   step           the step's name, or server
--   attempt        from 1
--   started_event  number of its step.started or server.started
--   kind           step.started or server.started
--   log            its log file, absolute
--   pid            of its process; null when it was not spawned
--   created_at     creation time of its process, in seconds since 1970; with boot_id it names the process
--   boot_id        the machine's boot it ran in
--   started_at     when it started, UTC, ISO 8601
--   host           the machine of a cluster it runs on; null for the runner's own
CREATE VIEW unfinished AS
SELECT
  started.night,
  started.entry,
  started.step,
  started.attempt,
  started.id AS started_event,
  started.kind,
  json_extract(started.data, '$.log') AS log,
  json_extract(spawned.data, '$.pid') AS pid,
  json_extract(spawned.data, '$.created_at') AS created_at,
  json_extract(spawned.data, '$.boot_id') AS boot_id,
  started.at AS started_at,
  json_extract(started.data, '$.origin.host') AS host
FROM event AS started
-- By kind: a harness may call a step "server" too.
LEFT JOIN event AS spawned ON spawned.id = (
  SELECT min(+other.id) FROM event AS other
  WHERE other.night = started.night AND other.entry IS started.entry AND other.step IS started.step
    AND other.kind = CASE started.kind WHEN 'step.started' THEN 'step.spawned' ELSE 'server.spawned' END
    AND other.attempt IS started.attempt AND other.id > started.id
)
WHERE started.kind IN ('step.started', 'server.started')
  AND NOT EXISTS (
    SELECT 1 FROM event AS other
    WHERE other.night = started.night AND other.entry IS started.entry AND other.step IS started.step
      AND other.kind = CASE started.kind WHEN 'step.started' THEN 'step.finished' ELSE 'server.finished' END
      AND other.attempt IS started.attempt AND other.id > started.id
  );
