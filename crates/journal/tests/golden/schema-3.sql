-- What came with sightings: the real path with a model, screens, stacks with packet scripts, flent's tests.
INSERT INTO experiments VALUES (4, '20261122-010000-host-0004', 'http://host/', 'live', 'aborted', 1795309200000000, 1795309212000000, '', '0.1.0', '{}',
  '{"alpha":0.05,"command":"windtunnel tune http://host/","confirms":"20261122-005000-host-0001","continues":"20261121-160000-adsl-0002","cool_down_us":1000000,"hold":{"sack":"off"},"host":{"kernel":"6.1.0","name":"host"},"identical":true,"indifference":0.05,"lab":null,"live":{"address":"2001:db8::1","ca":null,"length":3000000,"loss":0.001,"rate_bps":null,"targets":["http://host/"]},"max_trials":40,"model":{"arms":[{"expected_gain":1.5,"left_out":false,"settings":{"rwin":65536},"weight":1.0}],"known_error":null},"per_trial_us":3170000,"plateau":{"epsilon":0.05,"knob":"rwin","levels":[1,2,0],"strict":true},"weights":[1.0,2.5],"workload":{"amount":{"size":"3000000B"},"direction":"up","kind":"bulk"}}',
  7, '{"rtt_us":31000,"pmtu":1492,"bdp_bytes":26000,"physical_goodput_bps":null}', NULL, 7, 99, 'boot');
INSERT INTO experiments VALUES (5, '20261122-010100-adsl-0005', 'adsl', 'lab', 'finished', 1795309260000000, 1795309272000000, '', '0.1.0', '{}',
  '{"command":"windtunnel stacks compare","lab":"adsl","stacks":{"arms":[["linux",null],["smoltcp:cc=reno",8192]],"conformance":[null,{"sack":"yes"}],"workloads":[{"amount":{"size":"1000000B"},"direction":"down","kind":"bulk"}]}}',
  7, '{"rtt_us":31000,"pmtu":1492,"bdp_bytes":26000,"physical_goodput_bps":null}', NULL, 7, 99, 'boot');
INSERT INTO experiments VALUES (6, '20261122-010200-adsl-0006', 'adsl', 'lab', 'finished', 1795309320000000, 1795309332000000, '', '0.1.0', '{}',
  '{"alpha":0.05,"lab":"adsl","screen":{"factors":[{"high":65536,"knob":"rwin","low":4096},{"high":"off","knob":"sack","low":"on"}],"rounds":10}}',
  7, '{"rtt_us":31000,"pmtu":1492,"bdp_bytes":26000,"physical_goodput_bps":null}', NULL, 7, 99, 'boot');
INSERT INTO experiments VALUES (7, '20261122-010300-host-0007', 'host', 'live', 'finished', 1795309380000000, 1795309392000000, '', 'flent 2.1', '{}', '{"flent":"rrul"}',
  0, '{"rtt_us":31000,"pmtu":0,"bdp_bytes":0,"physical_goodput_bps":null}', NULL, 0, 0, '');
INSERT INTO experiments VALUES (8, '20261122-010400-host-0008', 'host', 'live', 'finished', 1795309440000000, 1795309452000000, '', '9.9.9', '{}', '{"format":2,"tune":{"alpha":0.05}}',
  0, '{"rtt_us":31000,"pmtu":0,"bdp_bytes":0,"physical_goodput_bps":null}', NULL, 0, 0, '');
INSERT INTO experiments VALUES (9, '20261122-010500-host-0009', 'host', 'sim', 'finished', 1795309500000000, 1795309512000000, '', '', '{}', 'null',
  0, '{"rtt_us":31000,"pmtu":0,"bdp_bytes":0,"physical_goodput_bps":null}', NULL, 0, 0, '');
INSERT INTO sightings VALUES (1, 'first-window', 'host', 1795309200000000, '{"segments":10}');
