-- The journal of many hosts. Numbered as the one in SQLite is: this has what its first three migrations have, and in addition the
-- site that measured, and the number of a trial there. Times are µs since the Unix epoch. JSON is kept as text (json, not jsonb,
-- which loses the order of keys and -0.0); what lists show of it lies in columns of its own.

CREATE TABLE windtunnel_schema (version BIGINT NOT NULL);

CREATE TABLE experiments (
  key         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  site        TEXT NOT NULL,          -- the host that measured
  target      TEXT NOT NULL,
  tunnel      TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('running', 'finished', 'stopped', 'aborted')),
  started_us  BIGINT NOT NULL,
  ended_us    BIGINT,
  comment     TEXT NOT NULL,
  version     TEXT NOT NULL,
  current     JSON NOT NULL,          -- settings
  config      JSON NOT NULL,          -- the program's own business
  seed        BIGINT NOT NULL,        -- 64 bits, as a signed number
  path        JSON NOT NULL,          -- facts about the path
  verdict     JSON,
  owner_pid   BIGINT NOT NULL,
  owner_start BIGINT NOT NULL,        -- clock ticks since that boot
  owner_boot  TEXT NOT NULL,
  pushed      TIMESTAMPTZ NOT NULL DEFAULT now(),  -- when it was last written, by the server's clock
  -- What lists show of config and verdict.
  kind         TEXT NOT NULL,
  workload     TEXT,
  verdict_kind TEXT,
  action       TEXT,
  answer       TEXT,
  setting      TEXT,
  change_bp    BIGINT
);

CREATE INDEX experiments_started ON experiments (started_us);

CREATE TABLE arms (
  experiment  BIGINT NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  arm         BIGINT NOT NULL,
  label       TEXT NOT NULL,
  settings    JSON NOT NULL,
  PRIMARY KEY (experiment, arm)
);

CREATE SEQUENCE trial_ids;

CREATE TABLE trials (
  id          BIGINT PRIMARY KEY DEFAULT nextval('trial_ids'),
  experiment  BIGINT NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  local_id    BIGINT NOT NULL,        -- its number in the journal of the site that measured
  phase       TEXT NOT NULL,
  round       BIGINT NOT NULL,
  ord         BIGINT NOT NULL,
  arm         BIGINT NOT NULL,
  status      TEXT NOT NULL,
  started_us  BIGINT NOT NULL,
  elapsed_us  BIGINT NOT NULL,
  bytes       BIGINT NOT NULL,
  UNIQUE (experiment, local_id)
);

CREATE TABLE details (
  trial           BIGINT PRIMARY KEY REFERENCES trials (id) ON DELETE CASCADE,
  asked           JSON NOT NULL,
  workload        JSON NOT NULL,
  deadline_us     BIGINT NOT NULL,
  seed            BIGINT NOT NULL,
  granted         JSON NOT NULL,
  scopes          JSON NOT NULL,
  observed        JSON NOT NULL,
  busy_us         BIGINT NOT NULL,
  rwnd_limited_us BIGINT NOT NULL,
  sndbuf_limited_us BIGINT NOT NULL,
  notes           JSON NOT NULL
);

CREATE TABLE samples (
  trial       BIGINT NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
  side        TEXT NOT NULL CHECK (side IN ('sender', 'receiver')),
  data        BYTEA NOT NULL,
  PRIMARY KEY (trial, side)
);

CREATE TABLE measures (
  trial       BIGINT PRIMARY KEY REFERENCES trials (id) ON DELETE CASCADE,
  score       DOUBLE PRECISION,
  data        JSON NOT NULL
);

CREATE TABLE sightings (
  id    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind  TEXT NOT NULL,
  host  TEXT NOT NULL,
  at_us BIGINT NOT NULL,
  found JSON NOT NULL
);

CREATE INDEX sightings_host ON sightings (kind, host, at_us);
