-- What came with the views, which need no rows: a verdict with its answer, several settings at once, a trial under way.
INSERT INTO experiments VALUES (10, '20261124-040000-host-0010', 'wt://host', 'live', 'finished', 1795492800000000, 1795492860500000, 'evening', '0.1.0',
  '{"rwin":"auto","mtu":1500,"cc":"cubic"}',
  '{"alpha":0.05,"command":"windtunnel tune wt://host","host":{"kernel":"6.1.0","name":"cellar"},"indifference":0.05,"order_seed":11,"workload":{"amount":{"time":"3s"},"direction":"up","kind":"bulk"}}',
  7, '{"rtt_us":31000,"pmtu":1492,"bdp_bytes":26000,"physical_goodput_bps":null}',
  '{"alpha":0.05,"answer":{"action":"set","change_percent":14.2,"setting":"rwin=65536 cc=bbr","what":"Set rwin=65536 cc=bbr."},"arm":1,"at_least":1.08,"evidence":181.5,"headline":"rwin=65536 cc=bbr is faster.","kind":"faster","label":"rwin=65536 cc=bbr","needed":20.0,"ratio":1.142,"text":"rwin=65536 cc=bbr is faster."}',
  7, 99, 'boot');
INSERT INTO arms VALUES (10, 0, 'current', '{}'), (10, 1, 'rwin=65536 cc=bbr', '{"rwin":65536,"cc":"bbr"}');
INSERT INTO trials VALUES (4, 10, 'pilot', 0, 0, 0, 'completed', 1795492800000000, 1500000, 1200000),
  (5, 10, 'round', 1, 1, 1, 'completed', 1795492810000007, 3000001, 2800000),
  (6, 10, 'round', 1, 2, 0, 'running', 1795492820000000, 0, 0);
INSERT INTO details VALUES
  (4, '{}', '{"kind":"bulk","direction":"up","amount":{"time":"1.5s"}}', 9000000, 1, '{}', '{}', '{"min_rtt_us":30900,"retransmits":2,"rtt_us":52000}', 0, 0, 0, '[]'),
  (5, '{"rwin":"4x","cc":"bbr","window-scaling":"off"}', '{"kind":"bulk","direction":"up","amount":{"time":"3s"}}', 9000000, 1,
   '{"rwin":65536,"cc":"bbr","window-scaling":"off"}', '{"rwin":"socket","cc":"socket"}', '{"min_rtt_us":30800,"retransmits":0,"rtt_us":41000}', 0, 0, 0, '[]'),
  (6, '{}', '{"kind":"bulk","direction":"up","amount":{"time":"3s"}}', 9000000, 1, '{}', '{}', '{}', 0, 0, 0, '[]');
