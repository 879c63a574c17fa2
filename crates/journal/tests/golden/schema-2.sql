-- What came with measures: workloads that aren't judged by payload over time, congestion controls and stacks side by side.
INSERT INTO experiments VALUES (2, '20261121-160000-adsl-0002', 'adsl', 'lab', 'stopped', 1795276800000000, 1795276812000000, 'calls', '0.1.0',
  '{"rwin":"auto"}',
  '{"alpha":0.05,"command":"windtunnel tune --lab adsl","cool_down_us":120000,"host":{"kernel":"6.1.0","name":null},"indifference":0.05,"lab":"adsl","max_trials":null,"per_trial_us":3170000,"plateau":null,"workload":{"amount":{"count":40},"kind":"transactions","request":"100B","response":"1000B","think":"0ms"}}',
  7, '{"rtt_us":31000,"pmtu":1492,"bdp_bytes":26000,"physical_goodput_bps":null}', NULL, 7, 99, 'boot');
INSERT INTO arms VALUES (2, 0, 'current', '{}');
INSERT INTO trials VALUES (3, 2, 'round', 1, 1, 0, 'completed', 1795276800000000, 3000000, 40000);
INSERT INTO details VALUES (3, '{}', '{"kind":"transactions","request":"100B","response":"1000B","think":"0ms","amount":{"count":40}}', 9000000, 1,
  '{}', '{}', '{"connect_us":31500,"initial_cwnd":10,"initial_rwnd_bytes":65535,"sender_late_us":4}', 0, 0, 0, '[]');
INSERT INTO measures VALUES (3, 30.5, '{"score":30.5}');
INSERT INTO experiments VALUES (3, '20261121-161000-adsl-0003', 'adsl', 'lab', 'finished', 1795277400000000, 1795277412000000, '', '0.1.0', '{}',
  '{"command":"windtunnel cc compare --lab adsl","compare":{"arms":[["reno","reno","kernel"],["wt_x","reno","beta=0.8"]],"disturbance":{"at_us":500000,"kind":"outage","lasts_us":1000000},"trial_us":1000000},"lab":"adsl"}',
  7, '{"rtt_us":31000,"pmtu":1492,"bdp_bytes":26000,"physical_goodput_bps":null}', NULL, 7, 99, 'boot');
