-- What the last attempt of each step left behind: what a resume compares with the files as they are now.
--
-- Columns:
--   night           the night's id
--   entry           entry id, from 0
--   step            the step's name
--   attempt         the last attempt, from 1
--   status          running, ok, failed, timeout, stalled or interrupted; skipped when it was to run again and could not
--   reason          why it is not ok, one sentence
--   identity        versioned hash of what decides the step's result
--   identity_parts  what went into that hash (JSON)
--   bundle          the folder it wrote into, absolute
--   artifacts       the files that prove it, with their bytes and SHA-256 (JSON)
--   outputs         names of all files in the bundle at its end (JSON)
--   started_event   number of its step.started
--   finished_event  number of its step.finished; null when it has no end
CREATE VIEW step_evidence AS
SELECT
  started.night,
  started.entry,
  started.step,
  started.attempt,
  CASE
    WHEN EXISTS (
      SELECT 1 FROM event AS other
      WHERE other.night = started.night AND other.entry = started.entry AND other.step = started.step
        AND other.kind = 'step.skipped' AND other.id > started.id
    ) THEN 'skipped'
    WHEN finished.id IS NULL THEN 'running'
    ELSE json_extract(finished.data, '$.status')
  END AS status,
  nullif(json_extract(finished.data, '$.reason'), '') AS reason,
  json_extract(started.data, '$.identity') AS identity,
  json_extract(started.data, '$.identity_parts') AS identity_parts,
  json_extract(started.data, '$.bundle') AS bundle,
  json_extract(finished.data, '$.artifacts') AS artifacts,
  json_extract(finished.data, '$.outputs') AS outputs,
  started.id AS started_event,
  finished.id AS finished_event
FROM event AS started
LEFT JOIN event AS finished ON finished.id = (
  SELECT max(+other.id) FROM event AS other
  WHERE other.night = started.night AND other.entry = started.entry AND other.step = started.step
    AND other.kind = 'step.finished' AND other.attempt IS started.attempt AND other.id > started.id
)
WHERE started.kind = 'step.started'
  AND started.id = (
    SELECT max(+other.id) FROM event AS other
    WHERE other.night = started.night AND other.entry = started.entry AND other.step = started.step
      AND other.kind = 'step.started'
  );
