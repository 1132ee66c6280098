-- Every score that an ok attempt of a step has reached: model by pack by score, over all nights and imports.
--
-- Columns:
--   night     the night's id, or the import's
--   entry     entry id, from 0; of an import the place in its file
--   step      the step's name
--   attempt   from 1; null for an import
--   model_id  the model's id
--   config    the harness's configuration file, as written
--   pack      the pack, as written
--   position  place among the scores of its step, from 0: the first is the one to look at first
--   name      the score's name, for example match/accuracy
--   value     the score, as the harness writes it
--   stderr    its standard error; null when the harness does not tell it
--   n         how many samples it is over; null when the harness does not tell it
--   newest    1 when no later attempt has this score of this model, config, pack and step; imports are before all nights
--   imported  1 when it was taken over from elsewhere by `runq import`
--   event     number of the event that says so
--   at        when it was measured, UTC, ISO 8601
CREATE VIEW metric AS
WITH entries AS (
  -- Of the newest plan that has the entry: a later one may have dropped it.
  SELECT night, entry, model_id, config, pack, max(plan_event) AS plan_event
  FROM (
    SELECT
      event.night,
      event.id AS plan_event,
      json_extract(item.value, '$.id') AS entry,
      json_extract(item.value, '$.model.id') AS model_id,
      json_extract(item.value, '$.config') AS config,
      json_extract(item.value, '$.pack') AS pack
    FROM event
    JOIN json_each(event.data, '$.entries') AS item
    WHERE event.kind IN ('night.started', 'night.resumed')
  )
  GROUP BY night, entry
),
scored AS (
  SELECT
    finished.night,
    finished.entry,
    finished.step,
    finished.attempt,
    entries.model_id,
    entries.config,
    entries.pack,
    json_extract(finished.data, '$.metrics') AS metrics,
    0 AS imported,
    finished.id AS event,
    finished.at
  FROM event AS finished
  JOIN entries ON entries.night = finished.night AND entries.entry = finished.entry
  WHERE finished.kind = 'step.finished'
    AND json_extract(finished.data, '$.status') = 'ok'
  UNION ALL
  SELECT night, position, step, NULL, model_id, config, pack, metrics, 1, event, measured_at
  FROM imported_step
  WHERE status = 'ok'
)
SELECT
  scored.night,
  scored.entry,
  scored.step,
  scored.attempt,
  scored.model_id,
  scored.config,
  scored.pack,
  item.key AS position,
  json_extract(item.value, '$.name') AS name,
  json_extract(item.value, '$.value') AS value,
  json_extract(item.value, '$.stderr') AS stderr,
  json_extract(item.value, '$.n') AS n,
  row_number() OVER (
    PARTITION BY scored.model_id, scored.config, scored.pack, scored.step, json_extract(item.value, '$.name')
    ORDER BY scored.imported, CASE WHEN scored.imported THEN scored.at END DESC, scored.event DESC
  ) = 1 AS newest,
  scored.imported,
  scored.event,
  scored.at
FROM scored
JOIN json_each(scored.metrics) AS item;
