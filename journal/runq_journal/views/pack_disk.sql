-- What a bundle takes on the disk by its history: the largest of each pack's ok attempts, over all nights.
--
-- Columns:
--   pack  the pack, as written; null for entries without one
--   mb    bundle and log after a step, in MB (2^20 bytes)
--   n     how many ok attempts there are
CREATE VIEW pack_disk AS
WITH entries AS (
  -- Of the newest plan that has the entry: a later one may have dropped it.
  SELECT night, entry, pack, max(plan_event) AS plan_event
  FROM (
    SELECT
      event.night,
      event.id AS plan_event,
      json_extract(item.value, '$.id') AS entry,
      json_extract(item.value, '$.pack') AS pack
    FROM event
    JOIN json_each(event.data, '$.entries') AS item
    WHERE event.kind IN ('night.started', 'night.resumed')
  )
  GROUP BY night, entry
)
SELECT entries.pack, max(json_extract(finished.data, '$.written_mb')) AS mb, count(*) AS n
FROM event AS finished
JOIN entries ON entries.night = finished.night AND entries.entry = finished.entry
WHERE finished.kind = 'step.finished'
  AND json_extract(finished.data, '$.status') = 'ok'
  AND json_extract(finished.data, '$.written_mb') IS NOT NULL
GROUP BY entries.pack;
