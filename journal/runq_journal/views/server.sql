-- Every server that a reset backend started.
--
-- Columns:
--   night           the night's id
--   entry           entry id, from 0
--   step            the step it serves, or server
--   attempt         from 1
--   started_event   number of its server.started
--   finished_event  number of its server.finished; null while it runs
--   status          running, stopped (by runq) or ended (by itself)
--   model_id        the model's id
--   exit_code       of its process
--   signal          the signal that ended its process
--   seconds         how long it ran, in seconds
--   reason          why it ended, one sentence
--   log             its log file, absolute
--   argv            its command line (JSON)
--   pid             of its process
--   created_at      creation time of its process, in seconds since 1970; with boot_id it names the process
--   boot_id         the machine's boot it ran in
--   started_at      when it started, UTC, ISO 8601
--   finished_at     when it ended, UTC, ISO 8601
CREATE VIEW server AS
SELECT
  started.night,
  started.entry,
  started.step,
  started.attempt,
  started.id AS started_event,
  finished.id AS finished_event,
  CASE
    WHEN finished.id IS NULL THEN 'running'
    WHEN json_extract(finished.data, '$.stopped') THEN 'stopped'
    ELSE 'ended'
  END AS status,
  json_extract(started.data, '$.model') AS model_id,
  json_extract(finished.data, '$.exit_code') AS exit_code,
  json_extract(finished.data, '$.signal') AS signal,
  json_extract(finished.data, '$.seconds') AS seconds,
  nullif(json_extract(finished.data, '$.reason'), '') AS reason,
  json_extract(started.data, '$.log') AS log,
  json_extract(started.data, '$.argv') AS argv,
  json_extract(spawned.data, '$.pid') AS pid,
  json_extract(spawned.data, '$.created_at') AS created_at,
  json_extract(spawned.data, '$.boot_id') AS boot_id,
  started.at AS started_at,
  finished.at AS finished_at
FROM event AS started
-- The first one behind the start: an attempt may start a server anew.
LEFT JOIN event AS spawned ON spawned.id = (
  SELECT min(+other.id) FROM event AS other
  WHERE other.night = started.night AND other.entry IS started.entry AND other.step IS started.step
    AND other.kind = 'server.spawned' AND other.attempt IS started.attempt AND other.id > started.id
)
LEFT JOIN event AS finished ON finished.id = (
  SELECT min(+other.id) FROM event AS other
  WHERE other.night = started.night AND other.entry IS started.entry AND other.step IS started.step
    AND other.kind = 'server.finished' AND other.attempt IS started.attempt AND other.id > started.id
)
WHERE started.kind = 'server.started';
