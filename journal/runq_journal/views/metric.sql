-- Every score that an ok attempt of a step has reached: model by pack by score, over all nights.
--
-- Columns:
--   night     the night's id
--   entry     entry id, from 0
--   step      the step's name
--   attempt   from 1
--   model_id  the model's id
--   config    the harness's configuration file, as written
--   pack      the pack, as written
--   position  place among the scores of its step, from 0: the first is the one to look at first
--   name      the score's name, for example match/accuracy
--   value     the score, as the harness writes it
--   stderr    its standard error; null when the harness does not tell it
--   n         how many samples it is over; null when the harness does not tell it
--   newest    1 when no later attempt of any night has this score of this model, config, pack and step
--   event     number of the event that says so
--   at        when, UTC, ISO 8601
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
)
SELECT
  finished.night,
  finished.entry,
  finished.step,
  finished.attempt,
  entries.model_id,
  entries.config,
  entries.pack,
  item.key AS position,
  json_extract(item.value, '$.name') AS name,
  json_extract(item.value, '$.value') AS value,
  json_extract(item.value, '$.stderr') AS stderr,
  json_extract(item.value, '$.n') AS n,
  row_number() OVER (
    PARTITION BY entries.model_id, entries.config, entries.pack, finished.step, json_extract(item.value, '$.name')
    ORDER BY finished.id DESC
  ) = 1 AS newest,
  finished.id AS event,
  finished.at
FROM event AS finished
JOIN json_each(finished.data, '$.metrics') AS item
JOIN entries ON entries.night = finished.night AND entries.entry = finished.entry
WHERE finished.kind = 'step.finished'
  AND json_extract(finished.data, '$.status') = 'ok';
