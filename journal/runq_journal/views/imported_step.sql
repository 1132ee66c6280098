-- Every step of every result that was taken over from elsewhere (`runq import`).
--
-- Columns:
--   night        the import's id; it is no night
--   source       touchstone or inspect
--   path         the file it was read from, absolute
--   position     place of its entry in that file, from 0
--   model_id     the model's id
--   config       the harness's configuration file, as written there
--   pack         the pack, as written there
--   step         the step's name
--   status       ok, failed, timeout or interrupted
--   seconds      how long it ran, in seconds; null when it is not told
--   reason       why it is not ok, one sentence
--   metrics      its scores (JSON)
--   measured_at  when it was measured, UTC, ISO 8601
--   event        number of the event that says so
--   at           when it was taken over, UTC, ISO 8601
CREATE VIEW imported_step AS
SELECT
  event.night,
  json_extract(event.data, '$.source') AS source,
  json_extract(event.data, '$.path') AS path,
  entry.key AS position,
  json_extract(entry.value, '$.model_id') AS model_id,
  json_extract(entry.value, '$.config') AS config,
  json_extract(entry.value, '$.pack') AS pack,
  json_extract(step.value, '$.name') AS step,
  json_extract(step.value, '$.status') AS status,
  json_extract(step.value, '$.seconds') AS seconds,
  nullif(json_extract(step.value, '$.reason'), '') AS reason,
  json_extract(step.value, '$.metrics') AS metrics,
  json_extract(event.data, '$.measured_at') AS measured_at,
  event.id AS event,
  event.at
FROM event
JOIN json_each(event.data, '$.entries') AS entry
JOIN json_each(entry.value, '$.steps') AS step
WHERE event.kind = 'import.finished';
