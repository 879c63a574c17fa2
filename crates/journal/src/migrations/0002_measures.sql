-- What a workload measured beyond payload and time. A table of its own, with a row only where there is something: bulk
-- transfers, which most trials are, have none.

CREATE TABLE measures (
  trial       INTEGER PRIMARY KEY REFERENCES trials (id) ON DELETE CASCADE,
  score       REAL,                   -- what is compared, where that isn't payload over time
  data        TEXT NOT NULL           -- JSON
) STRICT;
