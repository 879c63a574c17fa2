import { Figure, Section } from "./parts";
import type { ProveAnswer as Proof } from "./schema";

export const isProof = (report: object): report is Proof => "change" in report && "slower" in report;

const seconds = (time: number | null | undefined): string => (time === null || time === undefined ? "–" : `${time.toFixed(3)} s`);

/** A change that is in force, with and without it: there is nothing to apply. */
export function Proved({ report }: { report: Proof }) {
  return (
    <Section id="answer" class={`verdict ${report.verdict === "faster" ? "faster" : report.slower ? "bad" : ""}`} title={`Proof of change ${report.change}${report.what ? `: ${report.what}` : ""}`}>
      <p>{report.text}</p>
      <dl class="figures">
        <Figure name="Median time without the change">{seconds(report.before_s)}</Figure>
        <Figure name="With it">{seconds(report.after_s)}</Figure>
        <Figure name="Rounds">{report.rounds}</Figure>
        <Figure name="Measured by">{report.by}</Figure>
      </dl>
    </Section>
  );
}
