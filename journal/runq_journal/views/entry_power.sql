-- What each entry ran on, where the machine has a battery.
--
-- Columns:
--   night            the night's id
--   entry            entry id, from 0
--   on_battery       1 when it began or ended on battery, 0 when on mains power
--   battery_percent  the lowest charge at its beginnings and ends, in percent
CREATE VIEW entry_power AS
SELECT
  night,
  entry,
  max(json_extract(data, '$.on_battery')) AS on_battery,
  min(json_extract(data, '$.battery_percent')) AS battery_percent
FROM event
WHERE kind IN ('entry.started', 'entry.finished') AND json_extract(data, '$.battery_percent') IS NOT NULL
GROUP BY night, entry;
