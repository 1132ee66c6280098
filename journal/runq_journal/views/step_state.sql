-- The last word on each step, whatever the plan says now.
--
-- Columns:
--   night    the night's id
--   entry    entry id, from 0
--   step     the step's name
--   status   running, ok, failed, timeout, stalled, interrupted, skipped or gave_up
--   attempt  the attempt it is about; null for a step that was skipped
--   seconds  how long that attempt ran, in seconds; null while it runs
--   reason   why it is not ok, one sentence
--   event    number of the event that says so
--   at       when, UTC, ISO 8601
CREATE VIEW step_state AS
SELECT
  word.night,
  word.entry,
  word.step,
  CASE word.kind
    WHEN 'step.started' THEN 'running'
    WHEN 'step.skipped' THEN CASE WHEN json_extract(word.data, '$.gave_up') THEN 'gave_up' ELSE 'skipped' END
    ELSE json_extract(word.data, '$.status')
  END AS status,
  word.attempt,
  json_extract(word.data, '$.seconds') AS seconds,
  nullif(json_extract(word.data, '$.reason'), '') AS reason,
  word.id AS event,
  word.at
FROM event AS word
WHERE word.kind IN ('step.started', 'step.finished', 'step.skipped')
  AND word.id = (
    -- Here and in every view that asks about one step: the plus keeps SQLite from walking all of the night's events
    -- backwards for the maximum, where the index on the step has a few.
    SELECT max(+other.id) FROM event AS other
    WHERE other.night = word.night AND other.entry = word.entry AND other.step = word.step
      AND other.kind IN ('step.started', 'step.finished', 'step.skipped')
  );
