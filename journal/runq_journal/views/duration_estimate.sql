-- How long a step takes by its history: the median of its ok attempts, by model and pack, over all nights and imports.
-- The machines of a cluster have rows of their own: figures of different machines are never averaged.
--
-- Columns:
--   step      the step's name
--   model_id  the model's id
--   pack      the pack, as written
--   seconds   median, in seconds
--   n         how many ok attempts there are
--   host      the machine of a cluster; null for the runner's own and for imports
CREATE VIEW duration_estimate AS
WITH entries AS (
  -- Of the newest plan that has the entry: a later one may have dropped it.
  SELECT night, entry, model_id, pack, max(plan_event) AS plan_event
  FROM (
    SELECT
      event.night,
      event.id AS plan_event,
      json_extract(item.value, '$.id') AS entry,
      json_extract(item.value, '$.model.id') AS model_id,
      json_extract(item.value, '$.pack') AS pack
    FROM event
    JOIN json_each(event.data, '$.entries') AS item
    WHERE event.kind IN ('night.started', 'night.resumed')
  )
  GROUP BY night, entry
),
timed AS (
  SELECT
    finished.step,
    entries.model_id,
    entries.pack,
    json_extract(finished.data, '$.seconds') AS seconds,
    json_extract(finished.data, '$.origin.host') AS host
  FROM event AS finished
  JOIN entries ON entries.night = finished.night AND entries.entry = finished.entry
  WHERE finished.kind = 'step.finished'
    AND json_extract(finished.data, '$.status') = 'ok'
    AND json_extract(finished.data, '$.seconds') IS NOT NULL
  UNION ALL
  SELECT step, model_id, pack, seconds, NULL FROM imported_step WHERE status = 'ok' AND seconds IS NOT NULL
),
ranked AS (
  SELECT
    step,
    model_id,
    pack,
    seconds,
    host,
    row_number() OVER (PARTITION BY step, model_id, pack, host ORDER BY seconds) AS number,
    count(*) OVER (PARTITION BY step, model_id, pack, host) AS n
  FROM timed
)
SELECT step, model_id, pack, avg(seconds) AS seconds, n, host
FROM ranked
-- The middle one, or the two in the middle.
WHERE number IN ((n + 1) / 2, (n + 2) / 2)
GROUP BY step, model_id, pack, host, n;
