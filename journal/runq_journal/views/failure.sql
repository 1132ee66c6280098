-- Every attempt that ended otherwise than ok, with its reason and the end of its log.
--
-- Columns:
--   night      the night's id
--   entry      entry id, from 0
--   model_id   the model's id; null when the newest plan does not have the entry
--   step       the step's name
--   attempt    from 1
--   status     failed, timeout, stalled or interrupted
--   reason     why, one sentence
--   exit_code  of its process
--   signal     the signal that ended its process
--   seconds    how long it ran, in seconds
--   log_tail   the last lines of its log
--   log        its log file, absolute
--   at         when it ended, UTC, ISO 8601
--   event      number of the event that says so
CREATE VIEW failure AS
SELECT
  finished.night,
  finished.entry,
  (
    SELECT planned_entry.model_id FROM planned_entry
    WHERE planned_entry.night = finished.night AND planned_entry.entry = finished.entry
  ) AS model_id,
  finished.step,
  finished.attempt,
  json_extract(finished.data, '$.status') AS status,
  nullif(json_extract(finished.data, '$.reason'), '') AS reason,
  json_extract(finished.data, '$.exit_code') AS exit_code,
  json_extract(finished.data, '$.signal') AS signal,
  json_extract(finished.data, '$.seconds') AS seconds,
  (SELECT group_concat(line.value, char(10)) FROM json_each(finished.data, '$.log_tail') AS line) AS log_tail,
  json_extract(started.data, '$.log') AS log,
  finished.at,
  finished.id AS event
FROM event AS finished
LEFT JOIN event AS started ON started.id = (
  SELECT max(+other.id) FROM event AS other
  WHERE other.night = finished.night AND other.entry = finished.entry AND other.step = finished.step
    AND other.kind = 'step.started' AND other.attempt IS finished.attempt
)
WHERE finished.kind = 'step.finished' AND json_extract(finished.data, '$.status') IS NOT 'ok';
