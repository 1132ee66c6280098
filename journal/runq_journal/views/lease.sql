-- Every lease: an entry in the hands of a machine, until a time. The entry runs nowhere else until the lease has ended.
--
-- Columns:
--   night    the night's id
--   lease    number of its lease.granted event, which names it
--   entry    entry id, from 0
--   host     the machine
--   slot     which of the machine's places it takes, from 0
--   lease_s  what a renewal adds to the time of the last word from the machine, in seconds
--   until    when it runs out, as last renewed, UTC, ISO 8601
--   ended    done, refused, died or expired; null while it is open
--   reason   why it ended so; null where nothing is to be said
CREATE VIEW lease AS
SELECT
  granted.night,
  granted.id AS lease,
  granted.entry,
  json_extract(granted.data, '$.host') AS host,
  json_extract(granted.data, '$.slot') AS slot,
  json_extract(granted.data, '$.lease_s') AS lease_s,
  coalesce(
    (
      SELECT json_extract(other.data, '$.until') FROM event AS other
      WHERE other.kind = 'lease.renewed' AND other.night = granted.night AND other.entry = granted.entry
        AND json_extract(other.data, '$.lease') = granted.id
      ORDER BY other.id DESC LIMIT 1
    ),
    json_extract(granted.data, '$.until')
  ) AS until,
  json_extract(ended.data, '$.how') AS ended,
  nullif(json_extract(ended.data, '$.reason'), '') AS reason
FROM event AS granted
LEFT JOIN event AS ended ON ended.kind = 'lease.ended' AND ended.night = granted.night
  AND ended.entry = granted.entry AND json_extract(ended.data, '$.lease') = granted.id
WHERE granted.kind = 'lease.granted';
