import { AsCommand } from "../keep";
import { Fetched, Section, Table, useGet } from "../parts";
import type { Check, DoctorAnswer } from "../schema";

/** What works on this machine, and what to do where something doesn't. */
export function Doctor() {
  const [answer, again] = useGet<DoctorAnswer>("doctor");
  return (
    <>
      <h1>Doctor</h1>
      <p class="lead">What works on this machine. Looking changes nothing.</p>
      <Fetched of={answer} again={again}>
        {({ works, checks }) => (
          <>
            <Section id="works" class={`verdict ${works ? "faster" : "bad"}`} title={works ? "The lab works on this machine." : "The lab doesn't work on this machine yet."}>
              <p>{summary(checks)}</p>
            </Section>
            <Section id="checks" title="Everything that was looked at">
              <Table
                label="Checks"
                rows={checks}
                columns={[
                  { name: "What", cell: ({ name }) => name },
                  { name: "Works", cell: (check) => <span class={`badge ${check.ok ? "good" : check.needed ? "bad" : ""}`}>{check.ok ? "works" : check.needed ? "missing" : "missing, optional"}</span> },
                  { name: "Found", cell: ({ found }) => found },
                  { name: "What to do", cell: ({ ok, advice }) => <span class="breaks">{(!ok && advice) || "–"}</span> },
                ]}
              />
            </Section>
            <AsCommand text="windtunnel doctor" />
          </>
        )}
      </Fetched>
    </>
  );
}

function summary(checks: Check[]): string {
  const [missing, optional] = [checks.filter(({ ok, needed }) => !ok && needed), checks.filter(({ ok, needed }) => !ok && !needed)];
  if (missing.length > 0) return `Missing: ${missing.map(({ name }) => name).join(", ")}.`;
  return optional.length > 0 ? `Missing, but only needed for some things: ${optional.map(({ name }) => name).join(", ")}.` : "Nothing is missing.";
}
