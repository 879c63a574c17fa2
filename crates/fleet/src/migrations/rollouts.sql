-- Changes of settings that go through a fleet in waves. Made anew by every program that is newer; SCHEMA is replaced by the schema
-- that it goes into. The owner orders, an agent does and says what came of it; whether it may is its own policy's.

CREATE TABLE IF NOT EXISTS SCHEMA.fleet_rollouts (
  rollout BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name    TEXT NOT NULL UNIQUE,
  spec    TEXT NOT NULL,            -- JSON
  state   TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'undoing', 'undone')),
  reason  TEXT NOT NULL DEFAULT '',
  begun   TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS SCHEMA.fleet_rollout_hosts (
  rollout BIGINT NOT NULL REFERENCES SCHEMA.fleet_rollouts (rollout) ON DELETE CASCADE,
  agent   TEXT NOT NULL REFERENCES SCHEMA.fleet_agents (agent) ON DELETE CASCADE,
  wave    BIGINT NOT NULL,          -- from 1; 1 has the canaries
  ordered TEXT NOT NULL DEFAULT 'nothing' CHECK (ordered IN ('nothing', 'apply', 'confirm', 'undo')),
  asked   TIMESTAMPTZ NOT NULL DEFAULT now(), -- since when that is ordered
  phase   TEXT NOT NULL DEFAULT 'untouched'
          CHECK (phase IN ('untouched', 'applying', 'applied', 'confirmed', 'undone', 'refused', 'failed', 'reverted')),
  since   TIMESTAMPTZ NOT NULL DEFAULT now(), -- since when it is in that phase
  reason  TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (rollout, agent)
);

-- Whether there is something for whoever asks to do.
CREATE OR REPLACE FUNCTION SCHEMA.fleet_rollout_due() RETURNS BOOLEAN
LANGUAGE sql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
  SELECT EXISTS (SELECT FROM fleet_rollout_hosts h WHERE h.agent = session_user
    AND (h.ordered = 'apply' AND h.phase IN ('untouched', 'applying') OR h.ordered = 'confirm' AND h.phase = 'applied'
      OR h.ordered = 'undo' AND h.phase IN ('applying', 'applied', 'confirmed')))
$$;

-- What whoever asks has to do, and what it has under way. An order to apply counts as under way from here on.
CREATE OR REPLACE FUNCTION SCHEMA.fleet_rollout_tasks()
RETURNS TABLE (own_rollout BIGINT, own_name TEXT, own_spec TEXT, own_order TEXT, own_phase TEXT)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
BEGIN
  UPDATE fleet_rollout_hosts h SET phase = 'applying', since = clock_timestamp()
    WHERE h.agent = session_user AND h.ordered = 'apply' AND h.phase = 'untouched';
  RETURN QUERY SELECT r.rollout, r.name, r.spec, h.ordered, h.phase FROM fleet_rollout_hosts h JOIN fleet_rollouts r USING (rollout)
    WHERE h.agent = session_user AND (h.phase IN ('applying', 'applied') OR h.phase = 'confirmed' AND h.ordered = 'undo')
    ORDER BY r.rollout;
END
$$;

-- What came of it; false where that can't have come of it: nobody confirms what isn't ordered to be.
CREATE OR REPLACE FUNCTION SCHEMA.fleet_rollout_said(which BIGINT, new_phase TEXT, why TEXT) RETURNS BOOLEAN
LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
BEGIN
  UPDATE fleet_rollout_hosts h SET phase = new_phase, reason = left(why, 500),
      since = CASE WHEN h.phase = new_phase THEN h.since ELSE clock_timestamp() END
    WHERE h.rollout = which AND h.agent = session_user AND (h.phase = new_phase
      OR h.phase = 'applying' AND new_phase IN ('applied', 'confirmed', 'undone', 'refused', 'failed', 'reverted')
      OR h.phase = 'applied' AND (new_phase IN ('undone', 'failed', 'reverted') OR new_phase = 'confirmed' AND h.ordered IN ('confirm', 'undo'))
      OR h.phase = 'confirmed' AND new_phase = 'undone');
  RETURN FOUND;
END
$$;

-- Which fleet this is: numbers of jobs and changes are its own, and a database that is made anew begins them anew.
CREATE TABLE IF NOT EXISTS SCHEMA.fleet_identity (
  one     BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
  id      TEXT NOT NULL DEFAULT left(replace(gen_random_uuid()::text, '-', ''), 16),
  changes BIGINT NOT NULL           -- agents may know changes up to that number from before fleets had such a name
);
INSERT INTO SCHEMA.fleet_identity (changes) SELECT coalesce(max(rollout), 0) FROM SCHEMA.fleet_rollouts ON CONFLICT DO NOTHING;

CREATE OR REPLACE FUNCTION SCHEMA.fleet_id() RETURNS TABLE (own_id TEXT, own_changes BIGINT)
LANGUAGE sql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
  SELECT id, changes FROM fleet_identity
$$;

REVOKE ALL ON FUNCTION SCHEMA.fleet_rollout_due, SCHEMA.fleet_rollout_tasks, SCHEMA.fleet_rollout_said, SCHEMA.fleet_id FROM PUBLIC;
