-- What the first version wrote: no measures, no sightings, and a configuration of its first format.
INSERT INTO experiments VALUES (1, '20261121-090500-adsl-0001', 'adsl', 'lab', 'finished', 1795251900000000, 1795251912000000, '', '0.1.0',
  '{"rwin":"auto","mtu":1500,"cc":"cubic"}',
  '{"alpha":0.05,"indifference":0.05,"max_trials":40,"per_trial_us":3170000,"plateau":{"epsilon":0.1,"knob":"rwin","levels":[1,0]},"workload":{"amount":{"time":"3s"},"direction":"down","kind":"bulk"}}',
  7, '{"rtt_us":31000,"pmtu":1492,"bdp_bytes":26000,"physical_goodput_bps":6830000}', '{"kind":"no-difference","text":"No difference shown."}',
  7, 99, 'boot');
INSERT INTO arms VALUES (1, 0, 'current', '{}'), (1, 1, 'rwin=16384', '{"rwin":16384}');
INSERT INTO trials VALUES (1, 1, 'round', 1, 1, 0, 'completed', 1795251900000000, 3000000, 2400000),
  (2, 1, 'round', 1, 2, 1, 'completed', 1795251904000000, 3000000, 1500000);
INSERT INTO details VALUES
  (1, '{}', '{"kind":"bulk","direction":"down","amount":{"time":"3s"}}', 9000000, 1, '{}', '{}',
   '{"cc":"cubic","ecn":false,"late_max_us":90,"losses":0,"min_rtt_us":30100,"mss":1440,"pmtu":1492,"queue_drops":3,"retransmits":3,"rtt_us":90000,"rwin_max":360448,"sack":true,"timestamps":true,"too_big":0,"window_scale":null}',
   3000000, 0, 0, '[]'),
  (2, '{"rwin":16384}', '{"kind":"bulk","direction":"down","amount":{"time":"3s"}}', 9000000, 1, '{"rwin":16384}', '{"rwin":"socket"}',
   '{"mss":1440,"rwin_max":16384}', 3000000, 2900000, 0, '["a note"]');
