-- The journal, first version. Times are µs since the Unix epoch; JSON columns hold what the program's own types write.

CREATE TABLE experiments (
  key         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  target      TEXT NOT NULL,
  tunnel      TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('running', 'finished', 'stopped', 'aborted')),
  started_us  INTEGER NOT NULL,
  ended_us    INTEGER,
  comment     TEXT NOT NULL,
  version     TEXT NOT NULL,
  current     TEXT NOT NULL,          -- settings, JSON
  config      TEXT NOT NULL,          -- JSON, the program's own business
  seed        INTEGER NOT NULL,       -- 64 bits, as a signed number
  path        TEXT NOT NULL,          -- facts about the path, JSON
  verdict     TEXT,                   -- JSON
  owner_pid   INTEGER NOT NULL,
  owner_start INTEGER NOT NULL,       -- clock ticks since that boot
  owner_boot  TEXT NOT NULL
) STRICT;

CREATE INDEX experiments_started ON experiments (started_us);

CREATE TABLE arms (
  experiment  INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  arm         INTEGER NOT NULL,
  label       TEXT NOT NULL,
  settings    TEXT NOT NULL,
  PRIMARY KEY (experiment, arm)
) STRICT, WITHOUT ROWID;

-- What an analysis reads of a trial. Narrow on purpose: a million rows of it are read in a second or two, and what is
-- wide (JSON, samples) lies in tables of its own.
CREATE TABLE trials (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again, not even after pruning
  experiment  INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  phase       TEXT NOT NULL,
  round       INTEGER NOT NULL,
  ord         INTEGER NOT NULL,
  arm         INTEGER NOT NULL,
  status      TEXT NOT NULL,
  started_us  INTEGER NOT NULL,
  elapsed_us  INTEGER NOT NULL,
  bytes       INTEGER NOT NULL
) STRICT;

CREATE INDEX trials_experiment ON trials (experiment);
CREATE INDEX trials_running ON trials (experiment) WHERE status = 'running';

CREATE TABLE details (
  trial           INTEGER PRIMARY KEY REFERENCES trials (id) ON DELETE CASCADE,
  asked           TEXT NOT NULL,      -- settings, JSON
  workload        TEXT NOT NULL,      -- JSON
  deadline_us     INTEGER NOT NULL,
  seed            INTEGER NOT NULL,
  granted         TEXT NOT NULL,      -- settings, JSON
  scopes          TEXT NOT NULL,      -- knob to scope, JSON
  observed        TEXT NOT NULL,      -- JSON
  busy_us         INTEGER NOT NULL,
  rwnd_limited_us INTEGER NOT NULL,
  sndbuf_limited_us INTEGER NOT NULL,
  notes           TEXT NOT NULL       -- list of texts, JSON
) STRICT;

CREATE TABLE samples (
  trial       INTEGER NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
  side        TEXT NOT NULL CHECK (side IN ('sender', 'receiver')),
  data        BLOB NOT NULL,          -- columns of deltas; the first byte is the version of the encoding
  PRIMARY KEY (trial, side)
) STRICT;
