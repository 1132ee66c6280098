-- Every attempt of every step.
--
-- Columns:
--   night            the night's id
--   entry            entry id, from 0
--   step             the step's name
--   attempt          from 1; retries and resumes count up
--   started_event    number of its step.started; null when it could not even be started
--   finished_event   number of its step.finished; null while it runs
--   status           running, ok, failed, timeout, stalled or interrupted
--   exit_code        of its process
--   signal           the signal that ended its process
--   seconds          how long it ran, in seconds
--   reason           why it is not ok, one sentence
--   bundle           the folder it writes into, absolute
--   log              its log file, absolute
--   argv             its command line (JSON)
--   identity         versioned hash of what decides the step's result
--   timeout_s        its time limit in seconds
--   stall_timeout_s  its limit without a sign of life in seconds; null when off
--   pid              of its process
--   created_at       creation time of its process, in seconds since 1970; with boot_id it names the process
--   boot_id          the machine's boot it ran in
--   probe            the first probe that was read
--   baseline_mb      of that probe, memory before the model loaded, in MB (2^20 bytes)
--   peak_mb          of that probe, highest reading during the attempt, in MB (2^20 bytes)
--   model_delta_mb   of that probe, peak minus baseline, in MB (2^20 bytes)
--   baseline_proven  1 when the baseline is proven, 0 when not, null when there is none
--   facts            what the harness read off the artifacts (JSON)
--   started_at       when it started, UTC, ISO 8601
--   finished_at      when it ended, UTC, ISO 8601
CREATE VIEW attempt AS
SELECT
  first.night,
  first.entry,
  first.step,
  first.attempt,
  started.id AS started_event,
  finished.id AS finished_event,
  CASE WHEN finished.id IS NULL THEN 'running' ELSE json_extract(finished.data, '$.status') END AS status,
  json_extract(finished.data, '$.exit_code') AS exit_code,
  json_extract(finished.data, '$.signal') AS signal,
  json_extract(finished.data, '$.seconds') AS seconds,
  nullif(json_extract(finished.data, '$.reason'), '') AS reason,
  json_extract(started.data, '$.bundle') AS bundle,
  json_extract(started.data, '$.log') AS log,
  json_extract(started.data, '$.argv') AS argv,
  json_extract(started.data, '$.identity') AS identity,
  json_extract(started.data, '$.timeout_s') AS timeout_s,
  json_extract(started.data, '$.stall_timeout_s') AS stall_timeout_s,
  json_extract(spawned.data, '$.pid') AS pid,
  json_extract(spawned.data, '$.created_at') AS created_at,
  json_extract(spawned.data, '$.boot_id') AS boot_id,
  coalesce(
    (SELECT item.key FROM json_each(finished.data, '$.peak_mb') AS item LIMIT 1),
    (SELECT item.key FROM json_each(settled.data, '$.baseline_mb') AS item LIMIT 1)
  ) AS probe,
  (SELECT item.value FROM json_each(settled.data, '$.baseline_mb') AS item LIMIT 1) AS baseline_mb,
  (SELECT item.value FROM json_each(finished.data, '$.peak_mb') AS item LIMIT 1) AS peak_mb,
  (SELECT item.value FROM json_each(finished.data, '$.model_delta_mb') AS item LIMIT 1) AS model_delta_mb,
  json_extract(settled.data, '$.proven') AS baseline_proven,
  json_extract(finished.data, '$.facts') AS facts,
  started.at AS started_at,
  finished.at AS finished_at
FROM event AS first
LEFT JOIN event AS started ON started.id = (
  SELECT max(+other.id) FROM event AS other
  WHERE other.night = first.night AND other.entry = first.entry AND other.step = first.step
    AND other.kind = 'step.started' AND other.attempt IS first.attempt
)
LEFT JOIN event AS spawned ON spawned.id = (
  SELECT max(+other.id) FROM event AS other
  WHERE other.night = first.night AND other.entry = first.entry AND other.step = first.step
    AND other.kind = 'step.spawned' AND other.attempt IS first.attempt
)
LEFT JOIN event AS finished ON finished.id = (
  SELECT max(+other.id) FROM event AS other
  WHERE other.night = first.night AND other.entry = first.entry AND other.step = first.step
    AND other.kind = 'step.finished' AND other.attempt IS first.attempt
)
LEFT JOIN event AS settled ON settled.id = coalesce(json_extract(started.data, '$.baseline_event'), (
  SELECT max(other.id) FROM event AS other
  WHERE other.kind = 'settle.finished' AND other.night = first.night AND other.entry = first.entry
    AND other.id < first.id
))
WHERE first.kind IN ('step.started', 'step.finished')
  AND first.id = (
    SELECT min(+other.id) FROM event AS other
    WHERE other.night = first.night AND other.entry = first.entry AND other.step = first.step
      AND other.kind IN ('step.started', 'step.finished') AND other.attempt IS first.attempt
  );
