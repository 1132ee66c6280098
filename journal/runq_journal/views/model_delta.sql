-- What each attempt needed in memory, by probe: its peak minus the latest baseline before it, which with `order: phases`
-- may be that of another entry whose step used the same model.
-- It includes what the harness itself holds.
--
-- Columns:
--   night            the night's id
--   entry            entry id, from 0
--   step             the step's name
--   attempt          from 1
--   probe            the probe's name
--   baseline_mb      memory before the model loaded, in MB (2^20 bytes); null when none was measured
--   peak_mb          highest reading during the attempt, in MB (2^20 bytes)
--   model_delta_mb   peak minus baseline, in MB (2^20 bytes)
--   baseline_proven  1 when this probe's baseline is proven, 0 when not, null when there is none
--   status           how the attempt ended
--   event            number of the event with the peak
CREATE VIEW model_delta AS
SELECT
  finished.night,
  finished.entry,
  finished.step,
  finished.attempt,
  peak.key AS probe,
  (
    SELECT base.value FROM json_each(settled.data, '$.baseline_mb') AS base WHERE base.key = peak.key
  ) AS baseline_mb,
  peak.value AS peak_mb,
  peak.value - (
    SELECT base.value FROM json_each(settled.data, '$.baseline_mb') AS base WHERE base.key = peak.key
  ) AS model_delta_mb,
  coalesce(
    (
      SELECT json_extract(part.value, '$.proven') FROM json_each(settled.data, '$.probes') AS part
      WHERE json_extract(part.value, '$.probe') = peak.key
    ),
    json_extract(settled.data, '$.proven')
  ) AS baseline_proven,
  json_extract(finished.data, '$.status') AS status,
  finished.id AS event
FROM event AS finished
JOIN json_each(finished.data, '$.peak_mb') AS peak
LEFT JOIN event AS started ON started.id = (
  SELECT max(+other.id) FROM event AS other
  WHERE other.night = finished.night AND other.entry = finished.entry AND other.step = finished.step
    AND other.kind = 'step.started' AND other.attempt = finished.attempt
)
LEFT JOIN event AS settled ON settled.id = coalesce(json_extract(started.data, '$.baseline_event'), (
  SELECT max(other.id) FROM event AS other
  WHERE other.kind = 'settle.finished' AND other.night = finished.night AND other.entry = finished.entry
    AND other.id < finished.id
))
WHERE finished.kind = 'step.finished';
