-- The entries of each night's newest plan.
--
-- Columns:
--   night         the night's id
--   entry         entry id, from 0; never changes within a night
--   index         position in the queue file as the plan has it, from 0
--   model_id      the model's id
--   config        the harness's configuration file, as written
--   pack          the pack, as written
--   judge_config  the judge's configuration file, as written
--   judge_model   the judge's model id
--   model         the whole model specification (JSON)
--   settings      every resolved setting, without secrets (JSON)
--   steps         the steps in order (JSON): name, identity, run, why
--   plan_event    number of the event that holds the plan
--   place         place of the entry in the plan, from 0
CREATE VIEW planned_entry AS
SELECT
  night_plan.night,
  json_extract(item.value, '$.id') AS entry,
  json_extract(item.value, '$.index') AS "index",
  json_extract(item.value, '$.model.id') AS model_id,
  json_extract(item.value, '$.config') AS config,
  json_extract(item.value, '$.pack') AS pack,
  json_extract(item.value, '$.judge_config') AS judge_config,
  json_extract(item.value, '$.judge_model') AS judge_model,
  json_extract(item.value, '$.model') AS model,
  json_extract(item.value, '$.settings') AS settings,
  json_extract(item.value, '$.steps') AS steps,
  night_plan.plan_event,
  -- Keeps SQLite from taking this view apart and so reading an entry's whole text again for each of its steps.
  row_number() OVER (PARTITION BY night_plan.night ORDER BY item.key) - 1 AS place
FROM night_plan
JOIN json_each(night_plan.data, '$.entries') AS item;
