// Answers of the API as an experiment on connections and a fleet give them, and an experiment of the README with samples.
import { readFileSync } from "node:fs";

/** A measured experiment as `journal export` writes it, with what TCP could have said of each of its trials every 50 ms. */
export function sampled(name) {
  const whole = JSON.parse(readFileSync(new URL(`../../crates/windtunnel/tests/golden/readme/${name}.json`, import.meta.url), "utf8"));
  for (const { outcome } of whole.trials) {
    const every = Array.from({ length: Math.floor(outcome.elapsed_us / 50_000) }, (_, at) => 50_000 * (at + 1));
    const sample = (t_us) => {
      const share = t_us / outcome.elapsed_us;
      const rate = Math.round((8e6 * outcome.bytes) / outcome.elapsed_us);
      return { t_us, bytes: Math.round(outcome.bytes * share), snd_cwnd: 20_000 + Math.round(40_000 * share), ssthresh: 60_000, rtt: 30_000 + Math.round(50_000 * share), min_rtt: 30_000, retransmits: 0, snd_wnd: 60_480, delivery_rate_bps: rate };
    };
    outcome.sender = every.map(sample);
    outcome.receiver = outcome.sender.map((one) => ({ ...one, snd_cwnd: 0 }));
  }
  return { id: whole.experiment.id, text: JSON.stringify(whole) };
}

export const ID = "20261124-0815-port-443-0123";
const arm = (name, more) => ({ name, settings: { initcwnd: name === "initcwnd=10" ? 10 : 32 }, assigned: 12_000, recorded: 11_900, missed: 0, open: 100, set_errors: 0, not_compliant: 0, retransmitted_share: 0.012, rto_per_1000: 3.4, aborted_share: 0.002, unfinished_share: 0.001, ...more });
const one = (connections, goodput_bps, p90_ms) => ({ connections, share: 0.5, goodput_bps, overall_bps: goodput_bps, p90_ms });
/** What an experiment shows that found a gain. */
export const GAIN = {
  schema_version: 1,
  id: ID,
  unit: "prefix",
  backend: "sockops",
  arms: [arm("initcwnd=10"), arm("initcwnd=32", { assigned: 4000, recorded: 3950, missed: 7, not_compliant: 79, set_errors: 3 })],
  classes: [{ name: "10 kB to 100 kB", arms: [one(6000, 3.1e6, 210), one(2000, 3.7e6, 176)] }],
  effects: [{ arm: "initcwnd=32", ratio: 1.18, low: 1.06, high: 1.32, saved_ms: 31, saved_low_ms: 12, saved_high_ms: 49, evidence_faster: 812, evidence_slower: 0.02, needed: 40, units: 5120, evidence_better_rank: 333, evidence_worse_rank: 0.1, total_ratio: null, spillover_ratio: null }],
  verdict: { kind: "faster", arm: "initcwnd=32", ratio: 1.18, at_least: 1.06, evidence: 812, needed: 40, text: "Connections with initcwnd=32 are faster beside initcwnd=10: goodput +18%.", claim: "beside" },
  guardrails: ["slower", "retransmissions", "rtos", "resets", "not_finishing"].map((guard) => ({ guard, arm: "initcwnd=32", evidence: 0.4, needed: 100, stopped: false })),
  self_checks: [
    { name: "sample_ratio", ok: true, text: "4000 of 16000 connections were expected to be 4012" },
    { name: "accounting", ok: true, text: "every connection is accounted for" },
  ],
  next: [
    { text: "Make it the server's setting; it reverts unless you confirm it.", command: `sudo windtunnel settings apply --verdict ${ID}` },
    { text: "See what it does if everybody has it.", command: "sudo windtunnel traffic start --port 443 --levels initcwnd=10,32 --mixed" },
  ],
};
const job = (agent, target, more) => ({ mesh: "north", agent, target, state: "done", due_s: null, run: 1, reason: "", experiment: `e-${agent}`, verdict: "none", action: "keep", answer: "Keep your settings", setting: null, change_bp: null, age_s: 7300, ...more });
export const FLEET = {
  schema_version: 1,
  server: "postgresql://owner@db.example/windtunnel",
  agents: [
    { agent: "berlin", seen_s: 4, version: "0.1.0", skew_s: -0.25, outbox: 0 },
    { agent: "cologne", seen_s: 5, version: "0.1.0", skew_s: -0.001, outbox: 0 },
    { agent: "bonn", seen_s: 7300, version: "0.1.0", skew_s: null, outbox: 3 },
  ],
  jobs: [
    job("berlin", "wt://speed.example.org", { state: "waiting", due_s: 7400, verdict: "faster", action: "set", setting: "rwin=4MiB", change_bp: 1840 }),
    job("bonn", "wt://speed.example.org", {}),
    job("bonn", "https://mirror.example.net/large.bin", { state: "refused", reason: "mirror.example.net isn't among this host's targets", experiment: null, verdict: null, action: null, age_s: null }),
  ],
  turns: [
    { agent: "berlin", granted: true, alone: ["link:uplink", "host:berlin"], shared: [], since_s: 12 },
    { agent: "bonn", granted: false, alone: ["link:uplink", "host:bonn"], shared: [], since_s: 3 },
  ],
  rollouts: [
    {
      name: "wider",
      state: "undoing",
      reason: "bonn: its guard took it back",
      hosts: [
        { agent: "berlin", wave: 1, ordered: "undo", phase: "confirmed", reason: "" },
        { agent: "bonn", wave: 2, ordered: "apply", phase: "reverted", reason: "the change is reverted here" },
      ],
    },
  ],
};
export const FOUND = { schema_version: 1, kind: "compare", experiments: [], comparable: true, because: [], notes: [], current: [], settings: [{ label: "rwin=4MiB", settings: { rwin: 4194304 }, each: [{}, {}, {}], evidence: 9000, combined: "product", needed: 20, everywhere: 0.7, shown_in: ["e-berlin"], elsewhere: { ratio: 1.12, low: 0.97, high: 1.29, heterogeneity: 0.64 }, gains_differ: true }], text: "" };
