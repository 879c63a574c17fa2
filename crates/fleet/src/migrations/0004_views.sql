-- What others read of a journal: the names and types that docs/guide/journal.md promises, as in SQLite. `site` is the one that pushed
-- it, and `trial` its number there. Nothing is sorted here.

-- JSON without what a text of PostgreSQL can't have: one \u0000 would fail the whole query.
CREATE FUNCTION wt_readable(value JSON) RETURNS JSON LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN strpos(value::text, '\u0000') = 0 THEN value
         ELSE regexp_replace(value::text, '(?<!\\)((?:\\\\)*)\\u0000', '\1', 'g')::json END
$$;

-- A whole number, if it is one.
CREATE FUNCTION wt_integer(value JSON) RETURNS BIGINT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN value::text ~ '^-?[0-9]{1,18}$' THEN (value::text)::bigint END
$$;

-- A number, if it is one.
CREATE FUNCTION wt_number(value JSON) RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN json_typeof(value) = 'number' THEN (value::text)::double precision END
$$;

-- Times are those of UTC with microseconds, of the years that have four digits.
CREATE FUNCTION wt_time(at_us BIGINT) RETURNS TEXT LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN at_us >= 0 AND at_us < 253402300800000000 THEN
    to_char(timestamp '1970-01-01' + (at_us / 1000000) * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS')
    || '.' || lpad((at_us % 1000000)::text, 6, '0') || 'Z' END
$$;

CREATE VIEW v_trials AS
SELECT
  e.id AS experiment,
  e.site AS site,
  e.target AS target,
  e.tunnel AS tunnel,
  t.local_id AS trial,
  t.phase AS phase,
  t.round AS round,
  t.ord AS ord,
  t.arm AS arm,
  a.label AS label,
  d.workload ->> 'kind' AS workload,
  d.workload ->> 'direction' AS direction,
  t.status AS status,
  wt_time(t.started_us) AS started,
  t.started_us AS started_unix_us,
  greatest(t.elapsed_us, 0)::double precision / 1e6::double precision AS elapsed_s,
  t.bytes AS bytes,
  CASE WHEN t.elapsed_us > 0
    THEN greatest(t.bytes, 0)::double precision * 8e6::double precision / t.elapsed_us::double precision
    ELSE 0.0::double precision END AS goodput_bps,
  m.score AS score,
  wt_integer(d.observed -> 'rtt_us') AS rtt_us,
  wt_integer(d.observed -> 'min_rtt_us') AS min_rtt_us,
  wt_integer(d.observed -> 'retransmits') AS retransmits,
  d.asked ->> 'rwin' AS asked_rwin,
  d.asked ->> 'mtu' AS asked_mtu,
  d.asked ->> 'cc' AS asked_cc,
  d.asked ->> 'mss' AS asked_mss,
  d.asked ->> 'initcwnd' AS asked_initcwnd,
  d.asked ->> 'initrwnd' AS asked_initrwnd,
  d.asked ->> 'sndbuf' AS asked_sndbuf,
  d.asked ->> 'ttl' AS asked_ttl,
  d.asked ->> 'sack' AS asked_sack,
  d.asked ->> 'timestamps' AS asked_timestamps,
  d.asked ->> 'window-scaling' AS asked_window_scaling,
  d.asked ->> 'ecn' AS asked_ecn,
  d.asked ->> 'mtu-probing' AS asked_mtu_probing,
  d.asked ->> 'pmtud' AS asked_pmtud,
  wt_integer(d.granted -> 'rwin') AS granted_rwin,
  wt_integer(d.granted -> 'mtu') AS granted_mtu,
  d.granted ->> 'cc' AS granted_cc,
  wt_integer(d.granted -> 'mss') AS granted_mss,
  wt_integer(d.granted -> 'initcwnd') AS granted_initcwnd,
  wt_integer(d.granted -> 'initrwnd') AS granted_initrwnd,
  wt_integer(d.granted -> 'sndbuf') AS granted_sndbuf,
  wt_integer(d.granted -> 'ttl') AS granted_ttl,
  d.granted ->> 'sack' AS granted_sack,
  d.granted ->> 'timestamps' AS granted_timestamps,
  d.granted ->> 'window-scaling' AS granted_window_scaling,
  d.granted ->> 'ecn' AS granted_ecn,
  d.granted ->> 'mtu-probing' AS granted_mtu_probing,
  d.granted ->> 'pmtud' AS granted_pmtud
FROM trials t
JOIN experiments e ON e.key = t.experiment
LEFT JOIN arms a ON a.experiment = t.experiment AND a.arm = t.arm
LEFT JOIN (
  SELECT trial, wt_readable(asked) AS asked, wt_readable(granted) AS granted, wt_readable(observed) AS observed,
    wt_readable(workload) AS workload
  FROM details
) d ON d.trial = t.id
LEFT JOIN measures m ON m.trial = t.id;

CREATE VIEW v_experiments AS
SELECT
  e.id AS id,
  e.kind AS kind,
  e.site AS site,
  e.config #>> '{host,kernel}' AS kernel,
  e.target AS target,
  e.tunnel AS tunnel,
  e.workload AS workload,
  e.config #>> '{workload,direction}' AS direction,
  e.state AS state,
  wt_time(e.started_us) AS started,
  e.started_us AS started_unix_us,
  wt_time(e.ended_us) AS ended,
  e.ended_us AS ended_unix_us,
  e.comment AS comment,
  e.version AS version,
  (SELECT count(*) FROM trials WHERE experiment = e.key) AS trials,
  wt_integer(e.path -> 'rtt_us') AS rtt_us,
  wt_integer(e.path -> 'pmtu') AS pmtu,
  e.verdict_kind AS verdict,
  e.action AS action,
  wt_integer(e.verdict -> 'arm') AS arm,
  e.verdict ->> 'label' AS label,
  e.setting AS setting,
  wt_number(e.verdict -> 'ratio') AS ratio,
  wt_number(e.verdict -> 'at_least') AS at_least,
  wt_number(e.verdict #> '{answer,change_percent}') AS change_percent,
  wt_number(e.verdict -> 'evidence') AS evidence,
  wt_number(e.verdict -> 'needed') AS needed,
  wt_number(e.verdict -> 'alpha') AS alpha,
  e.answer AS answer
FROM (
  SELECT key, id, kind, site, target, tunnel, workload, state, started_us, ended_us, comment, version, verdict_kind, action,
    setting, answer, wt_readable(config) AS config, wt_readable(path) AS path, wt_readable(verdict) AS verdict
  FROM experiments
) e;
