-- Turns on what hosts share. Made anew by every program that is newer; SCHEMA is replaced by the schema that it goes into.

CREATE TABLE IF NOT EXISTS SCHEMA.turns (
  ticket  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent   TEXT NOT NULL,            -- the role that asked
  alone   TEXT[] NOT NULL,          -- what nobody else may have meanwhile
  shared  TEXT[] NOT NULL,          -- what others may have too, but nobody alone
  asked   TIMESTAMPTZ NOT NULL,
  granted TIMESTAMPTZ,
  until   TIMESTAMPTZ NOT NULL      -- the end of the lease; of one that waits, when it counts as gone
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The mean time that turns waited, of the last twenty or so.
CREATE TABLE IF NOT EXISTS SCHEMA.turn_waits (one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one), mean INTERVAL NOT NULL)
  WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
INSERT INTO SCHEMA.turn_waits (mean) VALUES (interval '0') ON CONFLICT DO NOTHING;

-- Asks for a turn, or again with the ticket that was given. All of what is wanted is granted at once, or nothing. Whoever
-- comes first and fits is served; but a ticket that has waited for longer than three mean waits (and a second) reserves what it
-- wants against all that came after it.
CREATE OR REPLACE FUNCTION SCHEMA.ask_turn(mine BIGINT, want_alone TEXT[], want_shared TEXT[], hold_ms BIGINT, patience_ms BIGINT)
RETURNS TABLE (own_ticket BIGINT, is_granted BOOLEAN, place BIGINT)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
DECLARE
  at TIMESTAMPTZ;
  own turns%ROWTYPE;
  aged INTERVAL;
  ahead BIGINT;
BEGIN
  IF cardinality(want_alone) + cardinality(want_shared) NOT BETWEEN 1 AND 64 THEN
    RAISE EXCEPTION 'a turn is on 1 to 64 things' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF hold_ms NOT BETWEEN 10 AND 600000 OR patience_ms NOT BETWEEN 10 AND 600000 THEN
    RAISE EXCEPTION 'a turn and patience take 10 ms to 10 minutes' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM pg_advisory_xact_lock(1467248236, 1);
  -- Only this clock counts, and only from here on: who waits for the lock loses nothing.
  at := clock_timestamp();
  DELETE FROM turns t WHERE t.until <= at;
  SELECT * INTO own FROM turns t WHERE t.ticket = mine AND t.agent = session_user;
  IF NOT FOUND THEN
    INSERT INTO turns (agent, alone, shared, asked, until)
      VALUES (session_user, want_alone, want_shared, at, at + patience_ms * interval '1 millisecond') RETURNING * INTO own;
  END IF;
  IF own.granted IS NULL THEN
    SELECT greatest(least(3 * w.mean, interval '10 seconds'), interval '1 second') INTO aged FROM turn_waits w;
    SELECT count(*) INTO ahead FROM turns t
      WHERE t.ticket <> own.ticket
        AND (t.granted IS NOT NULL OR (t.ticket < own.ticket AND at - t.asked > aged))
        AND (t.alone && own.alone OR t.alone && own.shared OR t.shared && own.alone);
    IF ahead > 0 THEN
      UPDATE turns t SET until = at + patience_ms * interval '1 millisecond' WHERE t.ticket = own.ticket;
      RETURN QUERY SELECT own.ticket, false, ahead;
      RETURN;
    END IF;
    UPDATE turn_waits w SET mean = w.mean * 0.95 + (at - own.asked) * 0.05;
  END IF;
  -- Granted now, or before and the answer was lost.
  UPDATE turns t SET granted = coalesce(t.granted, at), until = at + hold_ms * interval '1 millisecond'
    WHERE t.ticket = own.ticket;
  RETURN QUERY SELECT own.ticket, true, 0::bigint;
END
$$;

-- Keeps a turn for so long from now on; false if it is over.
CREATE OR REPLACE FUNCTION SCHEMA.keep_turn(mine BIGINT, hold_ms BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
BEGIN
  IF hold_ms NOT BETWEEN 10 AND 600000 THEN
    RAISE EXCEPTION 'a turn takes 10 ms to 10 minutes' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  UPDATE turns t SET until = clock_timestamp() + hold_ms * interval '1 millisecond'
    WHERE t.ticket = mine AND t.agent = session_user AND t.granted IS NOT NULL AND t.until > clock_timestamp();
  RETURN FOUND;
END
$$;

-- Gives a turn back, or a ticket; false if it was over already, so that another one may have had it.
CREATE OR REPLACE FUNCTION SCHEMA.end_turn(mine BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
DECLARE
  held BOOLEAN;
BEGIN
  DELETE FROM turns t WHERE t.ticket = mine AND t.agent = session_user
    RETURNING t.granted IS NOT NULL AND t.until > clock_timestamp() INTO held;
  RETURN coalesce(held, false);
END
$$;

REVOKE ALL ON FUNCTION SCHEMA.ask_turn, SCHEMA.keep_turn, SCHEMA.end_turn FROM PUBLIC;
