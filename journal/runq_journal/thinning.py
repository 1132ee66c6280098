"""Readings of memory made few enough to draw, without losing a peak."""

from __future__ import annotations

THINNED = """
WITH placed AS (
  SELECT night, at, entry, step, probe, mb, id,
    CAST(julianday(at) * 86400.0 / :width_s AS INTEGER) AS bucket
  FROM sample
  WHERE night = :night
),
-- With a lone min() or max() the other columns are of the row that has it: https://www.sqlite.org/lang_select.html#bareagg
kept AS (
  SELECT id, night, at, entry, step, probe, min(mb) AS mb FROM placed GROUP BY probe, entry, step, bucket
  UNION
  SELECT id, night, at, entry, step, probe, max(mb) AS mb FROM placed GROUP BY probe, entry, step, bucket
)
SELECT night, at, entry, step, probe, mb FROM kept ORDER BY at, id
"""
"""Of each probe and step the lowest and the highest reading in every ``:width_s`` seconds of ``:night``."""
