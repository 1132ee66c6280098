-- What each check found of each model.
--
-- Columns:
--   night            the check's id: its start, then _check
--   entry            number of the model in the check, from 0
--   model_id         the model's id, as asked for
--   loaded           1 when the answer shows that a model is loaded, 0 when not
--   status           ok, reasoning_only, empty or error
--   content_chars    how many characters it answered
--   ram_before_mb    memory after a settled reset, before the load, in MB (2^20 bytes)
--   ram_after_mb     highest reading with the model loaded, in MB (2^20 bytes)
--   ram_delta_mb     after minus before, in MB (2^20 bytes)
--   ram_back_mb      memory after it was evicted again, in MB (2^20 bytes)
--   baseline_proven  1 when the memory before is proven clean, 0 when not
--   role             the step that needs the model
--   endpoint         base URL that was asked; null when the harness names none
--   answered_by      the model's name as the server gives it; null when it gives none
--   loaded_models    what the server lists as loaded after the answer (JSON); null when it cannot tell
--   context_length   tokens of context it is loaded with; null when the server does not tell
--   seconds          how long load and answer took, in seconds
--   reset_verdict    of the reset before the load: verified, unverified or failed
--   evict_verdict    of the eviction after it: verified, unverified or failed
--   memory_back      1 when memory settled again after the eviction, 0 when not
--   verdict          ok, warn or fail
--   problem          what is wrong, one sentence
--   remedy           what to do about it
--   event            number of the event that says so
--   at               when, UTC, ISO 8601
CREATE VIEW check_result AS
SELECT
  event.night,
  event.entry,
  json_extract(event.data, '$.model') AS model_id,
  json_extract(event.data, '$.loaded') AS loaded,
  json_extract(event.data, '$.status') AS status,
  json_extract(event.data, '$.content_chars') AS content_chars,
  json_extract(event.data, '$.ram_before_mb') AS ram_before_mb,
  json_extract(event.data, '$.ram_after_mb') AS ram_after_mb,
  json_extract(event.data, '$.ram_delta_mb') AS ram_delta_mb,
  json_extract(event.data, '$.ram_back_mb') AS ram_back_mb,
  json_extract(event.data, '$.baseline_proven') AS baseline_proven,
  json_extract(event.data, '$.role') AS role,
  json_extract(event.data, '$.endpoint') AS endpoint,
  json_extract(event.data, '$.answered_by') AS answered_by,
  json_extract(event.data, '$.loaded_models') AS loaded_models,
  json_extract(event.data, '$.context_length') AS context_length,
  json_extract(event.data, '$.seconds') AS seconds,
  json_extract(event.data, '$.reset_verdict') AS reset_verdict,
  json_extract(event.data, '$.evict_verdict') AS evict_verdict,
  json_extract(event.data, '$.memory_back') AS memory_back,
  json_extract(event.data, '$.verdict') AS verdict,
  json_extract(event.data, '$.problem') AS problem,
  json_extract(event.data, '$.remedy') AS remedy,
  event.id AS event,
  event.at
FROM event
WHERE event.kind = 'check.model';
