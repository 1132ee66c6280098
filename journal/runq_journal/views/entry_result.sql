-- The result of each entry of the newest plan, with touchstone's fields: `eval_*` is the first step, `judge_*` the
-- second, whatever their names. Words that touchstone has none for: stalled reads timeout; interrupted, running and
-- not yet run read pending; any other end reads failed.
--
-- Columns:
--   night            the night's id
--   entry            entry id, from 0
--   index            position in the queue file, from 0
--   model_id         the model's id
--   config           the harness's configuration file, as written
--   pack             the pack, as written
--   bundle_dir       the folder the latest step wrote into, absolute: it holds what the steps before left too
--   status           complete, failed, skipped, pending, running, interrupted or gave_up (set aside)
--   eval_status      ok, failed, timeout or pending
--   judge_status     ok, failed, timeout, pending or skipped
--   eval_seconds     how long the first step's last attempt ran, in seconds, one decimal
--   judge_seconds    how long the second step's last attempt ran, in seconds, one decimal
--   error            what went wrong in few words; null when nothing did
--   reason           what went wrong, one sentence
--   eval_step        name of the first step
--   judge_step       name of the second step; null when there is none
--   reset_verdict    verified, unverified or failed: the last reset before the first step
--   settle_status    settled, dirty or timeout: the last settling before the first step
--   baseline_proven  1 when the baseline is proven, 0 when not, null when there is none
--   baseline_mb      of the first probe, memory before the model loaded, in MB (2^20 bytes)
--   peak_mb          of the first probe, highest reading during the first step, in MB (2^20 bytes)
--   model_delta_mb   of the first probe, peak minus baseline, in MB (2^20 bytes)
--   answers          how many answers the first step gave
--   answers_failed   how many of them failed
--   tokens_per_second  median over the answers of the first step; null when the harness does not tell it
CREATE VIEW entry_result AS
WITH halted AS (
  -- An entry is decided by its first step that is not ok.
  SELECT
    step_result.*,
    min(CASE WHEN status IS NOT 'ok' THEN position END) OVER (PARTITION BY night, entry) AS halt_position
  FROM step_result
),
-- Window functions instead of GROUP BY: "night = ?" reaches the table through any number of them.
entries AS (
  SELECT
    halted.*,
    max(CASE WHEN stale IS NULL THEN started_event END) OVER of_entry AS latest_started,
    max(CASE WHEN position = 1 THEN step END) OVER of_entry AS second_step,
    max(CASE WHEN position = 1 THEN status END) OVER of_entry AS second_status,
    max(CASE WHEN position = 1 THEN word_event END) OVER of_entry AS second_word,
    max(CASE WHEN position = halt_position THEN step END) OVER of_entry AS halt_step,
    max(CASE WHEN position = halt_position THEN status END) OVER of_entry AS halt_status,
    max(CASE WHEN position = halt_position THEN stale END) OVER of_entry AS halt_stale,
    max(CASE WHEN position = halt_position THEN word_event END) OVER of_entry AS halt_word,
    max(CASE WHEN position = halt_position THEN started_event END) OVER of_entry AS halt_started
  FROM halted
  WINDOW of_entry AS (PARTITION BY night, entry)
),
told AS (
  SELECT
    entries.*,
    -- The entry ended before its next step could start: a failed reset, a missing file, a plugin that raised.
    CASE
      WHEN halt_status NOT IN ('failed', 'timeout', 'stalled') AND ended.id > coalesce(halt_word, 0)
        AND (halt_stale IS NULL OR ended.id > entries.plan_event)
        THEN json_extract(ended.data, '$.status')
    END AS refused,
    nullif(json_extract(ended.data, '$.reason'), '') AS refusal,
    word.data AS word_data,
    latest.data AS latest_data,
    second.data AS second_data,
    halt.data AS halt_data,
    halt_start.data AS halt_start_data,
    reset.data AS reset_data,
    settled.data AS settled_data
  FROM entries
  LEFT JOIN event AS ended ON ended.id = (
      SELECT max(other.id) FROM event AS other
      WHERE other.kind = 'entry.finished' AND other.night = entries.night AND other.entry = entries.entry
    )
    AND json_extract(ended.data, '$.status') IN ('failed', 'skipped', 'gave_up')
    AND ended.id > coalesce((
      SELECT max(other.id) FROM event AS other
      WHERE other.kind = 'entry.started' AND other.night = entries.night AND other.entry = entries.entry
    ), 0)
  LEFT JOIN event AS word ON word.id = entries.word_event AND entries.stale IS NULL
  LEFT JOIN event AS started ON started.id = entries.started_event AND entries.stale IS NULL
  LEFT JOIN event AS latest ON latest.id = entries.latest_started
  LEFT JOIN event AS second ON second.id = entries.second_word
  LEFT JOIN event AS halt ON halt.id = entries.halt_word AND entries.halt_stale IS NULL
  LEFT JOIN event AS halt_start ON halt_start.id = entries.halt_started
  LEFT JOIN event AS reset ON reset.id = (
    SELECT max(other.id) FROM event AS other
    WHERE other.kind = 'reset.finished' AND other.night = entries.night AND other.entry = entries.entry
      AND other.id < coalesce(started.id, 9223372036854775807)
  )
  LEFT JOIN event AS settled ON settled.id = (
    SELECT max(other.id) FROM event AS other
    WHERE other.kind = 'settle.finished' AND other.night = entries.night AND other.entry = entries.entry
      AND other.id < coalesce(started.id, 9223372036854775807)
  )
  WHERE entries.position = 0
),
spoken AS (
  SELECT
    told.*,
    CASE
      WHEN status = 'ok' THEN 'ok'
      WHEN status IN ('timeout', 'stalled') THEN 'timeout'
      WHEN status IN ('pending', 'running', 'interrupted') AND (refused IS NULL OR halt_position > 0) THEN 'pending'
      ELSE 'failed'
    END AS eval_status,
    json_extract(halt_start_data, CASE halt_status WHEN 'stalled' THEN '$.stall_timeout_s' ELSE '$.timeout_s' END)
      AS limit_s
  FROM told
)
SELECT
  night,
  entry,
  "index",
  model_id,
  config,
  pack,
  json_extract(latest_data, '$.bundle') AS bundle_dir,
  CASE
    WHEN halt_position IS NULL THEN 'complete'
    WHEN refused IS NOT NULL THEN refused
    WHEN halt_status IN ('pending', 'running', 'interrupted', 'skipped') THEN halt_status
    ELSE 'failed'
  END AS status,
  eval_status,
  CASE
    WHEN second_step IS NULL THEN 'skipped'
    WHEN second_status = 'ok' THEN 'ok'
    WHEN refused IN ('failed', 'gave_up') AND halt_position = 1 THEN 'failed'
    WHEN second_status IN ('timeout', 'stalled') THEN 'timeout'
    WHEN second_status = 'skipped' THEN CASE eval_status WHEN 'pending' THEN 'pending' ELSE 'skipped' END
    WHEN second_status NOT IN ('pending', 'running', 'interrupted') THEN 'failed'
    WHEN eval_status IN ('failed', 'timeout') THEN 'skipped'
    WHEN refused IS NOT NULL AND halt_position = 1 THEN 'failed'
    ELSE 'pending'
  END AS judge_status,
  CASE WHEN status <> 'interrupted' THEN round(json_extract(word_data, '$.seconds'), 1) END AS eval_seconds,
  CASE WHEN second_status NOT IN ('pending', 'interrupted') THEN round(json_extract(second_data, '$.seconds'), 1) END
    AS judge_seconds,
  CASE
    WHEN halt_position IS NULL THEN NULL
    WHEN refused IS NOT NULL THEN coalesce(refusal, coalesce(halt_step, 'entry') || ' ' || refused)
    WHEN halt_status IN ('pending', 'running', 'interrupted') THEN NULL
    WHEN halt_status = 'skipped'
      THEN coalesce(nullif(json_extract(halt_data, '$.reason'), ''), halt_step || ' skipped')
    WHEN halt_status IN ('timeout', 'stalled')
      -- touchstone names the limit of the first step only.
      THEN halt_step || ' ' || halt_status || CASE WHEN halt_position = 0 AND limit_s IS NOT NULL
        THEN ' (>' || CASE WHEN limit_s = CAST(limit_s AS INTEGER) THEN CAST(limit_s AS INTEGER) ELSE limit_s END || 's)'
        ELSE ''
      END
    ELSE halt_step || ' failed'
  END AS error,
  CASE WHEN refused IS NOT NULL THEN refusal ELSE nullif(json_extract(halt_data, '$.reason'), '') END AS reason,
  step AS eval_step,
  second_step AS judge_step,
  json_extract(reset_data, '$.verdict') AS reset_verdict,
  json_extract(settled_data, '$.status') AS settle_status,
  json_extract(settled_data, '$.proven') AS baseline_proven,
  (SELECT item.value FROM json_each(settled_data, '$.baseline_mb') AS item LIMIT 1) AS baseline_mb,
  (SELECT item.value FROM json_each(word_data, '$.peak_mb') AS item LIMIT 1) AS peak_mb,
  (SELECT item.value FROM json_each(word_data, '$.model_delta_mb') AS item LIMIT 1) AS model_delta_mb,
  json_extract(word_data, '$.facts.answers') AS answers,
  json_extract(word_data, '$.facts.answers_failed') AS answers_failed,
  -- A harness is anybody's: any other value is no figure.
  CASE WHEN json_type(word_data, '$.facts.tokens_per_second') IN ('integer', 'real')
    THEN json_extract(word_data, '$.facts.tokens_per_second')
  END AS tokens_per_second
FROM spoken;
