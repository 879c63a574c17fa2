import { change, count, evidence, percent, rate } from "./format";
import { AsCommand } from "./keep";
import { Figure, Section, Table } from "./parts";
import type { TrafficEffect as Effect, TrafficReport as Report } from "./schema";
import { NEEDED, onLine, Strips } from "./strips";

const UNITS: Record<Report["unit"], string> = { prefix: "networks of clients × epochs", connection: "connections", slot: "blocks of slots" };
const COINS: Record<Report["unit"], string> = { prefix: "a network of clients, for an epoch", connection: "a connection", slot: "everybody, for an epoch" };
const GUARDS: Record<string, string> = {
  slower: "Connections are slower",
  retransmissions: "More is retransmitted",
  rtos: "More connections have retransmission timeouts",
  resets: "More connections are reset or time out",
  not_finishing: "More connections don't finish",
};
const CHECKS: Record<string, string> = {
  sample_ratio: "Shares as drawn",
  accounting: "Every connection accounted for",
  largest_prefix: "No client network weighs too much",
  units: "Enough units",
  set_errors: "Settings taken by the kernel",
  compliance: "Settings still there at the end",
  clock: "Long enough for the clock",
  own_cc: "Few sockets with a congestion control of their own",
};

/** A part of all that there are. */
const part = (some: number, all: number): string => (all > 0 ? percent(some / all) : "–");
const ms = (value: number): string => (Math.abs(value) < 0.95 && value !== 0 ? `${(value * 1e3).toFixed(0)} µs` : `${value.toFixed(Math.abs(value) >= 10 ? 0 : 1)} ms`).replace("-", "−");

/** Time that a connection saves, or that it costs. */
function saved({ saved_ms, saved_low_ms, saved_high_ms }: Effect): string | null {
  if (typeof saved_ms !== "number") return null;
  const sign = saved_ms < 0 ? -1 : 1;
  const ends = typeof saved_low_ms === "number" && typeof saved_high_ms === "number" ? [saved_low_ms * sign, saved_high_ms * sign].sort((a, b) => a - b) : null;
  return `${ms(saved_ms * sign)} ${sign < 0 ? "more" : "less"} per connection${ends ? ` (${ms(ends[0]!)} to ${ms(ends[1]!)})` : ""}`;
}

const interval = ({ low, high }: Effect): string => (typeof low === "number" && typeof high === "number" ? `${change(low)} to ${change(high)}` : "open");

/** What an experiment on a server's own connections shows. */
export function Verdict({ report, running }: { report: Report; running: boolean }) {
  const { verdict, holdback } = report;
  const effect = report.effects.find(({ arm }) => arm === verdict.arm);
  const first = report.arms[0]?.name ?? "the first setting";
  const recorded = report.arms.reduce((sum, arm) => sum + arm.recorded, 0);
  const bad = holdback?.state === "gone" || verdict.kind === "stopped";
  const good = holdback ? holdback.state === "holds" : verdict.kind === "faster";
  return (
    <>
      <Section id="verdict" class={`verdict ${bad ? "bad" : good ? "faster" : ""}`} title={holdback ? holdback.text : verdict.text}>
        <p>
          Evidence {evidence(verdict.evidence)}, {evidence(verdict.needed)} is needed: {count(verdict.blocks ?? effect?.units ?? 0)} {typeof verdict.blocks === "number" ? "blocks of epochs" : UNITS[report.unit]}, {count(recorded)} connections.
        </p>
        {effect && (
          <p>
            {effect.arm}
            {typeof verdict.blocks === "number" && ` beside ${first}`}: goodput {change(effect.ratio)} ({interval(effect)}){saved(effect) && `, ${saved(effect)}`}.
          </p>
        )}
        {report.receiver_settings && <p class="note">{report.receiver_settings.text}</p>}
        {verdict.claim === "everybody" ? (
          <p>Claimed of everybody: whole epochs were compared.</p>
        ) : (
          <p class="note" id="beside">
            <strong>Beside {first} only.</strong> Connections are compared with others that share their path: what one gains there another may lose. If everybody has the setting, it may gain less, or nothing.
          </p>
        )}
      </Section>
      {!!report.next?.length && (
        <Section id="next" title="Next">
          <ol>
            {report.next.map(({ text, command }, place) => (
              <li key={text}>
                {text}
                {command && <AsCommand title={place === 0 ? "What to type on the server" : `What to type on the server for step ${place + 1}`} open={place === 0} text={command} />}
              </li>
            ))}
          </ol>
        </Section>
      )}
      <dl class="figures">
        <Figure name="State">{running ? "under way" : "ended"}</Figure>
        <Figure name="Assigned by">{report.backend}</Figure>
        <Figure name="A coin is thrown for">{COINS[report.unit]}</Figure>
      </dl>
      <Evidence report={report} />
      <Arms report={report} />
      <Effects report={report} first={first} />
      <Classes report={report} />
      <Guardrails report={report} />
      <Section id="checks" title="Self-checks">
        <ul class="findings">
          {report.self_checks.map(({ name, ok, text }) => (
            <li key={name} class={ok ? "" : "error"}>
              <span class={`badge ${ok ? "good" : "bad"}`}>{ok ? "fine" : "wrong"}</span> <strong>{CHECKS[name] ?? name}</strong>: {text}
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}

/** Evidence over what is needed, with one line at 1. */
function Evidence({ report }: { report: Report }) {
  const rows = report.effects.flatMap((effect) =>
    (["faster", "slower"] as const).map((way) => {
      // An older journal doesn't say it of each.
      const needed = effect.needed || report.verdict.needed;
      const value = way === "faster" ? effect.evidence_faster : effect.evidence_slower;
      return { label: `${effect.arm} is ${way}`, running: false, text: `${evidence(value)} of ${evidence(needed)}${value >= needed ? ", shown" : ""}`, bar: onLine(value, needed) };
    }),
  );
  if (rows.length === 0) return null;
  return (
    <Section id="evidence" title="Evidence over what is needed">
      <Strips label={`Evidence over what is needed of ${rows.length} claims; the line is at 1`} rule={NEEDED} rows={rows} ends={["no evidence", "1 is needed"]} />
      <p class="quiet">Once its bar reaches the line at 1 a claim is shown, however often you look. The scale is logarithmic and begins at evidence of 1 : 1, which is none.</p>
    </Section>
  );
}

function Arms({ report }: { report: Report }) {
  const all = report.arms.reduce((sum, arm) => sum + arm.assigned, 0);
  return (
    <Section id="arms" title="Settings">
      <Table
        label="Connections by setting"
        rows={report.arms}
        columns={[
          { name: "Setting", cell: ({ name }) => name },
          {
            name: "Assigned",
            cell: ({ assigned }) => (
              <>
                {count(assigned)}
                <span class="sub">{part(assigned, all)}</span>
              </>
            ),
          },
          {
            name: "Recorded",
            cell: ({ recorded, open }) => (
              <>
                {count(recorded)}
                {open > 0 && <span class="sub">{count(open)} open</span>}
              </>
            ),
          },
          { name: "Missed", cell: ({ missed }) => count(missed), class: ({ missed }) => (missed > 0 ? "changed" : "") },
          {
            name: "Compliance",
            cell: ({ not_compliant, recorded, set_errors }) => (
              <>
                {part(recorded - not_compliant, recorded)}
                {set_errors > 0 && <span class="sub">{count(set_errors)} refused by the kernel</span>}
              </>
            ),
            class: ({ not_compliant, set_errors }) => (not_compliant + set_errors > 0 ? "changed" : ""),
          },
          { name: "Retransmitted", cell: ({ retransmitted_share }) => percent(retransmitted_share) },
          { name: "RTOs per 1000", cell: ({ rto_per_1000 }) => rto_per_1000?.toFixed(1) ?? "–" },
          { name: "Aborted", cell: ({ aborted_share }) => percent(aborted_share) },
          { name: "Unfinished", cell: ({ unfinished_share }) => percent(unfinished_share) },
        ]}
      />
    </Section>
  );
}

function Effects({ report, first }: { report: Report; first: string }) {
  if (report.effects.length === 0) return null;
  const mixed = report.effects.some(({ total_ratio }) => typeof total_ratio === "number");
  return (
    <Section id="effects" title={`Against ${first}`}>
      <Table
        label="Effects"
        rows={report.effects}
        columns={[
          { name: "Setting", cell: ({ arm }) => arm },
          { name: "Goodput", cell: ({ ratio }) => change(ratio) },
          { name: "Interval", cell: interval },
          { name: "Time", cell: (effect) => saved(effect) ?? "–" },
          { name: "By ranks", cell: ({ evidence_better_rank, evidence_worse_rank }) => `better ${evidence(evidence_better_rank)}, worse ${evidence(evidence_worse_rank)}` },
          { name: "Units", cell: ({ units }) => count(units) },
          ...(mixed
            ? [
                { name: "If everybody has it", cell: ({ total_ratio }: Effect) => change(total_ratio) },
                { name: "Those without it, beside it", cell: ({ spillover_ratio }: Effect) => change(spillover_ratio) },
              ]
            : []),
        ]}
      />
    </Section>
  );
}

function Classes({ report }: { report: Report }) {
  if (report.classes.length === 0) return null;
  return (
    <Section id="classes" title="By size">
      <Table
        label="Connections by size"
        rows={report.classes}
        columns={[
          { name: "Bytes", cell: ({ name }) => name },
          ...report.arms.map((arm, place) => ({
            name: arm.name,
            cell: ({ arms }: Report["classes"][number]) => {
              const one = arms[place];
              if (!one) return "–";
              return (
                <>
                  {rate(one.goodput_bps)}
                  <span class="sub">
                    {count(one.connections)} connections, {percent(one.share)}
                    {typeof one.p90_ms === "number" && `; nine of ten within ${ms(one.p90_ms)}`}
                  </span>
                </>
              );
            },
          })),
        ]}
      />
      <p class="quiet">Sizes can depend on the settings: compare the shares, too.</p>
    </Section>
  );
}

function Guardrails({ report }: { report: Report }) {
  if (report.guardrails.length === 0) return null;
  return (
    <Section id="guardrails" title="Guardrails">
      <Table
        label="Guardrails"
        rows={report.guardrails}
        columns={[
          { name: "Guard", cell: ({ guard }) => GUARDS[guard] ?? guard },
          { name: "Setting", cell: ({ arm }) => arm },
          { name: "Evidence", cell: (guard) => `${evidence(guard.evidence)} of ${evidence(guard.needed)}` },
          { name: "State", cell: ({ stopped }) => <span class={`badge ${stopped ? "bad" : "good"}`}>{stopped ? "has stopped it" : "quiet"}</span> },
        ]}
      />
    </Section>
  );
}
