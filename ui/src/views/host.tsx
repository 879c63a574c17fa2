import { useEffect, useMemo, useState } from "preact/hooks";
import { Change } from "../change";
import { value } from "../format";
import { onChanged } from "../host";
import { Choice, Fetched, Field, Section, Table, useGet } from "../parts";
import type { Adapter, KnobRow as Knob, SettingsReport as HostSettings } from "../schema";

export type { Knob };

/** The settings that people come for; the others are found by searching. */
const MAIN = new Set(
  "mtu mss rwin sndbuf cc initcwnd initrwnd ttl sack timestamps window-scaling ecn mtu-probing pmtud qdisc rmem wmem rmem-max wmem-max".split(" "),
);

/** This host: findings, adapters, every setting with where it comes from. */
export function Host() {
  const [host, again] = useGet<HostSettings>("settings");
  useEffect(() => onChanged(again), []);
  return (
    <>
      <h1>Host</h1>
      <Fetched of={host} again={again}>
        {(host) => (
          <>
            <p class="lead">Linux {host.kernel}. Read just now; nothing is changed by looking. <a href="/controls">Congestion controls</a> have a page of their own.</p>
            <Findings host={host} />
            <Adapters host={host} />
            <Change knobs={host.knobs} />
            <Knobs knobs={host.knobs} />
            <Rest host={host} />
          </>
        )}
      </Fetched>
    </>
  );
}

function Findings({ host }: { host: HostSettings }) {
  return (
    <Section id="findings" title="Findings">
      {host.findings.length === 0 && <p class="quiet">Nothing here stands in TCP's way.</p>}
      <ul class="findings">
        {host.findings.map((finding) => (
          <li key={finding.id} class={finding.severity}>
            <span class="badge">{finding.severity}</span> {finding.text}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Adapters({ host }: { host: HostSettings }) {
  const order = (adapter: Adapter): number => (adapter.name === host.default_adapter ? 0 : adapter.up ? 1 : 2);
  const adapters = [...host.adapters].sort((a, b) => order(a) - order(b));
  return (
    <Section id="adapters" title="Adapters">
      <div class="cards">
        {adapters.map((adapter) => (
          <article class="card" key={adapter.name}>
            <h3>
              {adapter.name} <span class={`badge ${adapter.up ? "good" : ""}`}>{adapter.up ? "up" : "down"}</span>
              {adapter.name === host.default_adapter && <span class="badge">default route</span>}
            </h3>
            <dl>
              <Pair name="MTU" text={`${adapter.mtu} bytes`} />
              <Pair name="Speed" text={adapter.speed_mbps ? `${adapter.speed_mbps} Mbit/s ${adapter.duplex ?? ""}` : null} />
              <Pair name="Driver" text={adapter.driver ?? null} />
              <Pair name="Queueing" text={adapter.qdisc && `${adapter.qdisc}, ${adapter.txqueuelen ?? "?"} packets`} />
              <Pair name="Addresses" text={adapter.addresses.join(", ") || null} />
              <Pair
                name="Offloads"
                text={Object.entries(adapter.offloads ?? {}).filter(([, on]) => on).map(([name]) => name.replace("offload-", "").toUpperCase()).join(", ") || null}
              />
            </dl>
          </article>
        ))}
      </div>
    </Section>
  );
}

function Pair({ name, text }: { name: string; text: string | null }) {
  if (!text) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </>
  );
}

const differs = (knob: Knob): boolean => knob.default !== null && value(knob.default) !== value(knob.value);

/** From where a setting has its value. */
function origin(knob: Knob): string {
  const { kind, file, line } = knob.origin;
  if (file) return `${file}${line ? `:${line}` : ""}`;
  return kind.replaceAll("-", " ");
}

function Knobs({ knobs }: { knobs: Knob[] }) {
  const [search, setSearch] = useState("");
  const [which, setWhich] = useState("main");
  const shown = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    return knobs.filter((knob) => {
      const text = `${knob.key} ${knob.sysctl ?? ""} ${knob.help} ${knob.target ?? ""}`.toLowerCase();
      if (words.length > 0) return words.every((word) => text.includes(word));
      return which === "all" || (which === "main" ? MAIN.has(knob.key) : differs(knob));
    });
  }, [knobs, search, which]);
  return (
    <Section id="knobs" title="Settings">
      <div class="row">
        <Field label="Search">
          <input type="search" value={search} placeholder="tcp_rmem, window" onInput={(event) => setSearch(event.currentTarget.value)} />
        </Field>
        <Choice
          label="Show"
          value={which}
          set={setWhich}
          options={[
            ["main", "the main ones"],
            ["changed", "those unlike the kernel's default"],
            ["all", `all ${knobs.length}`],
          ]}
        />
      </div>
      {shown.length === 0 && <p class="quiet">No setting matches. Search for other words, or show all.</p>}
      {shown.length > 0 && (
        <Table
          label="Settings of this host"
          rows={shown}
          columns={[
            {
              name: "Setting",
              cell: (knob) => (
                <>
                  {knob.key}
                  <span class="sub">{knob.sysctl ?? knob.target ?? knob.scope}</span>
                </>
              ),
            },
            {
              name: "Value",
              class: (knob) => (differs(knob) ? "changed" : ""),
              cell: (knob) => (
                <>
                  {value(knob.value)}
                  {knob.clamped_by && <span class="sub">clamped by {knob.clamped_by}</span>}
                </>
              ),
            },
            { name: "Default", cell: (knob) => value(knob.default) },
            { name: "From", cell: origin },
            { name: "What it is", cell: (knob) => knob.help },
          ]}
        />
      )}
    </Section>
  );
}

function Rest({ host }: { host: HostSettings }) {
  return (
    <>
      <details>
        <summary>Routes ({host.routes.length})</summary>
        <ul class="plain mono">
          {host.routes.map((route, place) => (
            <li key={place}>{route.text}</li>
          ))}
        </ul>
      </details>
      <details>
        <summary>What this kernel can and can't ({host.caveats.length})</summary>
        <ul>
          {host.caveats.map((caveat) => (
            <li key={caveat.id}>{caveat.text}</li>
          ))}
        </ul>
      </details>
    </>
  );
}
