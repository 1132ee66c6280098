-- Every baseline that was measured, by probe, and what it stands on.
--
-- Columns:
--   night            the night's id
--   entry            entry id, from 0
--   event            number of its settle.finished
--   probe            the probe's name
--   baseline_mb      memory after the reset, before the model loaded, in MB (2^20 bytes)
--   status           settled, dirty or timeout: how this probe settled
--   baseline_proven  1 when it is proven for this probe that the last model is gone, 0 when not
--   reset_verdict    of the reset before it: verified, unverified or failed; null when there was none
--   boot_id          the machine's boot it was measured in
--   at               when, UTC, ISO 8601
CREATE VIEW baseline AS
SELECT
  settled.night,
  settled.entry,
  settled.id AS event,
  part.key AS probe,
  part.value AS baseline_mb,
  -- Of the probe itself; the event's own words are those of the worst probe.
  coalesce(
    (
      SELECT json_extract(one.value, '$.status') FROM json_each(settled.data, '$.probes') AS one
      WHERE json_extract(one.value, '$.probe') = part.key
    ),
    json_extract(settled.data, '$.status')
  ) AS status,
  coalesce(
    (
      SELECT json_extract(one.value, '$.proven') FROM json_each(settled.data, '$.probes') AS one
      WHERE json_extract(one.value, '$.probe') = part.key
    ),
    json_extract(settled.data, '$.proven')
  ) AS baseline_proven,
  json_extract(reset.data, '$.verdict') AS reset_verdict,
  json_extract(plan.data, '$.boot_id') AS boot_id,
  settled.at
FROM event AS settled
JOIN json_each(settled.data, '$.baseline_mb') AS part
LEFT JOIN event AS reset ON reset.id = (
  SELECT max(other.id) FROM event AS other
  WHERE other.kind = 'reset.finished' AND other.night = settled.night AND other.entry = settled.entry
    AND other.id < settled.id
)
LEFT JOIN event AS plan ON plan.id = (
  SELECT max(+other.id) FROM event AS other
  WHERE other.night = settled.night AND other.kind IN ('night.started', 'night.resumed', 'check.started') AND +other.id < settled.id
)
WHERE settled.kind = 'settle.finished';
