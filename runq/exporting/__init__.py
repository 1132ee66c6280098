"""`runq export`: the journal's rows as CSV, JSON Lines or Parquet, however many there are."""
