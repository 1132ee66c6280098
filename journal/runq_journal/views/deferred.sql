-- Steps of the newest plan that were left because of the deadline and have not started since.
--
-- Columns:
--   night     the night's id
--   entry     entry id, from 0
--   index     position of the entry in the queue file, from 0
--   model_id  the model's id
--   pack      the pack, as written
--   step      the step's name
--   reason    why it was left, one sentence
--   until     the deadline, local time, ISO 8601
--   left_s    how long it was until then, in seconds
--   usual_s   how long the step usually takes, in seconds; null without history
--   usual_n   how many ok attempts that is the median of
--   at        when it was left, UTC, ISO 8601
--   event     number of the event that says so
CREATE VIEW deferred AS
SELECT
  planned.night,
  planned.entry,
  planned."index",
  planned.model_id,
  planned.pack,
  event.step,
  json_extract(event.data, '$.reason') AS reason,
  json_extract(event.data, '$.until') AS until,
  json_extract(event.data, '$.left_s') AS left_s,
  json_extract(event.data, '$.usual_s') AS usual_s,
  json_extract(event.data, '$.usual_n') AS usual_n,
  event.at,
  event.id AS event
FROM planned_entry AS planned
JOIN event ON event.kind = 'step.deferred' AND event.night = planned.night AND event.entry = planned.entry
  AND event.id > planned.plan_event
WHERE event.id = (
  SELECT max(+other.id) FROM event AS other
  WHERE other.night = event.night AND other.entry = event.entry AND other.step = event.step
    AND other.kind IN ('step.deferred', 'step.started')
);
