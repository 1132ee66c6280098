-- The steps of each night's newest plan.
--
-- Columns:
--   night       the night's id
--   entry       entry id, from 0
--   index       position of the entry in the queue file, from 0
--   model_id    the model's id
--   config      the harness's configuration file, as written
--   pack        the pack, as written
--   step        the step's name
--   position    position of the step in its entry, from 0
--   identity    versioned hash of what decides the step's result
--   run         1 when the plan meant to run it
--   why         why it was to run, or not
--   plan_event  number of the event that holds the plan
CREATE VIEW planned_step AS
SELECT
  planned_entry.night,
  planned_entry.entry,
  planned_entry."index",
  planned_entry.model_id,
  planned_entry.config,
  planned_entry.pack,
  json_extract(item.value, '$.name') AS step,
  item.key AS position,
  json_extract(item.value, '$.identity') AS identity,
  json_extract(item.value, '$.run') AS run,
  json_extract(item.value, '$.why') AS why,
  planned_entry.plan_event
FROM planned_entry
JOIN json_each(planned_entry.steps) AS item;
