import { rate } from "./format";
import { Figure, Section, Table } from "./parts";

/** Rounds of congestion controls: the part of `windtunnel cc compare --json` that is shown. */
export interface Controls {
  lab: string;
  trial_s: number;
  path: { base_rtt_us: number; capacity_bps: number | null };
  verdict: { difference_shown: boolean; text: string };
  algorithms: {
    name: string;
    variant: string;
    goodput_kBps: { mean: number | null; runs: number[] };
    against_first: { ratio: number; low: number; high: number } | null;
    t90_s: number | null;
    recovery_s: number | null;
    p95_queue_ms: number | null;
    retransmit_share: number | null;
    invalid_trials: number;
    failed_trials?: number;
  }[];
}

/** Rounds of TCP/IP stacks: the part of `windtunnel stacks compare --json` that is shown. */
export interface Stacks {
  lab: string;
  path: { base_rtt_us: number; capacity_bps: number | null };
  stacks: { name: string; version: string | null; integrity: string; findings: unknown[]; failures: unknown[] }[];
  verdicts: { workload: string; a: string; b: string; kind: string; rounds: number; ratio: number | null; low: number | null; high: number | null; text: string }[];
}

export const isControls = (report: object): report is Controls => "algorithms" in report && "verdict" in report;
export const isStacks = (report: object): report is Stacks => "stacks" in report && "verdicts" in report;

/** As a sentence begins. */
const sentence = (text: string): string => text.replace(/^no /, "No ");
const maybe = (value: number | null, say: (value: number) => string): string => (value === null ? "–" : say(value));
const percent = (share: number): string => `${(share * 100).toFixed(share < 0.01 ? 2 : 1)} %`;
/** How much of the other's, with its interval. */
const times = (of: { ratio: number | null; low: number | null; high: number | null }): string =>
  of.ratio === null ? "–" : `×${of.ratio.toFixed(2)} (${maybe(of.low, (low) => low.toFixed(2))} to ${maybe(of.high, (high) => high.toFixed(2))})`;

function Line({ of }: { of: { lab: string; path: { base_rtt_us: number; capacity_bps: number | null } } }) {
  return (
    <dl class="figures">
      <Figure name="Path">{of.lab}</Figure>
      <Figure name="RTT without a queue">{(of.path.base_rtt_us / 1e3).toFixed(1)} ms</Figure>
      <Figure name="Carries at most">{rate(of.path.capacity_bps)}</Figure>
    </dl>
  );
}

/** Congestion controls side by side. */
export function ComparedControls({ report }: { report: Controls }) {
  const first = report.algorithms[0]?.name ?? "the first";
  return (
    <>
      <Section id="answer" class={`verdict ${report.verdict.difference_shown ? "faster" : ""}`} title={report.verdict.difference_shown ? "A difference is shown" : "No difference is shown"}>
        <p>{sentence(report.verdict.text)}</p>
        <Line of={report} />
      </Section>
      <Section id="settings" title="Congestion controls">
        <Table
          label="Congestion controls that were compared"
          rows={report.algorithms}
          columns={[
            {
              name: "Name",
              cell: ({ name, variant }) => (
                <>
                  {name}
                  <span class="sub">{variant}</span>
                </>
              ),
            },
            { name: "Goodput", cell: ({ goodput_kBps: { mean } }) => (mean === null ? "–" : rate(mean * 8000)) },
            { name: `Against ${first}`, cell: ({ against_first }) => (against_first ? times(against_first) : "–") },
            { name: "Up to speed after", cell: ({ t90_s }) => maybe(t90_s, (s) => `${s.toFixed(2)} s`) },
            { name: "Recovers in", cell: ({ recovery_s }) => maybe(recovery_s, (s) => `${(s * 1e3).toFixed(0)} ms`) },
            { name: "Queueing delay, 95 %", cell: ({ p95_queue_ms }) => maybe(p95_queue_ms, (ms) => `${ms.toFixed(0)} ms`) },
            { name: "Retransmitted", cell: ({ retransmit_share }) => maybe(retransmit_share, percent) },
            { name: "Rounds", cell: ({ goodput_kBps: { runs } }) => runs.length },
          ]}
        />
      </Section>
    </>
  );
}

/** TCP/IP stacks side by side. */
export function ComparedStacks({ report }: { report: Stacks }) {
  const shown = report.verdicts.some(({ kind }) => kind === "faster" || kind === "slower");
  return (
    <>
      <Section id="answer" class={`verdict ${shown ? "faster" : ""}`} title={shown ? "A difference is shown" : "No difference is shown"}>
        <ul>
          {report.verdicts.map(({ text }) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
        <Line of={report} />
      </Section>
      <Section id="settings" title="Stacks">
        <Table
          label="Stacks that were compared"
          rows={report.stacks}
          columns={[
            { name: "Name", cell: ({ name }) => name },
            { name: "Version", cell: ({ version }) => version ?? "–" },
            { name: "Data", cell: ({ integrity }) => <span class={`badge ${integrity === "ok" ? "good" : "bad"}`}>{integrity === "ok" ? "complete" : integrity}</span> },
            { name: "Findings", cell: ({ findings }) => findings.length },
            { name: "Trials that failed", cell: ({ failures }) => failures.length },
          ]}
        />
      </Section>
      {report.verdicts.length > 0 && (
        <Section id="pairs" title="Pair by pair">
          <Table
            label="Pairs"
            rows={report.verdicts}
            columns={[
              { name: "Pair", cell: ({ a, b }) => `${a} against ${b}` },
              { name: "Workload", cell: ({ workload }) => workload },
              { name: "Ratio", cell: times },
              { name: "Rounds", cell: ({ rounds }) => rounds },
            ]}
          />
        </Section>
      )}
    </>
  );
}
