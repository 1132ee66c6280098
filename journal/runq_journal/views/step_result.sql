-- What each step of the newest plan stands at: the last word on it, unless that word no longer counts.
-- It no longer counts (stale, and the step is pending) when what the step reads changed before the newest plan was
-- made (`changed`), or when an earlier step of the entry started again after it (`predecessor`). What ran under the
-- newest plan itself always counts. An entry for which the harness named no step has one row without a step.
--
-- Columns:
--   night          the night's id
--   entry          entry id, from 0
--   index          position of the entry in the queue file, from 0
--   model_id       the model's id
--   config         the harness's configuration file, as written
--   pack           the pack, as written
--   step           the step's name
--   position       position of the step in its entry, from 0
--   status         pending, running, ok, failed, timeout, stalled, interrupted, skipped or gave_up
--   stale          why an earlier result does not count: changed or predecessor; null when none was left behind
--   attempt        the attempt the last word is about
--   word_event     number of the event with the last word, also when stale
--   started_event  number of that attempt's step.started
--   plan_event     number of the event that holds the plan
CREATE VIEW step_result AS
SELECT
  known.night,
  known.entry,
  known."index",
  known.model_id,
  known.config,
  known.pack,
  known.step,
  known.position,
  CASE
    WHEN known.stale IS NOT NULL OR known.word_event IS NULL THEN 'pending'
    WHEN known.word_kind = 'step.started' THEN 'running'
    WHEN known.word_kind = 'step.skipped' THEN CASE WHEN known.gave_up THEN 'gave_up' ELSE 'skipped' END
    ELSE known.word_status
  END AS status,
  known.stale,
  known.attempt,
  known.word_event,
  known.started_event,
  known.plan_event
FROM (
  SELECT
    found.*,
    CASE
      WHEN found.word_event IS NULL THEN NULL
      WHEN found.changed THEN 'changed'
      -- One pass over the entry's steps: a search among all earlier ones for each would be quadratic.
      WHEN max(found.latest_started) OVER before_it > coalesce(found.started_event, found.word_event)
        THEN 'predecessor'
    END AS stale
  FROM (
    SELECT
      planned.night,
      planned.entry,
      planned."index",
      planned.model_id,
      planned.config,
      planned.pack,
      json_extract(item.value, '$.name') AS step,
      item.key AS position,
      word.id AS word_event,
      word.kind AS word_kind,
      json_extract(word.data, '$.status') AS word_status,
      json_extract(word.data, '$.gave_up') AS gave_up,
      word.attempt,
      started.id AS started_event,
      -- Most steps began after the newest plan; their text is not even read.
      started.id < planned.plan_event
        AND json_extract(started.data, '$.identity') <> json_extract(item.value, '$.identity') AS changed,
      -- Whatever attempt the last word is about, no later one has begun; a skip is about none.
      CASE WHEN word.kind <> 'step.skipped' THEN started.id ELSE (
        SELECT max(+other.id) FROM event AS other
        WHERE other.night = word.night AND other.entry = word.entry AND other.step = word.step
          AND other.kind = 'step.started'
      ) END AS latest_started,
      planned.plan_event
    FROM planned_entry AS planned
    JOIN json_each(CASE json_array_length(planned.steps) WHEN 0 THEN '[{}]' ELSE planned.steps END) AS item
    LEFT JOIN event AS word ON word.id = (
      SELECT max(+other.id) FROM event AS other
      WHERE other.night = planned.night AND other.entry = planned.entry
        AND other.step = json_extract(item.value, '$.name')
        AND other.kind IN ('step.started', 'step.finished', 'step.skipped')
    )
    LEFT JOIN event AS started ON started.id = (
      SELECT max(+other.id) FROM event AS other
      WHERE other.night = word.night AND other.entry = word.entry AND other.step = word.step
        AND other.kind = 'step.started' AND other.attempt = word.attempt
    )
  ) AS found
  WINDOW before_it AS (
    PARTITION BY found.night, found.entry ORDER BY found.position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
) AS known;
