import { useEffect, useMemo, useState } from "preact/hooks";
import { get, post, postForText, remove } from "../api";
import { drawn, keep, type Drawn, type Link, type Way } from "../drawn";
import { mbit, ms, rate, size } from "../format";
import { Choice, Figure, Section, Table, Text, Trouble, useDoing, useGet, useLatest, Wide } from "../parts";
import { Chart } from "../chart";
import { AsCommand, command } from "../keep";
import { rates, windowOf, useAnswer, useLast, useUnderWay, type Columns, type Run } from "../run";
import { Now } from "./experiment";
import type { DrawnPreset, KeptStage, PresetsAnswer as Presets, ScenarioAnswer as Shown } from "../schema";

/** What `lab up --json` prints. */
interface Up {
  path: string;
  backend: string;
  hosts: { name: string; ipv4: string; enter: string }[];
}

const LINK: Link = { name: "link", mtu: 1500, down: { rate: "50mbit", delay: "10ms", queue: "256KiB" }, up: { rate: "10mbit", delay: "10ms", queue: "128KiB" } };
const FIRST: Drawn = {
  title: "My path",
  links: [
    { name: "dsl", mtu: 1492, framing: "pppoe-ptm", down: { rate: "50mbit", delay: "8ms", queue: "256KiB" }, up: { rate: "10mbit", delay: "8ms", queue: "64KiB" } },
    { name: "backbone", mtu: 1500, down: { rate: "1gbit", delay: "12ms", queue: "1MiB", loss: "0.01%" } },
  ],
};

/** What a stage does that can't be edited here. */
const STAGES: Record<string, string> = {
  jitter_model: "Delay that varies",
  loss_model: "Losses that aren't independent",
  loss_by: "Losses by the packet's number",
  outages: "Outages",
  airtime: "Airtime: a shared medium, with retries",
  aqm: "Queue management",
  modem: "A modem",
  half_duplex: "Half duplex: both directions share the line",
  host: "A host of its own behind it",
};

/** What the links keep of shipped paths, by preset. */
function useKept(path: Drawn): Record<string, KeptStage[]> {
  const [kept, setKept] = useState<Record<string, KeptStage[]>>({});
  const names = [...new Set(path.links.flatMap(({ keeps }) => (keeps ? [keeps.preset] : [])))].sort();
  useEffect(() => {
    for (const name of names.filter((name) => !kept[name])) {
      get<DrawnPreset>(`lab/presets/${encodeURIComponent(name)}/drawn`).then(({ kept: stages }) => setKept((kept) => ({ ...kept, [name]: stages })), () => {});
    }
  }, [names.join()]);
  return kept;
}

/** A path drawn from links, started, and used. */
export function Lab() {
  const [path, setPath] = useState<Drawn>(() => drawn() ?? FIRST);
  const [last, setRun] = useLast("lab");
  const set = (path: Drawn): void => {
    keep(path);
    setPath(path);
  };
  return (
    <>
      <h1>Lab</h1>
      <p class="lead">Draw a path from links, start it, and run a workload between two hosts that this machine's own kernel plays. Nothing on this host changes. <a href="/stacks">Other TCP/IP stacks</a> can be compared over such paths.</p>
      <Draw path={path} set={set} start={setRun} />
      {last && <Running key={last.id} run={last} />}
    </>
  );
}

/** The links, what follows from them, and the way to start. */
function Draw({ path, set, start }: { path: Drawn; set: (path: Drawn) => void; start: (run: Run) => void }) {
  const ask = JSON.stringify(path);
  const [shown, problem] = useLatest<Shown>(ask, () => post("lab/paths", path), 250);
  const [busy, failed, doing] = useDoing();
  const [presets] = useGet<Presets>("lab/presets");
  const [toml, setToml] = useState({ text: "", of: "" });
  const kept = useKept(path);
  const change = (place: number, link: Link): void => set({ ...path, links: path.links.map((old, at) => (at === place ? link : old)) });
  const move = (place: number, by: number): void => {
    const links = [...path.links];
    const [link] = links.splice(place, 1);
    if (link) links.splice(place + by, 0, link);
    set({ ...path, links });
  };
  const names = presets.state === "done" ? presets.data.presets.map(({ name, title }): [string, string] => [name, title]) : [];
  return (
    <>
      <div class="row">
        <Choice
          label="Begin with"
          size="long"
          value=""
          set={(name) => name && doing(() => get<DrawnPreset>(`lab/presets/${name}/drawn`).then(({ path }) => set(path as Drawn)))}
          options={[["", "what is drawn below"], ...names]}
        />
        <Text label="Title" size="long" value={path.title ?? ""} set={(title) => set({ ...path, title: title.slice(0, 256) })} />
      </div>
      <Picture path={path} shown={problem ? null : shown} />
      {path.links.map((link, place) => (
        <Edit
          key={place}
          link={link}
          place={place}
          kept={link.keeps ? (kept[link.keeps.preset] ?? []).filter((stage) => stage.link === link.keeps!.link && !(link.keeps!.without ?? []).includes(stage.key)) : []}
          set={(link) => change(place, link)}
          {...(place > 0 ? { earlier: () => move(place, -1) } : {})}
          {...(path.links.length > 1 ? { gone: () => set({ ...path, links: path.links.filter((_, at) => at !== place) }) } : {})}
        />
      ))}
      <div class="buttons">
        <button type="button" disabled={path.links.length >= 32} onClick={() => set({ ...path, links: [...path.links, { ...LINK, name: `link-${path.links.length + 1}` }] })}>
          Add a link
        </button>
        <button type="button" class="primary" disabled={busy || problem !== null} onClick={() => doing(() => post<Run>("labs", { path }).then(start))}>
          Start it
        </button>
        <a class="button" href="/experiment?lab=drawn" onClick={() => keep(path)}>
          Experiment on it
        </a>
        <button type="button" disabled={busy || problem !== null} onClick={() => doing(() => postForText("lab/paths/toml", path).then((text) => setToml({ text, of: JSON.stringify(path) })))}>
          As a file
        </button>
      </div>
      {(problem ?? failed) && <Trouble problem={(problem ?? failed)!} />}
      <AsCommand text={`# drawn.toml is this path: "As a file"\n${command("lab", "run", "drawn.toml")} -- sh`} />
      {toml.of === JSON.stringify(path) && (
        <pre class="mono" tabIndex={0} aria-label="The path as a scenario file">
          {toml.text}
        </pre>
      )}
    </>
  );
}

/** The path as it lies between the two hosts. */
function Picture({ path, shown }: { path: Drawn; shown: Shown | null }) {
  return (
    <>
      <Wide label="The path, from the client to the server">
        <ol class="way">
          <li class="end">client</li>
          {path.links.map((link, place) => (
            <>
              {place > 0 && (
                <li key={`router ${place}`} class="router">
                  router{link.hop?.nat && <span class="sub">NAT</span>}
                </li>
              )}
              <li key={`link ${place}`} class="link">
                <b>{link.name}</b>
                <span class="sub">↓ {link.down.rate}</span>
                <span class="sub">↑ {(link.up ?? link.down).rate}</span>
                <span class="sub">{link.down.delay} each way</span>
                {link.down.loss && <span class="sub">{link.down.loss} lost</span>}
                {link.keeps && <span class="sub">+ {link.keeps.preset}</span>}
                {link.icmp === false && <span class="badge bad">black hole above {link.mtu}</span>}
              </li>
            </>
          ))}
          <li class="end">server</li>
        </ol>
      </Wide>
      {shown && (
        <dl class="figures" aria-live="polite">
          <Figure name="RTT">{ms(shown.path.rtt_us)}</Figure>
          <Figure name="PMTU">{shown.path.pmtu} bytes</Figure>
          <Figure name="BDP">{size(shown.path.bdp_bytes)}</Figure>
          <Figure name="Goodput at most">
            {rate(shown.physical_goodput_bps.down)} down, {rate(shown.physical_goodput_bps.up)} up
          </Figure>
        </dl>
      )}
    </>
  );
}

function Edit(props: { link: Link; place: number; kept: KeptStage[]; set: (link: Link) => void; earlier?: () => void; gone?: () => void }) {
  const { link, set } = props;
  const up = link.up ?? link.down;
  const down = (field: keyof Way) => (text: string) => set({ ...link, down: changed(link.down, field, text) });
  const above = (field: keyof Way) => (text: string) => set({ ...link, up: changed(up, field, text) });
  return (
    <fieldset class="drawn">
      <legend>
        Link {props.place + 1}: {link.name}
      </legend>
      <div class="row">
        <Text label="Name" value={link.name ?? ""} set={(name) => set({ ...link, name })} />
        <Text label="MTU" value={String(link.mtu ?? 1500)} set={(mtu) => set({ ...link, mtu: Number(mtu) || 0 })} />
        <Text label="Framing" value={link.framing ?? ""} set={(framing) => set(without({ ...link, framing }, "framing"))} placeholder="none" />
      </div>
      <div class="row">
        <Text label="Rate down" value={link.down.rate} set={down("rate")} />
        <Text label="Delay down" value={link.down.delay} set={down("delay")} />
        <Text label="Queue down" value={link.down.queue ?? ""} set={down("queue")} placeholder="100 packets" />
        <Text label="Loss down" value={link.down.loss ?? ""} set={down("loss")} placeholder="none" />
        <Text label="Jitter down" value={link.down.jitter ?? ""} set={down("jitter")} placeholder="none" />
      </div>
      <div class="row">
        <Text label="Rate up" value={up.rate} set={above("rate")} />
        <Text label="Delay up" value={up.delay} set={above("delay")} />
        <Text label="Queue up" value={up.queue ?? ""} set={above("queue")} placeholder="100 packets" />
        <Text label="Loss up" value={up.loss ?? ""} set={above("loss")} placeholder="none" />
        <Text label="Jitter up" value={up.jitter ?? ""} set={above("jitter")} placeholder="none" />
      </div>
      {props.kept.length > 0 && (
        <ul class="kept" aria-label={`What link ${props.place + 1} does besides`}>
          {props.kept.map((stage) => (
            <li key={stage.key}>
              <b>
                {STAGES[stage.stage] ?? stage.stage.replaceAll("_", " ")}
                {stage.way && `, ${stage.way}`}
              </b>
              <span class="sub">{stage.figures}</span>
              <button type="button" class="link" aria-label={`Leave it out: ${STAGES[stage.stage] ?? stage.stage}${stage.way ? `, ${stage.way}` : ""}`} onClick={() => set({ ...link, keeps: { ...link.keeps!, without: [...(link.keeps!.without ?? []), stage.key] } })}>
                Leave it out
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="buttons">
        <label>
          <input type="checkbox" checked={link.icmp === false} onChange={(event) => set(event.currentTarget.checked ? { ...link, icmp: false } : without({ ...link, icmp: undefined as never }, "icmp"))} /> Black
          hole: drops oversized packets without ICMP
        </label>
        {props.place > 0 && (
          <label>
            <input type="checkbox" checked={link.hop?.nat === true} onChange={(event) => set(event.currentTarget.checked ? { ...link, hop: { nat: true } } : without({ ...link, hop: undefined as never }, "hop"))} /> NAT in
            front of it
          </label>
        )}
        {props.earlier && (
          <button type="button" onClick={props.earlier} aria-label={`Move link ${props.place + 1} towards the client`}>
            ← towards the client
          </button>
        )}
        {props.gone && (
          <button type="button" onClick={props.gone} aria-label={`Remove link ${props.place + 1}`}>
            Remove
          </button>
        )}
      </div>
    </fieldset>
  );
}

/** With a field changed; what may be left out is, where the text is empty. */
function changed(way: Way, field: keyof Way, text: string): Way {
  const { [field]: _, ...others } = way;
  return (text === "" && field !== "rate" && field !== "delay" ? others : { ...way, [field]: text }) as Way;
}

/** Without a field that says nothing. */
function without(link: Link, field: "framing" | "icmp" | "hop"): Link {
  const { [field]: value, ...others } = link;
  return value ? link : others;
}

/** A lab that is up, and what is done in it. */
function Running({ run }: { run: Run }) {
  const { result, end } = useAnswer<Up>(run);
  const [busy, problem, doing] = useDoing();
  const [work, setWork] = useState<Run | null>(null);
  const works = useUnderWay(work);
  if (end) return end.error ? <Trouble problem={end.error} /> : <p class="quiet">The lab is down; nothing of it is left.</p>;
  if (!result) return <p class="progress" role="status">The lab is being built …</p>;
  return (
    <Section id="up" class="verdict faster" title={`The lab is up, over ${result.backend}`}>
      <Work start={(body) => doing(() => post<Run>(`labs/${run.id}/workloads`, body).then(setWork))} busy={busy || works} />
      {problem && <Trouble problem={problem} />}
      {work && <Worked key={work.id} run={work} />}
      <details>
        <summary>Enter its hosts from a shell</summary>
        <Table
          label="Hosts of the lab"
          rows={result.hosts}
          columns={[
            { name: "Host", cell: ({ name }) => name },
            { name: "Address", cell: ({ ipv4 }) => ipv4 },
            { name: "Command", cell: ({ enter }) => <code>{enter}</code> },
          ]}
        />
      </details>
      <div class="buttons">
        <button type="button" disabled={busy} onClick={() => doing(() => remove(`runs/${run.id}`))}>
          Take the lab down
        </button>
      </div>
    </Section>
  );
}

function Work({ start, busy }: { start: (body: object) => void; busy: boolean }) {
  const [kind, setKind] = useState("download");
  const [time, setTime] = useState("5s");
  const [cc, setCc] = useState("");
  const [rwin, setRwin] = useState("");
  const transfers = kind === "download" || kind === "upload";
  const settings = { ...(cc.trim() && { cc: cc.trim() }), ...(rwin.trim() && { rwin: rwin.trim() }) };
  const set = Object.entries(settings).map(([knob, level]) => `${knob}=${level}`).join();
  const amount: { time: string } | { size: string } = /^[\d.]+ *(ms|s|min|m|h)$/.test(time.trim()) ? { time: time.trim() } : { size: time.trim() };
  const length: [string, string] = "time" in amount ? ["--trial", amount.time] : ["--size", amount.size];
  const does = transfers ? command("lab", "transfer", length, ["--direction", kind === "upload" ? "up" : ""], ["--set", set]) : kind === "ping" ? "ping -n -i 0.2 -c 10 server" : command("path", "server");
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        start(transfers ? { kind, ...amount, settings } : { kind });
      }}
    >
      <Choice
        label="Workload"
        value={kind}
        set={setKind}
        options={[
          ["download", "download"],
          ["upload", "upload"],
          ["ping", "ping"],
          ["path", "probe the path"],
        ]}
      />
      {transfers && <Text label="How much" value={time} set={setTime} hint="5s, or 10MB" />}
      {transfers && <Text label="Congestion control" value={cc} set={setCc} placeholder="this kernel's" />}
      {transfers && <Text label="RWIN" value={rwin} set={setRwin} placeholder="grows" />}
      <button type="submit" class="primary" disabled={busy}>
        Run it
      </button>
      <AsCommand title="This as a command" text={`${command("lab", "run", "drawn.toml")} -- ${does}`} />
    </form>
  );
}

interface Transfer {
  direction: string;
  finish: string;
  bytes: number;
  elapsed_us: number;
  connect_us: number;
  goodput_bps: number;
  end: "sender" | "receiver";
  samples: Columns;
  pmtu?: number;
  pmtu_at_least?: boolean;
  link_guess?: string;
}

/** How a workload goes, and what came of it. */
function Worked({ run }: { run: Run }) {
  const { result, end, lines, samples } = useAnswer<Transfer>(run);
  return (
    <div aria-live="polite">
      {!end && (
        <div class="progress">
          <p>Running …</p>
          <button type="button" onClick={() => void remove(`runs/${run.id}`).catch(() => {})}>
            Stop it
          </button>
        </div>
      )}
      {!result && <Now samples={samples} />}
      {lines.length > 0 && (
        <pre class="mono" tabIndex={0} aria-label="What the program says">
          {lines.join("\n")}
        </pre>
      )}
      {end?.error && <Trouble problem={end.error} />}
      {result?.samples && <Transferred of={result} />}
      {result?.pmtu && (
        <p>
          Packets of {result.pmtu_at_least ? "at least" : "up to"} <strong>{result.pmtu} bytes</strong> get through
          {result.link_guess && result.link_guess !== "unknown" && `; probably ${result.link_guess}`}.
        </p>
      )}
    </div>
  );
}

function Transferred({ of }: { of: Transfer }) {
  const data = useMemo(() => {
    const x = of.samples.t_us.map((us) => us / 1e6);
    return { x, rate: [{ label: "Goodput", values: rates(of.samples.t_us, of.samples.bytes, windowOf(of.samples.rtt)) }], cwnd: [{ label: "cwnd", colour: 1, values: of.samples.snd_cwnd.map((bytes) => bytes / 1024) }] };
  }, [of]);
  return (
    <>
      <dl class="figures">
        <Figure name="Goodput">{rate(of.goodput_bps)}</Figure>
        <Figure name="Payload">{size(of.bytes)}</Figure>
        <Figure name="Time">{(of.elapsed_us / 1e6).toFixed(2)} s</Figure>
        <Figure name="Connected in">{ms(of.connect_us)}</Figure>
        <Figure name="End">{of.finish}</Figure>
      </dl>
      {data.x.length > 1 && (
        <Section id="transfer" title={`The ${of.direction === "up" ? "upload" : "download"} over time`}>
          <Chart label={`Goodput over ${(of.elapsed_us / 1e6).toFixed(1)} s`} xLabel="Time, s" yLabel="Goodput, Mbit/s" height={220} format={mbit} x={data.x} lines={data.rate} />
          {of.end === "sender" && <Chart label="Congestion window" xLabel="Time, s" yLabel="cwnd, KiB" height={200} format={(value) => value.toFixed(0)} x={data.x} lines={data.cwnd} />}
        </Section>
      )}
    </>
  );
}
