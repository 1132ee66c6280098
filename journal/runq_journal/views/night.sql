-- Each night: its queue, its state and its times.
--
-- Columns:
--   night         the night's id
--   queue_path    the queue file, absolute
--   queue_sha256  SHA-256 of the queue file when the newest plan was made, 64 hexadecimal digits
--   queue_dir     the folder of its summaries and logs, absolute
--   started       when its first plan was made, local time
--   state         running (no end is written: it runs, or its runner died), interrupted or finished
--   stopped       why it finished before every entry had its turn; null when it did not
--   started_at    when its first plan was made, UTC, ISO 8601
--   finished_at   when it finished, UTC, ISO 8601; null while it has not
--   last_at       when its last event was written, UTC, ISO 8601
--   first_event   number of its first event
--   last_event    number of its last event
--   seconds       from its first event to its last, in seconds
--   resumes       how often it was resumed
CREATE VIEW night AS
SELECT
  night_plan.night,
  json_extract(night_plan.data, '$.queue_path') AS queue_path,
  json_extract(night_plan.data, '$.queue_sha256') AS queue_sha256,
  json_extract(night_plan.data, '$.queue_dir') AS queue_dir,
  json_extract(first.data, '$.started_local') AS started,
  CASE word.kind
    WHEN 'night.finished' THEN 'finished'
    WHEN 'night.interrupted' THEN 'interrupted'
    ELSE 'running'
  END AS state,
  nullif(json_extract(word.data, '$.stopped'), '') AS stopped,
  first.at AS started_at,
  CASE word.kind WHEN 'night.finished' THEN word.at END AS finished_at,
  last.at AS last_at,
  opening.id AS first_event,
  last.id AS last_event,
  round((julianday(last.at) - julianday(opening.at)) * 86400, 3) AS seconds,
  (
    SELECT count(*) FROM event AS other
    WHERE other.kind = 'night.resumed' AND other.night = night_plan.night
  ) AS resumes
FROM night_plan
LEFT JOIN event AS first ON first.id = (
  SELECT min(other.id) FROM event AS other
  WHERE other.night = night_plan.night AND other.kind IN ('night.started', 'night.resumed')
)
LEFT JOIN event AS word ON word.id = (
  SELECT max(other.id) FROM event AS other
  WHERE other.night = night_plan.night
    AND other.kind IN ('night.started', 'night.resumed', 'night.interrupted', 'night.finished')
)
LEFT JOIN event AS opening ON opening.id = (
  SELECT min(other.id) FROM event AS other WHERE other.night = night_plan.night
)
LEFT JOIN event AS last ON last.id = (SELECT max(other.id) FROM event AS other WHERE other.night = night_plan.night);
