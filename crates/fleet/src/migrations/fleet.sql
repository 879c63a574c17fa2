-- Agents, what they are to measure, and how they write what they found. Made anew by every program that is newer; SCHEMA is replaced
-- by the schema that it goes into. An agent's role may call the functions, and nothing else; who asks is session_user, never an argument.

CREATE TABLE IF NOT EXISTS SCHEMA.fleet_agents (
  agent   TEXT PRIMARY KEY,         -- its role, which is its certificate's name
  added   TIMESTAMPTZ NOT NULL DEFAULT now(),
  seen    TIMESTAMPTZ,              -- when it asked last, by this clock
  version TEXT NOT NULL DEFAULT '',
  skew_us BIGINT,                   -- its wall clock less this one, to within a round trip
  rtt_us  BIGINT,
  outbox  BIGINT NOT NULL DEFAULT 0 -- experiments that aren't here yet
);

CREATE TABLE IF NOT EXISTS SCHEMA.fleet_jobs (
  job       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  mesh      TEXT NOT NULL,
  agent     TEXT NOT NULL REFERENCES SCHEMA.fleet_agents (agent) ON DELETE CASCADE,
  target    TEXT NOT NULL,
  spec      TEXT NOT NULL,          -- JSON
  links     TEXT[] NOT NULL,
  every_ms  BIGINT,                 -- none: once
  spread_ms BIGINT NOT NULL,        -- it begins at a random time within so long
  state     TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'refused', 'failed', 'stopped')),
  next      TIMESTAMPTZ NOT NULL,
  run       BIGINT NOT NULL DEFAULT 1,
  token     BIGINT,                 -- of who has it now
  until     TIMESTAMPTZ,            -- then it goes to whoever asks
  reason    TEXT NOT NULL DEFAULT '',
  changed   TIMESTAMPTZ NOT NULL DEFAULT now(),
  UNIQUE (mesh, agent, target)
);

-- When the period began, or will, that its last run or the one that is due counts to. Of jobs that were written down before there was such a
-- column it is none, until they have run again: theirs count from the year 2000.
ALTER TABLE SCHEMA.fleet_jobs ADD COLUMN IF NOT EXISTS period TIMESTAMPTZ;
ALTER TABLE SCHEMA.fleet_jobs ALTER COLUMN period SET DEFAULT now();

-- The period of a run that begins about then. All jobs of a mesh that run as often have the same periods: one that joins later begins at
-- once, and counts to the nearest, so that its next run is half a period away at least.
CREATE OR REPLACE FUNCTION SCHEMA.fleet_period(of_mesh TEXT, of_every_ms BIGINT, about TIMESTAMPTZ) RETURNS TIMESTAMPTZ
LANGUAGE sql STABLE SET search_path = SCHEMA, pg_temp AS $$
  SELECT coalesce((SELECT date_bin(of_every_ms * interval '1 millisecond', about + of_every_ms * interval '0.5 milliseconds',
      coalesce(j.period, timestamptz '2000-01-01 00:00:00+00'))
    FROM fleet_jobs j WHERE j.mesh = of_mesh AND j.every_ms IS NOT NULL AND j.state IN ('waiting', 'running')
    ORDER BY j.every_ms = of_every_ms DESC, j.job LIMIT 1), about)
$$;

CREATE TABLE IF NOT EXISTS SCHEMA.fleet_runs (
  job        BIGINT NOT NULL REFERENCES SCHEMA.fleet_jobs (job) ON DELETE CASCADE,
  run        BIGINT NOT NULL,
  experiment TEXT NOT NULL,
  ended      TIMESTAMPTZ NOT NULL DEFAULT now(),
  PRIMARY KEY (job, run)
);

-- An agent says that it is there; gives this clock, µs since 1970. One that begins has none of the jobs that it had before.
CREATE OR REPLACE FUNCTION SCHEMA.fleet_hello(own_version TEXT, own_unix_us BIGINT, own_rtt_us BIGINT, own_outbox BIGINT, begins BOOLEAN)
RETURNS BIGINT LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
DECLARE
  here BIGINT := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
  UPDATE fleet_agents SET seen = clock_timestamp(), version = left(own_version, 100), rtt_us = own_rtt_us,
    skew_us = own_unix_us + own_rtt_us / 2 - here, outbox = own_outbox WHERE agent = session_user;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no agent is called %: windtunnel fleet add makes it one', session_user USING ERRCODE = 'invalid_authorization_specification';
  END IF;
  IF begins THEN
    UPDATE fleet_jobs SET until = clock_timestamp() WHERE agent = session_user AND state = 'running' AND until > clock_timestamp();
  END IF;
  RETURN here;
END
$$;

-- The next job of whoever asks, for so long unless it is kept.
CREATE OR REPLACE FUNCTION SCHEMA.fleet_next(lease_ms BIGINT)
RETURNS TABLE (own_job BIGINT, own_token BIGINT, own_mesh TEXT, own_target TEXT, own_spec TEXT, own_links TEXT[], own_run BIGINT)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
DECLARE
  at TIMESTAMPTZ := clock_timestamp();
BEGIN
  IF lease_ms NOT BETWEEN 100 AND 600000 THEN
    RAISE EXCEPTION 'a job is taken for 100 ms to 10 minutes' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN QUERY UPDATE fleet_jobs j SET state = 'running', token = (random() * 9007199254740991)::bigint,
      until = at + lease_ms * interval '1 millisecond', changed = at, reason = ''
    WHERE j.job = (SELECT k.job FROM fleet_jobs k WHERE k.agent = session_user
      AND (k.state = 'waiting' AND k.next <= at OR k.state = 'running' AND k.until <= at)
      ORDER BY k.next, k.job LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING j.job, j.token, j.mesh, j.target, j.spec, j.links, j.run;
END
$$;

-- Keeps a job for so long from now on; false if it was stopped or went to somebody else.
CREATE OR REPLACE FUNCTION SCHEMA.fleet_keep(own_job BIGINT, own_token BIGINT, lease_ms BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
BEGIN
  IF lease_ms NOT BETWEEN 100 AND 600000 THEN
    RAISE EXCEPTION 'a job is taken for 100 ms to 10 minutes' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  UPDATE fleet_jobs j SET until = clock_timestamp() + lease_ms * interval '1 millisecond'
    WHERE j.job = own_job AND j.token = own_token AND j.agent = session_user AND j.state = 'running';
  RETURN FOUND;
END
$$;

-- What came of a job: 'done' with its experiment, 'refused' or 'failed' with the reason, or 'later' with the reason and after how
-- long. False if somebody else has it, or it was stopped: nothing is written but the experiment.
CREATE OR REPLACE FUNCTION SCHEMA.fleet_end(own_job BIGINT, own_token BIGINT, outcome TEXT, why TEXT, own_experiment TEXT, later_ms BIGINT)
RETURNS BOOLEAN LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
DECLARE
  at TIMESTAMPTZ := clock_timestamp();
  own fleet_jobs%ROWTYPE;
  later_period TIMESTAMPTZ;
BEGIN
  SELECT * INTO own FROM fleet_jobs j WHERE j.job = own_job AND j.token = own_token AND j.agent = session_user FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF own_experiment IS NOT NULL AND EXISTS (SELECT FROM experiments e WHERE e.id = own_experiment AND e.site = session_user) THEN
    INSERT INTO fleet_runs AS r (job, run, experiment) VALUES (own.job, own.run, own_experiment)
      ON CONFLICT (job, run) DO UPDATE SET experiment = excluded.experiment, ended = now();
  END IF;
  IF own.state <> 'running' THEN
    RETURN false;
  END IF;
  IF outcome = 'later' THEN
    UPDATE fleet_jobs j SET state = 'waiting', token = NULL, reason = left(why, 500), changed = at,
      next = at + greatest(later_ms, 0) * interval '1 millisecond' WHERE j.job = own.job;
  ELSIF outcome = 'refused' OR own.every_ms IS NULL THEN
    UPDATE fleet_jobs j SET state = outcome, token = NULL, reason = left(why, 500), changed = at WHERE j.job = own.job;
  ELSE
    -- Again at a random time of the next period; periods that went by without us are left out.
    later_period := greatest(own.period, date_bin(own.every_ms * interval '1 millisecond', at,
      coalesce(own.period, timestamptz '2000-01-01 00:00:00+00'))) + own.every_ms * interval '1 millisecond';
    UPDATE fleet_jobs j SET state = 'waiting', token = NULL, reason = left(why, 500), changed = at, run = j.run + 1,
      period = later_period, next = later_period + random() * j.spread_ms * interval '1 millisecond' WHERE j.job = own.job;
  END IF;
  RETURN true;
END
$$;

-- Writes down an experiment of whoever asks, or finds it; gives its trials that are here already.
CREATE OR REPLACE FUNCTION SCHEMA.fleet_push_begin(own_id TEXT, target TEXT, tunnel TEXT, started_us BIGINT, comment TEXT, version TEXT,
  current TEXT, config TEXT, seed BIGINT, path TEXT, owner_pid BIGINT, owner_start BIGINT, owner_boot TEXT, kind TEXT, workload TEXT,
  arm_labels TEXT[], arm_settings TEXT[])
RETURNS TABLE (number BIGINT, began BIGINT, moved BIGINT)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
#variable_conflict use_column
DECLARE
  own experiments%ROWTYPE;
BEGIN
  IF NOT EXISTS (SELECT FROM fleet_agents WHERE agent = session_user) THEN
    RAISE EXCEPTION 'no agent is called %', session_user USING ERRCODE = 'invalid_authorization_specification';
  END IF;
  INSERT INTO experiments (id, site, target, tunnel, state, started_us, comment, version, current, config, seed, path, owner_pid,
      owner_start, owner_boot, kind, workload)
    VALUES ($1, session_user, $2, $3, 'running', $4, $5, $6, $7::json, $8::json, $9, $10::json, $11, $12, $13, $14, $15)
    ON CONFLICT (id) DO NOTHING RETURNING * INTO own;
  IF FOUND THEN
    INSERT INTO arms (experiment, arm, label, settings)
      SELECT own.key, a.n - 1, a.label, a.settings::json FROM unnest($16, $17) WITH ORDINALITY AS a (label, settings, n);
    RETURN;
  END IF;
  SELECT * INTO own FROM experiments e WHERE e.id = $1 FOR UPDATE;
  IF own.site <> session_user OR own.started_us <> $4 OR own.target <> $2 OR own.seed <> $9 THEN
    RAISE EXCEPTION 'there is another one of that name there' USING ERRCODE = 'unique_violation';
  END IF;
  RETURN QUERY SELECT t.local_id, t.started_us, t.bytes FROM trials t WHERE t.experiment = own.key ORDER BY t.local_id;
END
$$;

-- Writes those of an experiment's trials that aren't here yet, as wholes; gives how many.
CREATE OR REPLACE FUNCTION SCHEMA.fleet_push_trials(own_id TEXT, numbers BIGINT[], phases TEXT[], rounds BIGINT[], ords BIGINT[],
  arm_numbers BIGINT[], statuses TEXT[], starts BIGINT[], times BIGINT[], sizes BIGINT[], askeds TEXT[], workloads TEXT[],
  deadlines BIGINT[], seeds BIGINT[], granteds TEXT[], scopes_of TEXT[], observeds TEXT[], busys BIGINT[], rwnds BIGINT[],
  sndbufs BIGINT[], notes_of TEXT[], scores FLOAT8[], measured TEXT[], senders BYTEA[], receivers BYTEA[])
RETURNS BIGINT LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
DECLARE
  own BIGINT;
  new_trials BIGINT;
BEGIN
  SELECT e.key INTO own FROM experiments e WHERE e.id = own_id AND e.site = session_user FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no experiment of yours has that name' USING ERRCODE = 'no_data_found';
  END IF;
  IF EXISTS (SELECT FROM unnest(rounds, ords, arm_numbers) AS g (round, ord, arm)
      WHERE (round BETWEEN 0 AND 4294967295 AND ord BETWEEN 0 AND 4294967295 AND arm >= 0
        AND arm < (SELECT greatest(count(*), 1) FROM arms a WHERE a.experiment = own)) IS NOT TRUE) THEN
    RAISE EXCEPTION 'no trial has such a round, order or settings' USING ERRCODE = 'check_violation';
  END IF;
  WITH given AS MATERIALIZED (
    SELECT * FROM unnest(numbers, phases, rounds, ords, arm_numbers, statuses, starts, times, sizes, askeds, workloads, deadlines, seeds,
      granteds, scopes_of, observeds, busys, rwnds, sndbufs, notes_of, scores, measured, senders, receivers)
      AS g (number, phase, round, ord, arm, status, started, took, size, asked, workload, deadline, seed, granted, scopes, observed,
        busy, rwnd, sndbuf, notes, score, data, sender, receiver)
  ), written AS (
    INSERT INTO trials (experiment, local_id, phase, round, ord, arm, status, started_us, elapsed_us, bytes)
      SELECT own, number, phase, round, ord, arm, status, started, took, size FROM given ORDER BY number
      ON CONFLICT (experiment, local_id) DO NOTHING RETURNING local_id, id
  ), both_of AS MATERIALIZED (
    SELECT w.id AS trial, g.* FROM written w JOIN given g ON g.number = w.local_id
  ), d AS (
    INSERT INTO details (trial, asked, workload, deadline_us, seed, granted, scopes, observed, busy_us, rwnd_limited_us,
        sndbuf_limited_us, notes)
      SELECT trial, asked::json, workload::json, deadline, seed, granted::json, scopes::json, observed::json, busy, rwnd, sndbuf,
        notes::json FROM both_of
  ), m AS (
    INSERT INTO measures (trial, score, data) SELECT trial, score, data::json FROM both_of WHERE data IS NOT NULL
  ), s AS (
    INSERT INTO samples (trial, side, data) SELECT trial, 'sender', sender FROM both_of WHERE sender IS NOT NULL
      UNION ALL SELECT trial, 'receiver', receiver FROM both_of WHERE receiver IS NOT NULL
  )
  SELECT count(*) INTO new_trials FROM both_of;
  RETURN new_trials;
END
$$;

-- Writes down how an experiment of whoever asks ended, where that isn't known yet; whether it wasn't.
CREATE OR REPLACE FUNCTION SCHEMA.fleet_push_end(own_id TEXT, own_state TEXT, ended BIGINT, own_verdict TEXT, own_kind TEXT,
  own_action TEXT, own_answer TEXT, own_setting TEXT, own_change BIGINT)
RETURNS BOOLEAN LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
BEGIN
  UPDATE experiments e SET state = own_state, ended_us = ended, verdict = own_verdict::json, verdict_kind = own_kind,
    action = own_action, answer = own_answer, setting = own_setting, change_bp = own_change, pushed = now()
    WHERE e.id = own_id AND e.site = session_user AND e.state = 'running' AND own_state <> 'running';
  RETURN FOUND;
END
$$;

REVOKE ALL ON FUNCTION SCHEMA.fleet_period, SCHEMA.fleet_hello, SCHEMA.fleet_next, SCHEMA.fleet_keep, SCHEMA.fleet_end, SCHEMA.fleet_push_begin,
  SCHEMA.fleet_push_trials, SCHEMA.fleet_push_end FROM PUBLIC;
