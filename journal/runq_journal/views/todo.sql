-- What a resume runs by the journal's word: every step of the newest plan that is not ok, and every step after one.
-- An entry that was set aside is not among them: `runq rerun` or `--with-set-aside` runs it.
-- What files and bundles are now is not in the journal; `runq plan` and `runq night --resume` look at them too.
--
-- Columns:
--   night     the night's id
--   entry     entry id, from 0
--   index     position of the entry in the queue file, from 0
--   model_id  the model's id
--   config    the harness's configuration file, as written
--   pack      the pack, as written
--   step      the step's name; null when the harness named none
--   position  position of the step in its entry, from 0
--   status    pending, running, ok (an earlier step runs again), failed, timeout, stalled, interrupted or skipped
--   reason    why it is to run
CREATE VIEW todo AS
SELECT
  known.night,
  known.entry,
  known."index",
  known.model_id,
  known.config,
  known.pack,
  known.step,
  known.position,
  known.status,
  CASE
    WHEN known.stale = 'changed' THEN 'what it reads has changed since it ran'
    WHEN known.stale = 'predecessor' THEN 'an earlier step ran again after it'
    WHEN known.status = 'ok' THEN 'an earlier step runs again'
    WHEN known.status = 'pending' THEN 'it has not run yet'
    WHEN known.status = 'running' THEN 'it has not ended'
    WHEN known.status = 'skipped' THEN 'it was skipped'
    WHEN known.status = 'interrupted' THEN 'it was interrupted'
    WHEN known.status = 'timeout' THEN 'it timed out'
    WHEN known.status = 'stalled' THEN 'it stalled'
    ELSE 'it failed'
  END AS reason
FROM (
  SELECT
    step_result.*,
    min(CASE WHEN status IS NOT 'ok' THEN position END) OVER (PARTITION BY night, entry) AS halt_position,
    max(status IS 'gave_up') OVER (PARTITION BY night, entry) AS set_aside
  FROM step_result
) AS known
WHERE known.position >= known.halt_position AND NOT known.set_aside;
