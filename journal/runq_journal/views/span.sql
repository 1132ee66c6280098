-- What the time of each night went to: one row for each reset, settling, cooldown, restart, retry wait, server start,
-- pause and attempt of a step.
--
-- Columns:
--   night     the night's id
--   entry     entry id, from 0; null for a pause
--   what      step, reset, settle, cooldown, restart, retry (the wait before one), server (until it was spawned or given
--             up), pause, or start (the wait for --start-at)
--   step      the step's name; of a reset the step it came before; null for none
--   attempt   from 1; null for no attempt
--   status    how it ended: a step's status, a reset's verdict, a settling's status; done for what has no word of its
--             own, interrupted when its runner died, running when no end is written
--   began_at  when it began, UTC, ISO 8601
--   ended_at  when it ended, UTC, ISO 8601; of what a runner's death ended the last sign of life; null while it runs
--   seconds   how long it took by the wall clock, in seconds; null while it runs
--   event     number of the event that began it
CREATE VIEW span AS
WITH paired AS (
  SELECT
    began.id,
    began.night,
    began.entry,
    began.step,
    began.attempt,
    began.kind,
    began.at,
    began.data,
    -- The next event that can end it. A later start of the runner ends all that the one before left open.
    (
      SELECT min(other.id) FROM event AS other
      WHERE other.night = began.night AND other.id > began.id
        AND CASE
          WHEN other.kind = 'night.resumed' THEN 1
          WHEN began.kind = 'step.started' THEN other.kind = 'step.finished' AND other.entry IS began.entry
            AND other.step IS began.step AND other.attempt IS began.attempt
          WHEN began.kind = 'reset.started' THEN other.kind = 'reset.finished' AND other.entry IS began.entry
          WHEN began.kind = 'settle.started' THEN other.kind = 'settle.finished' AND other.entry IS began.entry
          WHEN began.kind = 'restart.started' THEN other.kind = 'restart.finished' AND other.entry IS began.entry
          WHEN began.kind = 'night.paused' THEN other.kind IN ('night.unpaused', 'night.interrupted', 'night.finished')
          -- These have no end of their own: what the night does next ends them.
          ELSE other.kind NOT IN ('warning', 'night.asked', 'night.frozen', 'night.continued', 'night.slept')
        END
    ) AS end_id
  FROM event AS began
  WHERE began.kind IN (
    'step.started', 'reset.started', 'settle.started', 'cooldown.started', 'restart.started', 'retry.waiting',
    'server.started', 'night.paused', 'night.waiting'
  )
),
told AS (
  SELECT
    paired.*,
    ended.data AS end_data,
    ended.kind AS end_kind,
    ended.at AS end_at,
    -- A step's end without a duration was written by the runner after the one that died.
    ended.id IS NOT NULL AND (
      ended.kind = 'night.resumed'
      OR (ended.kind = 'step.finished' AND coalesce(json_extract(ended.data, '$.seconds'), 0) = 0
        AND json_extract(ended.data, '$.status') = 'interrupted')
    ) AS died
  FROM paired
  LEFT JOIN event AS ended ON ended.id = paired.end_id
),
timed AS (
  SELECT
    told.*,
    CASE
      WHEN NOT died THEN end_at
      ELSE max(
        at,
        coalesce((
          SELECT max(sample.at) FROM sample
          WHERE sample.night = told.night AND sample.entry = told.entry AND sample.step = told.step
            AND sample.at < told.end_at
        ), at),
        coalesce((
          SELECT other.at FROM event AS other
          WHERE other.night = told.night AND other.id < told.end_id AND other.kind <> 'step.finished'
          ORDER BY other.id DESC LIMIT 1
        ), at)
      )
    END AS ended_at
  FROM told
)
SELECT
  night,
  entry,
  CASE kind
    WHEN 'step.started' THEN 'step'
    WHEN 'reset.started' THEN 'reset'
    WHEN 'settle.started' THEN 'settle'
    WHEN 'cooldown.started' THEN 'cooldown'
    WHEN 'restart.started' THEN 'restart'
    WHEN 'retry.waiting' THEN 'retry'
    WHEN 'server.started' THEN 'server'
    WHEN 'night.paused' THEN 'pause'
    ELSE 'start'
  END AS what,
  coalesce(step, json_extract(data, '$.before_step')) AS step,
  attempt,
  CASE
    WHEN end_id IS NULL THEN 'running'
    WHEN died THEN 'interrupted'
    ELSE coalesce(
      CASE WHEN end_kind IN ('step.finished', 'settle.finished') THEN json_extract(end_data, '$.status') END,
      CASE WHEN end_kind = 'reset.finished' THEN json_extract(end_data, '$.verdict') END,
      'done'
    )
  END AS status,
  at AS began_at,
  ended_at,
  round((julianday(ended_at) - julianday(at)) * 86400, 3) AS seconds,
  id AS event
FROM timed;
