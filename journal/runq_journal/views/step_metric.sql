-- The scores of each entry of the newest plan of a night, of those steps whose last word is ok and still counts.
--
-- Columns:
--   night     the night's id
--   entry     entry id, from 0
--   index     position of the entry in the queue file, from 0
--   model_id  the model's id
--   config    the harness's configuration file, as written
--   pack      the pack, as written
--   step      the step's name
--   step_position  position of the step in its entry, from 0
--   attempt   from 1
--   position  place among the scores of its step, from 0: the first is the one to look at first
--   name      the score's name, for example match/accuracy
--   value     the score, as the harness writes it
--   stderr    its standard error; null when the harness does not tell it
--   n         how many samples it is over; null when the harness does not tell it
--   event     number of the event that says so
CREATE VIEW step_metric AS
SELECT
  result.night,
  result.entry,
  result."index",
  result.model_id,
  result.config,
  result.pack,
  result.step,
  result.position AS step_position,
  result.attempt,
  item.key AS position,
  json_extract(item.value, '$.name') AS name,
  json_extract(item.value, '$.value') AS value,
  json_extract(item.value, '$.stderr') AS stderr,
  json_extract(item.value, '$.n') AS n,
  finished.id AS event
FROM step_result AS result
JOIN event AS finished ON finished.id = result.word_event AND finished.kind = 'step.finished'
JOIN json_each(finished.data, '$.metrics') AS item
WHERE result.status = 'ok';
