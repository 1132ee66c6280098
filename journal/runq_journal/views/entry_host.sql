-- The machine of a cluster that each entry ran on last; no row for one that ran on the runner's own machine.
--
-- Columns:
--   night  the night's id
--   entry  entry id, from 0
--   host   the machine
--   hosts  on how many machines it ran in this night
CREATE VIEW entry_host AS
SELECT
  began.night,
  began.entry,
  json_extract(began.data, '$.origin.host') AS host,
  (
    SELECT count(DISTINCT json_extract(other.data, '$.origin.host')) FROM event AS other
    WHERE other.kind = 'entry.started' AND other.night = began.night AND other.entry = began.entry
  ) AS hosts
FROM event AS began
WHERE began.kind = 'entry.started'
  AND json_extract(began.data, '$.origin.host') IS NOT NULL
  AND began.id = (
    SELECT max(other.id) FROM event AS other
    WHERE other.kind = 'entry.started' AND other.night = began.night AND other.entry = began.entry
  );
