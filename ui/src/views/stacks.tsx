import { command } from "../keep";
import { Check, Fetched, Section, Table, Text, useGet } from "../parts";
import { useLab } from "../place";
import { useQuery } from "../route";
import type { ListedProfile, StacksList } from "../schema";
import { Compare, names } from "./compare";

/** A documented value, or that there is none. */
function documented(fact: ListedProfile["window"] | ListedProfile["sack"], unit = ""): string {
  if (fact === "unknown") return "not documented";
  const value: unknown = fact.known[0];
  return typeof value === "boolean" ? (value ? "yes" : "no") : `${String(value)}${unit}`;
}

/** The TCP/IP stacks that can be compared over one path. */
export function Stacks() {
  const [list, again] = useGet<StacksList>("stacks");
  return (
    <>
      <h1>TCP/IP stacks</h1>
      <p class="lead">Other programs' TCP, behind the same path of the lab. Looking changes nothing.</p>
      <Fetched of={list} again={again}>
        {({ stacks, profiles }) => (
          <>
            <Section id="stacks" title="Stacks of today">
              <Table
                label="Stacks"
                rows={stacks}
                columns={[
                  { name: "Name", cell: ({ name }) => name },
                  { name: "What it is", cell: ({ title }) => title },
                  {
                    name: "State",
                    cell: ({ built, version, install }) => (
                      <>
                        <span class={`badge ${built ? "good" : ""}`}>{built ? "ready" : "not built"}</span> {built ? version : install}
                      </>
                    ),
                  },
                  { name: "Settings", cell: ({ options }) => (options ? ["rwin", "mss", "mtu", ...options].join(", ") : "–") },
                ]}
              />
            </Section>
            <Section id="profiles" title="Old stacks">
              <p>Another stack with the documented settings stands in for each. What isn't documented stays as that stack has it.</p>
              <Table
                label="Old stacks, one a row"
                rows={profiles}
                columns={[
                  {
                    name: "Name",
                    cell: ({ name, title }) => (
                      <>
                        {name}
                        <span class="sub">{title}</span>
                      </>
                    ),
                  },
                  { name: "Stand-in", cell: ({ stands_on }) => stands_on },
                  { name: "Receive window", cell: ({ window }) => documented(window, " bytes") },
                  { name: "MSS", cell: ({ mss }) => documented(mss, " bytes") },
                  { name: "Delayed ACK", cell: ({ ack_delay_ms }) => documented(ack_delay_ms, " ms") },
                  { name: "SACK", cell: ({ sack }) => documented(sack) },
                  { name: "Window scaling", cell: ({ window_scaling }) => documented(window_scaling) },
                ]}
              />
            </Section>
            <Begin />
          </>
        )}
      </Fetched>
    </>
  );
}

/** Several of them over one path of the lab, in rounds. */
function Begin() {
  const lab = useLab("ethernet-hub");
  const [{ stacks, workloads, rounds, scripts }, set] = useQuery({ stacks: "linux smoltcp", workloads: "transactions download-12mb page", rounds: "", scripts: "" });
  const [which, does] = [names(stacks), names(workloads)];
  const unasked = scripts === "no";
  const request = { ...lab.request, stacks: which, ...(does.length > 0 && { workloads: does }), ...(rounds.trim() && { rounds: Number(rounds) }), no_conformance: unasked };
  const text = command("stacks", "compare", ["--lab", lab.word], ["--stacks", which.join(",")], ["--workloads", does.join(",")], ["--rounds", rounds.trim()], ...(unasked ? ["--no-conformance"] : []));
  return (
    <Compare asked={{ path: "stacks/comparisons", request, complete: which.length > 0, text }} button="Compare stacks">
      <div class="row">
        {lab.field}
        <Text label="Stacks" size="long" value={stacks} set={(stacks) => set({ stacks })} hint="Names from above, with settings if you like: smoltcp:rwin=8KiB:mss=500" />
        <Text label="Workloads" size="long" value={workloads} set={(workloads) => set({ workloads })} placeholder="all of them, and a soak of minutes" hint="What each of them does: transactions, bursts, bulk, download-12mb, page, soak" />
        <Text label="Rounds" value={rounds} set={(rounds) => set({ rounds })} placeholder="as many as a claim needs" />
      </div>
      <Check label="Don't ask by packet scripts what each stack can do" value={unasked} set={(on) => set({ scripts: on ? "no" : "" })} />
    </Compare>
  );
}
