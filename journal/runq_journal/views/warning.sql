-- What the user was to know; none of it ended a night.
--
-- Columns:
--   night    the night's id
--   entry    entry id, from 0; null when it is about the night
--   step     the step's name; null when it is about none
--   message  what is wrong
--   remedy   what to do about it
--   at       when, UTC, ISO 8601
--   event    number of the event
CREATE VIEW warning AS
SELECT
  event.night,
  event.entry,
  event.step,
  json_extract(event.data, '$.message') AS message,
  nullif(json_extract(event.data, '$.remedy'), '') AS remedy,
  event.at,
  event.id AS event
FROM event
WHERE event.kind = 'warning';
