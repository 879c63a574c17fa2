import { AsCommand } from "../keep";
import { Fetched, Section, Table, useGet } from "../parts";
import type { ListedProfile, StacksList } from "../schema";

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
                label="Old stacks"
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
            <AsCommand text={`windtunnel stacks list\n# Two of them over one path of the lab:\nwindtunnel stacks compare --lab adsl --stacks linux,smoltcp --workloads bulk`} />
          </>
        )}
      </Fetched>
    </>
  );
}
