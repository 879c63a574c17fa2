-- What others read of a journal: docs/guide/journal.md promises these names and types. A view names the type of each of its
-- columns by a CAST, since pandas, DuckDB and R ask for it. Nothing is sorted here: that is the reader's choice and its time.
-- JSON that isn't any, which only damage or another program writes, is NULL instead of an error for the whole query.

CREATE VIEW v_trials AS
SELECT
  e.id AS experiment,
  CAST(json_extract(CASE WHEN json_valid(e.config) THEN e.config END, '$.host.name') AS TEXT) AS site,
  e.target AS target,
  e.tunnel AS tunnel,
  t.id AS trial,
  t.phase AS phase,
  t.round AS round,
  t.ord AS ord,
  t.arm AS arm,
  a.label AS label,
  CAST(json_extract(d.workload, '$.kind') AS TEXT) AS workload,
  CAST(json_extract(d.workload, '$.direction') AS TEXT) AS direction,
  t.status AS status,
  CAST(CASE WHEN t.started_us >= 0 THEN strftime('%Y-%m-%dT%H:%M:%S', t.started_us / 1000000, 'unixepoch')
         || printf('.%06dZ', t.started_us % 1000000) END AS TEXT) AS started,
  t.started_us AS started_unix_us,
  CAST(max(t.elapsed_us, 0) / 1e6 AS REAL) AS elapsed_s,
  t.bytes AS bytes,
  CAST(CASE WHEN t.elapsed_us > 0 THEN max(t.bytes, 0) * 8e6 / t.elapsed_us ELSE 0.0 END AS REAL) AS goodput_bps,
  m.score AS score,
  CAST(CASE json_type(d.observed, '$.rtt_us') WHEN 'integer' THEN json_extract(d.observed, '$.rtt_us') END AS INTEGER) AS rtt_us,
  CAST(CASE json_type(d.observed, '$.min_rtt_us') WHEN 'integer' THEN json_extract(d.observed, '$.min_rtt_us') END AS INTEGER) AS min_rtt_us,
  CAST(CASE json_type(d.observed, '$.retransmits') WHEN 'integer' THEN json_extract(d.observed, '$.retransmits') END AS INTEGER) AS retransmits,
  CAST(json_extract(d.asked, '$.rwin') AS TEXT) AS asked_rwin,
  CAST(json_extract(d.asked, '$.mtu') AS TEXT) AS asked_mtu,
  CAST(json_extract(d.asked, '$.cc') AS TEXT) AS asked_cc,
  CAST(json_extract(d.asked, '$.mss') AS TEXT) AS asked_mss,
  CAST(json_extract(d.asked, '$.initcwnd') AS TEXT) AS asked_initcwnd,
  CAST(json_extract(d.asked, '$.initrwnd') AS TEXT) AS asked_initrwnd,
  CAST(json_extract(d.asked, '$.sndbuf') AS TEXT) AS asked_sndbuf,
  CAST(json_extract(d.asked, '$.ttl') AS TEXT) AS asked_ttl,
  CAST(json_extract(d.asked, '$.sack') AS TEXT) AS asked_sack,
  CAST(json_extract(d.asked, '$.timestamps') AS TEXT) AS asked_timestamps,
  CAST(json_extract(d.asked, '$."window-scaling"') AS TEXT) AS asked_window_scaling,
  CAST(json_extract(d.asked, '$.ecn') AS TEXT) AS asked_ecn,
  CAST(json_extract(d.asked, '$."mtu-probing"') AS TEXT) AS asked_mtu_probing,
  CAST(json_extract(d.asked, '$.pmtud') AS TEXT) AS asked_pmtud,
  CAST(CASE json_type(d.granted, '$.rwin') WHEN 'integer' THEN json_extract(d.granted, '$.rwin') END AS INTEGER) AS granted_rwin,
  CAST(CASE json_type(d.granted, '$.mtu') WHEN 'integer' THEN json_extract(d.granted, '$.mtu') END AS INTEGER) AS granted_mtu,
  CAST(json_extract(d.granted, '$.cc') AS TEXT) AS granted_cc,
  CAST(CASE json_type(d.granted, '$.mss') WHEN 'integer' THEN json_extract(d.granted, '$.mss') END AS INTEGER) AS granted_mss,
  CAST(CASE json_type(d.granted, '$.initcwnd') WHEN 'integer' THEN json_extract(d.granted, '$.initcwnd') END AS INTEGER) AS granted_initcwnd,
  CAST(CASE json_type(d.granted, '$.initrwnd') WHEN 'integer' THEN json_extract(d.granted, '$.initrwnd') END AS INTEGER) AS granted_initrwnd,
  CAST(CASE json_type(d.granted, '$.sndbuf') WHEN 'integer' THEN json_extract(d.granted, '$.sndbuf') END AS INTEGER) AS granted_sndbuf,
  CAST(CASE json_type(d.granted, '$.ttl') WHEN 'integer' THEN json_extract(d.granted, '$.ttl') END AS INTEGER) AS granted_ttl,
  CAST(json_extract(d.granted, '$.sack') AS TEXT) AS granted_sack,
  CAST(json_extract(d.granted, '$.timestamps') AS TEXT) AS granted_timestamps,
  CAST(json_extract(d.granted, '$."window-scaling"') AS TEXT) AS granted_window_scaling,
  CAST(json_extract(d.granted, '$.ecn') AS TEXT) AS granted_ecn,
  CAST(json_extract(d.granted, '$."mtu-probing"') AS TEXT) AS granted_mtu_probing,
  CAST(json_extract(d.granted, '$.pmtud') AS TEXT) AS granted_pmtud
FROM trials t
JOIN experiments e ON e.key = t.experiment
LEFT JOIN arms a ON a.experiment = t.experiment AND a.arm = t.arm
LEFT JOIN (
  SELECT
    trial,
    CASE WHEN json_valid(asked) THEN asked END AS asked,
    CASE WHEN json_valid(granted) THEN granted END AS granted,
    CASE WHEN json_valid(observed) THEN observed END AS observed,
    CASE WHEN json_valid(workload) THEN workload END AS workload
  FROM details
) d ON d.trial = t.id
LEFT JOIN measures m ON m.trial = t.id;

CREATE VIEW v_experiments AS
SELECT
  e.id AS id,
  CAST(CASE
    WHEN json_type(e.config, '$.compare') = 'object' THEN 'cc'
    WHEN json_type(e.config, '$.stacks') = 'object' THEN 'stacks'
    WHEN json_type(e.config, '$.test') = 'object' THEN 'test'
    WHEN json_type(e.config, '$.traffic') = 'object' THEN 'traffic'
    WHEN json_type(e.config, '$.flent') = 'text' THEN 'flent'
    WHEN json_type(e.config, '$.screen') = 'object' THEN 'screen'
    ELSE 'tune' END AS TEXT) AS kind,
  CAST(json_extract(e.config, '$.host.name') AS TEXT) AS site,
  CAST(json_extract(e.config, '$.host.kernel') AS TEXT) AS kernel,
  e.target AS target,
  e.tunnel AS tunnel,
  CAST(json_extract(e.config, '$.workload.kind') AS TEXT) AS workload,
  CAST(json_extract(e.config, '$.workload.direction') AS TEXT) AS direction,
  e.state AS state,
  CAST(CASE WHEN e.started_us >= 0 THEN strftime('%Y-%m-%dT%H:%M:%S', e.started_us / 1000000, 'unixepoch')
         || printf('.%06dZ', e.started_us % 1000000) END AS TEXT) AS started,
  e.started_us AS started_unix_us,
  CAST(CASE WHEN e.ended_us >= 0 THEN strftime('%Y-%m-%dT%H:%M:%S', e.ended_us / 1000000, 'unixepoch')
         || printf('.%06dZ', e.ended_us % 1000000) END AS TEXT) AS ended,
  e.ended_us AS ended_unix_us,
  e.comment AS comment,
  e.version AS version,
  CAST((SELECT count(*) FROM trials WHERE experiment = e.key) AS INTEGER) AS trials,
  CAST(CASE json_type(e.path, '$.rtt_us') WHEN 'integer' THEN json_extract(e.path, '$.rtt_us') END AS INTEGER) AS rtt_us,
  CAST(CASE json_type(e.path, '$.pmtu') WHEN 'integer' THEN json_extract(e.path, '$.pmtu') END AS INTEGER) AS pmtu,
  CAST(json_extract(e.verdict, '$.kind') AS TEXT) AS verdict,
  CAST(json_extract(e.verdict, '$.answer.action') AS TEXT) AS action,
  CAST(CASE json_type(e.verdict, '$.arm') WHEN 'integer' THEN json_extract(e.verdict, '$.arm') END AS INTEGER) AS arm,
  CAST(json_extract(e.verdict, '$.label') AS TEXT) AS label,
  CAST(json_extract(e.verdict, '$.answer.setting') AS TEXT) AS setting,
  CAST(CASE WHEN json_type(e.verdict, '$.ratio') IN ('integer', 'real') THEN json_extract(e.verdict, '$.ratio') END AS REAL) AS ratio,
  CAST(CASE WHEN json_type(e.verdict, '$.at_least') IN ('integer', 'real') THEN json_extract(e.verdict, '$.at_least') END AS REAL) AS at_least,
  CAST(CASE WHEN json_type(e.verdict, '$.answer.change_percent') IN ('integer', 'real') THEN json_extract(e.verdict, '$.answer.change_percent') END AS REAL) AS change_percent,
  CAST(CASE WHEN json_type(e.verdict, '$.evidence') IN ('integer', 'real') THEN json_extract(e.verdict, '$.evidence') END AS REAL) AS evidence,
  CAST(CASE WHEN json_type(e.verdict, '$.needed') IN ('integer', 'real') THEN json_extract(e.verdict, '$.needed') END AS REAL) AS needed,
  CAST(CASE WHEN json_type(e.verdict, '$.alpha') IN ('integer', 'real') THEN json_extract(e.verdict, '$.alpha') END AS REAL) AS alpha,
  CAST(coalesce(json_extract(e.verdict, '$.answer.what'), json_extract(e.verdict, '$.headline')) AS TEXT) AS answer
FROM (
  SELECT
    key, id, target, tunnel, state, started_us, ended_us, comment, version,
    CASE WHEN json_valid(config) THEN config END AS config,
    CASE WHEN json_valid(path) THEN path END AS path,
    CASE WHEN json_valid(verdict) THEN verdict END AS verdict
  FROM experiments
) e;
