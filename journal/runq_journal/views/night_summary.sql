-- Each night with what its entries have come to.
--
-- Columns:
--   night         the night's id
--   queue_path    the queue file, absolute
--   queue_sha256  SHA-256 of the queue file when the newest plan was made, 64 hexadecimal digits
--   queue_dir     the folder of its summaries and logs, absolute
--   started       when its first plan was made, local time
--   total         entries in the queue file
--   done          entries with a result, failed ones included
--   complete      entries whose every step is ok
--   failed        entries with a result that are not complete
--   pending       entries without a result, running and interrupted ones included
--   state         running (no end is written: it runs, or its runner died), interrupted or finished
--   stopped       why it finished before every entry had its turn; null when it did not
--   started_at    when its first plan was made, UTC, ISO 8601
--   finished_at   when it finished, UTC, ISO 8601; null while it has not
--   last_at       when its last event was written, UTC, ISO 8601
--   first_event   number of its first event
--   last_event    number of its last event
--   seconds       from its first event to its last, in seconds
--   resumes       how often it was resumed
CREATE VIEW night_summary AS
SELECT
  counted.night,
  night.queue_path,
  night.queue_sha256,
  night.queue_dir,
  night.started,
  counted.total,
  counted.total - counted.pending AS done,
  counted.complete,
  counted.total - counted.pending - counted.complete AS failed,
  counted.pending,
  night.state,
  night.stopped,
  night.started_at,
  night.finished_at,
  night.last_at,
  night.first_event,
  night.last_event,
  night.seconds,
  night.resumes
FROM (
  SELECT
    night,
    count(*) OVER of_night AS total,
    sum(status = 'complete') OVER of_night AS complete,
    sum(status IN ('pending', 'running', 'interrupted')) OVER of_night AS pending,
    row_number() OVER of_night AS number
  FROM entry_result
  WINDOW of_night AS (PARTITION BY night)
) AS counted
JOIN night ON night.night = counted.night
WHERE counted.number = 1;
