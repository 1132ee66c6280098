-- How often the runner died while an entry ran, since `runq rerun` or `--with-set-aside` last lifted its count.
-- A runner that ends by a signal it can catch, such as Ctrl-C, has not died.
--
-- Columns:
--   night   the night's id
--   entry   entry id, from 0
--   deaths  how often the runner died between the entry's start and its end
--   event   number of the night.interrupted event of the last of these deaths
CREATE VIEW entry_death AS
SELECT
  died.night,
  began.entry,
  count(*) AS deaths,
  max(died.id) AS event
FROM event AS died
JOIN event AS began ON began.id = (
  SELECT max(other.id) FROM event AS other
  WHERE other.kind = 'entry.started' AND other.night = died.night AND other.id < died.id
)
WHERE died.kind = 'night.interrupted'
  AND json_extract(died.data, '$.reason') = 'the runner died'
  -- What runs on another machine does not die with the head.
  AND json_extract(began.data, '$.origin') IS NULL
  -- It began under the plan that the runner died with, and has no end.
  AND began.id > (
    SELECT max(other.id) FROM event AS other
    WHERE other.night = died.night AND other.kind IN ('night.started', 'night.resumed') AND other.id < died.id
  )
  AND NOT EXISTS (
    SELECT 1 FROM event AS other
    WHERE other.kind = 'entry.finished' AND other.night = died.night AND other.entry = began.entry
      AND other.id > began.id AND other.id < died.id
  )
  AND NOT EXISTS (
    SELECT 1 FROM event AS other JOIN json_each(other.data, '$.lifted') AS lifted
    WHERE other.kind = 'night.resumed' AND other.night = died.night AND other.id > died.id
      AND lifted.value = began.entry
  )
GROUP BY died.night, began.entry;
