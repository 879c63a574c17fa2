import { AsCommand, command } from "../keep";
import { Choice, Fetched, Section, Table, Text, useGet } from "../parts";
import { useLab } from "../place";
import { useQuery } from "../route";
import type { ControlShown, ControlsList, OwnControl } from "../schema";
import { Compare, names } from "./compare";

/** The name under which one of windtunnel's own is loaded. */
const named = ({ name, variant }: OwnControl, all: OwnControl[]): string => (all.filter((other) => other.name === name).length > 1 ? `${name}@${variant}` : name);

const address = (name: string): string => `/controls/${encodeURIComponent(name)}`;

/** The congestion controls that the kernel has, and windtunnel's own; the part of the address names one of them. */
export function Controls({ part }: { part: string }) {
  const [list, again] = useGet<ControlsList>("cc");
  return (
    <>
      <h1>Congestion controls</h1>
      <p class="lead">What decides how much a sender has in flight. It counts on the host that sends the data. Looking changes nothing.</p>
      {part && <Shown name={part} />}
      <Fetched of={list} again={again}>
        {(list) => (
          <>
            <Section id="in-kernel" title="In the kernel now">
              <Table
                label="Congestion controls in the kernel"
                rows={list.kernel}
                columns={[
                  { name: "Name", cell: ({ name, ours }) => <a href={address(ours ?? name)}>{name}</a> },
                  { name: "Who may choose it", cell: ({ who }) => (who === "everybody" ? "every program" : "programs of root (CAP_NET_ADMIN)") },
                  { name: "State", cell: (one) => <State words={[one.default && "this host's default", one.ours && `windtunnel's ${one.ours}`]} /> },
                ]}
              />
            </Section>
            <Section id="own" title="Windtunnel's own">
              {list.obstacle && <p class="quiet">You can't load them with the rights that this server has: it {list.obstacle}.</p>}
              <Table
                label="Windtunnel's own congestion controls"
                rows={list.ours}
                columns={[
                  {
                    name: "Name",
                    cell: (one) => <a href={address(named(one, list.ours))}>{named(one, list.ours)}</a>,
                  },
                  { name: "What it is", cell: ({ title }) => title },
                  { name: "State", cell: (one) => <State words={[one.loaded && "loaded", one.pinned && "stays loaded", one.boot && "loaded at boot"]} /> },
                ]}
              />
            </Section>
            <AsCommand text="windtunnel cc list" />
            <Begin of={list} />
          </>
        )}
      </Fetched>
    </>
  );
}

/** What happens once in every trial. */
const DISTURBANCES: [string, string][] = [
  ["", "nothing"],
  ["loss", "a packet is lost"],
  ["burst", "ten packets in a row are lost"],
  ["outage", "nothing passes for a second"],
  ["half-rate", "half the rate for a fifth of it"],
  ["rtt-step", "the RTT grows by half"],
  ["flow", "another flow beside it"],
];

/** Several of them over one path of the lab, in rounds. */
function Begin({ of: { kernel, ours } }: { of: ControlsList }) {
  const has = kernel.map(({ name }) => name);
  const first = ["cubic", "bbr"].every((name) => has.includes(name)) ? "cubic bbr" : has.slice(0, 2).join(" ");
  const lab = useLab("adsl");
  const [{ algorithms, rounds, trial, disturb }, set] = useQuery({ algorithms: first, rounds: "", trial: "", disturb: "" });
  const which = names(algorithms);
  const request = { ...lab.request, algorithms: which, ...(rounds.trim() && { rounds: Number(rounds) }), ...(trial.trim() && { trial: trial.trim() }), ...(disturb && { disturb }) };
  const text = command("cc", "compare", ["--lab", lab.word], ["--algorithms", which.join(",")], ["--rounds", rounds.trim()], ["--trial", trial.trim()], ["--disturb", disturb]);
  return (
    <Compare asked={{ path: "cc/comparisons", request, complete: which.length > 0, text }} button="Compare congestion controls">
      <div class="row">
        {lab.field}
        <Text label="Congestion controls" size="long" value={algorithms} set={(algorithms) => set({ algorithms })} hint={`Each against the first. Here: ${[...has, ...ours.map((one) => named(one, ours))].join(", ")}`} />
        <Text label="Rounds" value={rounds} set={(rounds) => set({ rounds })} placeholder="5" hint="Each once a round, in random order" />
        <Text label="Each trial" value={trial} set={(trial) => set({ trial })} placeholder="by the path" hint="10s, 500ms" />
        <Choice label="In every trial" size="long" value={disturb} set={(disturb) => set({ disturb })} options={DISTURBANCES} />
      </div>
    </Compare>
  );
}

function State({ words }: { words: (string | false | null | undefined)[] }) {
  const said = words.filter((word): word is string => Boolean(word));
  if (said.length === 0) return <>–</>;
  return (
    <>
      {said.map((word) => (
        <span key={word} class="badge good">
          {word}
        </span>
      ))}
    </>
  );
}

/** What one does, its parameters, and how it is loaded. */
function Shown({ name }: { name: string }) {
  const [shown, again] = useGet<ControlShown>(`cc/${encodeURIComponent(name)}`);
  return (
    <Fetched of={shown} again={again}>
      {(shown) => (
        <Section id="shown" class="verdict" title={`${name}: ${shown.title}`}>
          <ul>
            {shown.lines.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
          {shown.parameters.length > 0 && (
            <Table
              label={`Parameters of ${name}`}
              rows={shown.parameters}
              columns={[
                { name: "Parameter", cell: ({ name }) => name },
                { name: "Value", class: (one) => (one.value === one.default ? "" : "changed"), cell: ({ value }) => value },
                { name: "Default", cell: (one) => one.default },
                { name: "Allowed", cell: ({ allowed }) => allowed },
                { name: "What it does", cell: ({ help }) => help },
              ]}
            />
          )}
          <p class="quiet">
            Source: {shown.source}. {shown.kernel ? "It is the kernel's own." : `The kernel's name for it: ${shown.kernel_name}.`} {shown.available ? "The kernel has it now." : "The kernel hasn't got it now."}
          </p>
          <AsCommand
            text={
              shown.kernel
                ? `windtunnel cc show ${name}`
                : `windtunnel cc show ${name}\n# While a command runs:\nsudo windtunnel cc load ${name} -- COMMAND\n# Now and at every boot:\nsudo windtunnel cc load ${name} --boot\n# Against others on a path of the lab:\nsudo windtunnel cc compare --lab adsl --algorithms cubic,${name}`
            }
          />
        </Section>
      )}
    </Fetched>
  );
}
