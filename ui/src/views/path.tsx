import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { post } from "../api";
import { Chart } from "../chart";
import { count, duration, mbit, ms, percent, rate, when } from "../format";
import { AsCommand, command, word } from "../keep";
import { Figure, Section, Sentences, Table, Trouble, useDoing, useGet, Wide } from "../parts";
import { usePlace, type Place } from "../place";
import { useQuery } from "../route";
import { forgotten, useAnswer, useRun, useUnderWay, type Run } from "../run";
import { Running } from "./experiment";
import { Encapsulation, query, Sawtooth, type Ask } from "./calculator";

interface Hop {
  ttl: number;
  address: string | null;
  name: string | null;
  rtt_us: number | null;
  sent: number;
  answered: number;
  loss: number | null;
  mtu: number | null;
  changed: string[];
  target: boolean;
}

interface Size {
  size: number;
  sent: number;
  answered: number;
  loss: number;
  loss_low: number;
  loss_high: number;
  rtt_us: number | null;
}

/** What `path`, `mtu`, `mtu --scan` and `trace` print; each has a part of it. */
interface Found {
  target: string;
  address: string;
  device?: string;
  pmtu?: number | null;
  /** Whether only this host's probes could be no longer. */
  pmtu_at_least?: boolean;
  reverse_pmtu?: number | null;
  kind?: string;
  black_hole_hop?: { ttl: number; address: string } | null;
  mss?: number | null;
  mss_clamp?: { from: number; to: number } | null;
  best_size?: number | null;
  findings?: string[];
  advice?: string[];
  rtt_us?: number | { min: number | null; median: number | null; p99: number | null } | null;
  jitter_us?: number | null;
  loss?: number | null;
  initcwnd?: number | null;
  bottleneck_bps?: number | null;
  bottleneck_low_bps?: number | null;
  bottleneck_high_bps?: number | null;
  bottleneck_answers_limited?: boolean | null;
  link_guess?: string;
  hops?: Hop[];
  sizes?: Size[];
  threshold?: { below: number; above: number; loss_below: number; loss_above: number } | null;
  packets: number;
  seconds: number;
}

const KINDS: Record<string, string> = {
  clean: "Routers say so when packets are longer",
  "black-hole": "A black hole: longer packets vanish, and nobody says so",
  "reverse-black-hole": "A black hole on the way back: longer packets vanish there, and nobody says so",
  "lying-router": "A router names another MTU than it lets pass",
  "size-dependent-loss": "Long packets get lost more often than short ones",
  "rate-limited": "Routers say so, but not every time",
  "icmp-blocked": "Clean, though the target answers no ICMP",
  clamped: "Somebody lowers TCP's MSS",
  "narrow-branch": "A load balancer sends some connections over a branch that carries less, and nobody says so",
  "df-cleared": "Routers cut up what is too long, whoever forbids it",
  inconclusive: "It can't be said why",
};

/** What the link may be, and what a packet occupies on it then. */
const FRAMINGS: Record<string, string> = { PPPoE: "pppoe-llc-bridged-fcs-atm", Ethernet: "ethernet", WireGuard: "wireguard+ethernet" };

/** What a path does to packets: hops, sizes, where they die. */
export function Path() {
  const place = usePlace({
    lab: "black-hole",
    real: "real path",
    label: "Host",
    placeholder: "example.org:443",
    hint: "A name or an address, and a TCP port if you like",
    doing: "Probing a real path",
  });
  const [{ run: named, scan: scanned }, set] = useQuery({ run: "", scan: "" });
  const [path, setPath] = useRun(named || null);
  const [scan, setScan] = useRun(scanned || null);
  const [asking, problem, doing] = useDoing();
  const goes = [useUnderWay(known(path)), useUnderWay(known(scan))].some(Boolean);
  const busy = asking || goes || !place.complete;
  const ask = (kind: "path" | "scan"): void =>
    doing(() =>
      post<Run>("probes", { kind, ...place.request }).then((run) => {
        (kind === "path" ? setPath : setScan)(run);
        set(kind === "path" ? { run: run.id, scan: "" } : { scan: run.id }, "push");
      }),
    );
  const gone = path === "gone" || scan === "gone";
  return (
    <>
      <h1>Path</h1>
      <p class="lead">
        What lies between here and there: hops, the largest packet that gets through, and where longer ones die. How much a server sends at first: <a href="/first-window">First window</a>.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          ask("path");
        }}
      >
        {place.fields}
        {place.token}
        <div class="buttons">
          <button type="submit" class="primary" disabled={busy}>
            Probe the path
          </button>
          <button type="button" disabled={busy} onClick={() => ask("scan")}>
            Scan sizes
          </button>
        </div>
        {place.complete && <AsCommand text={asCommands(place)} />}
      </form>
      {problem && <Trouble problem={problem} />}
      {gone && <p class="note">{forgotten("probe")} Probe once more to see the path as it is now.</p>}
      {!named && !scanned && !problem && <p class="quiet">Nothing probed yet. Lab paths need no root and touch no network. Try “Black hole”.</p>}
      {!named && !scanned && <Running kind="probe" name="A probe" to={({ id, request }) => (request.kind === "first-window" ? `/first-window?run=${id}` : `/path?${new URLSearchParams({ ...where(request), [request.kind === "scan" ? "scan" : "run"]: id })}`)} />}
      {known(path) && <Probed key={known(path)!.id} run={known(path)!} />}
      {known(scan) && <Scanned key={known(scan)!.id} run={known(scan)!} />}
    </>
  );
}

/** Both probes as commands; in the lab they run on its client. */
function asCommands({ real, preset, target }: Place): string {
  if (real) return `${command("path", word(target))}\n# Sizes:\n${command("mtu", "--scan", word(target))}`;
  const inside = command("lab", "run", preset ?? "drawn.toml");
  const file = preset ? "" : "# drawn.toml: Lab, As a file\n";
  return `${file}${inside} -- windtunnel path server\n# Sizes:\n${inside} -- windtunnel mtu --scan server`;
}

const known = (run: Run | "gone" | null): Run | null => (run === "gone" ? null : run);

/** What a probe's request says in the address. */
function where({ target, lab }: Record<string, unknown>): Record<string, string> {
  if (typeof target === "string") return { where: "target", target };
  return { lab: typeof lab === "string" ? lab : "drawn" };
}

/** What a path is called. */
const called = ({ request: { target, lab } }: Run): string => String(target ?? (lab ? `lab path ${lab}` : "the path drawn in Lab"));

/** The worst that is known of a path, in a sentence, and how bad it is. */
function headline(found: Found): [string, string] {
  const { pmtu, black_hole_hop: hop, loss } = found;
  const through = `Packets of ${found.pmtu_at_least ? "at least" : "up to"} ${pmtu ?? "?"} bytes get through`;
  if (found.kind === "black-hole") return [`Packets over ${pmtu ?? "?"} bytes vanish${hop ? ` behind ${hop.address}` : ""}`, "bad"];
  if (found.kind === "reverse-black-hole") return [`Packets over ${found.reverse_pmtu ?? "?"} bytes vanish on their way back`, "bad"];
  if (found.kind === "size-dependent-loss") return ["Long packets get lost more often than short ones", "bad"];
  if (loss != null && loss >= 0.005) return [`${percent(loss)} of all packets are lost, whatever their size`, "bad"];
  if (found.kind === "clean" || found.kind === "icmp-blocked") return [`${through}; nothing is wrong with longer ones`, "faster"];
  return [through, ""];
}

/** The rate of the narrowest link with its interval; nothing where there is none. */
function narrowest({ bottleneck_bps: bps, bottleneck_low_bps: low, bottleneck_high_bps: high, bottleneck_answers_limited: answers }: Found): string | null {
  if (bps == null || low == null) return null;
  const why = answers ? "perhaps it is the answers that come back no faster" : "this host sends no faster";
  return high == null ? `at least ${rate(low)} (${why})` : `${rate(bps)} (${rate(low)} to ${rate(high)})`;
}

/** What of a run there is to see: its answer, its failure, or that it goes on. */
function useFound(run: Run, doing: string): [Found | null, ComponentChildren] {
  const { result, end, scan } = useAnswer<Found>(run);
  if (result) return [result, null];
  if (end?.error) return [null, <Trouble problem={end.error} />];
  if (end) return [null, <p class="quiet">Stopped.</p>];
  const left = scan ? Math.ceil((scan.most - scan.sent) / scan.per_second) : 0;
  return [
    null,
    <>
      <p class="progress" role="status">{doing} …</p>
      {scan && <p class="quiet">{count(scan.sent)} of at most {count(scan.most)} packets sent{left > 1 && `, up to ${duration(left)} more`}</p>}
    </>,
  ];
}

function Probed({ run }: { run: Run }) {
  const [found, instead] = useFound(run, "Probing: packets of many sizes, all hops at once, trains of packets");
  if (!found) return <>{instead}</>;
  const [title, look] = headline(found);
  const rtt = typeof found.rtt_us === "object" ? found.rtt_us : null;
  return (
    <>
      <Section id="found" class={`verdict ${look}`} title={title}>
        <p class="quiet">
          {called(run)}, {when(run.started_unix_us)}
        </p>
        <p>
          {found.pmtu_at_least && found.kind === "inconclusive" ? "Longer ones may get through, too" : (KINDS[found.kind ?? ""] ?? found.kind)}
          {found.black_hole_hop && `, behind hop ${found.black_hole_hop.ttl} (${found.black_hole_hop.address})`}.
        </p>
        {(found.findings ?? []).map((finding) => (
          <p>{finding}</p>
        ))}
      </Section>
      <dl class="figures">
        <Figure name="Path MTU there">
          {found.pmtu_at_least && "≥ "}
          {found.pmtu ?? "–"} bytes
        </Figure>
        {found.reverse_pmtu && <Figure name="and back">{found.reverse_pmtu} bytes</Figure>}
        {rtt?.min != null && <Figure name="RTT, least and median">{`${ms(rtt.min)}, ${rtt.median === null ? "–" : ms(rtt.median)}`}</Figure>}
        {found.jitter_us != null && <Figure name="Jitter">{ms(found.jitter_us)}</Figure>}
        {found.loss != null && <Figure name="Loss">{percent(found.loss)}</Figure>}
        {narrowest(found) && <Figure name="Narrowest link, there">{narrowest(found)}</Figure>}
        {found.link_guess && <Figure name="Link, probably">{found.link_guess}</Figure>}
      </dl>
      <Sentences id="advice" title="To do" of={found.advice ?? []} />
      <Hops found={found} />
      {(found.sizes ?? []).length > 1 && <Sizes id="sizes" title="Sizes that were tried" found={found} sure={false} />}
      {found.pmtu && <Link key={found.link_guess} found={found} />}
      <p class="quiet">
        {count(found.packets)} packets, {found.seconds.toFixed(1)} s.
      </p>
    </>
  );
}

/** What a hop doesn't answer isn't lost where it passes on what hops behind it do. */
function lost(hop: Hop, hops: Hop[]): string {
  const { ttl, loss, answered, sent } = hop;
  const passes = loss !== null && hops.some((other) => other.ttl > ttl && other.loss !== null && other.loss < loss);
  if (passes) return `answers ${answered} of ${sent}`;
  return answered === 0 ? "–" : percent(loss);
}

/** The way from here to there, with the black hole where it is. */
function Hops({ found }: { found: Found }) {
  const hops = found.hops ?? [];
  if (hops.length === 0) return null;
  const hole = found.black_hole_hop?.ttl;
  return (
    <Section id="hops" title="Hops">
      <Wide label="The way, hop by hop">
        <ol class="way">
          <li class="end">
            here<span class="sub">{found.device}</span>
          </li>
          {hops.map((hop) => (
            <li key={hop.ttl} class={hop.target ? "end" : ""}>
              {hop.target ? found.target : (hop.name ?? hop.address ?? "silent")}
              <span class="sub">{hop.rtt_us === null ? "no answer" : ms(hop.rtt_us)}</span>
              {hop.ttl === hole && <span class="badge bad">black hole behind it</span>}
            </li>
          ))}
        </ol>
      </Wide>
      <Table
        label="Hops"
        rows={hops}
        columns={[
          { name: "Hop", cell: ({ ttl }) => ttl },
          {
            name: "Who",
            cell: (hop) => (
              <>
                {hop.address ?? "answers nothing"}
                {hop.name && <span class="sub">{hop.name}</span>}
                {hop.ttl === hole && <span class="badge bad">black hole behind it</span>}
              </>
            ),
          },
          { name: "RTT", cell: ({ rtt_us }) => (rtt_us === null ? "–" : ms(rtt_us)) },
          { name: "Loss", cell: (hop) => lost(hop, hops) },
          { name: "MTU of the link behind", cell: ({ mtu }) => mtu ?? "–" },
          { name: "Changes in the SYN", cell: ({ changed }) => changed.join("; ") || "–" },
        ]}
      />
    </Section>
  );
}

/** Loss and RTT, size by size. */
function Sizes({ id, title, found, sure }: { id: string; title: string; found: Found; sure: boolean }) {
  const data = useMemo(() => {
    const sizes = (found.sizes ?? []).filter(({ sent }) => sent > 0).sort((a, b) => a.size - b.size);
    const x = sizes.map(({ size }) => size);
    const loss = { label: "Loss", points: true, colour: 1, values: sizes.map(({ loss }) => loss * 100), ...(sure ? { bars: sizes.map(({ loss_low, loss_high }): [number, number] => [loss_low * 100, loss_high * 100]) } : {}) };
    const rtt = { label: "RTT", points: true, values: sizes.map(({ rtt_us }) => (rtt_us === null ? null : rtt_us / 1e3)) };
    return { loss: { x, lines: [loss] }, rtt: { x, lines: [rtt] } };
  }, [found]);
  const threshold = found.threshold;
  return (
    <Section id={id} title={title}>
      {threshold && (
        <p>
          Loss begins between <strong>{threshold.below}</strong> and <strong>{threshold.above}</strong> bytes: {percent(threshold.loss_above)} above,{" "}
          {percent(threshold.loss_below)} below.
        </p>
      )}
      {found.best_size && (
        <p>
          Best size: <strong>{found.best_size} bytes</strong>.
        </p>
      )}
      <div class="pair">
        <Chart label={`Loss by packet size, ${data.loss.x.length} sizes${sure ? ", with 95 % intervals" : ""}`} whole xLabel="Size, bytes" yLabel="Loss, %" height={220} format={(value) => value.toFixed(value < 10 ? 1 : 0)} {...data.loss} />
        <Chart label={`Least RTT by packet size, ${data.rtt.x.length} sizes`} whole xLabel="Size, bytes" yLabel="RTT, ms" height={220} format={mbit} {...data.rtt} />
      </div>
    </Section>
  );
}

function Scanned({ run }: { run: Run }) {
  const [found, instead] = useFound(run, "Scanning: all sizes in random order, until the answer is clear");
  if (!found) return <>{instead}</>;
  return (
    <>
      <Sizes id="scan" title={`Scan of ${found.target}: loss and RTT by size`} found={found} sure />
      <Sentences id="scan-advice" title="To do" of={found.advice ?? []} />
    </>
  );
}

/** What the link costs, as far as one can guess what it is, at the chosen MTU. */
function Link({ found }: { found: Found }) {
  const [encap, setEncap] = useState(FRAMINGS[found.link_guess ?? ""] ?? "ethernet");
  const ask: Ask = { encap, mtu: String(found.pmtu), ip: found.address.includes(":") ? "6" : "4", proto: "tcp", tcp_options: "none" };
  const [answer, again] = useGet<{ max_mtu: number }>(`overhead?${query({ ...ask, mtu: "" })}`);
  return (
    <Section id="link" title={`The link: probably ${found.link_guess ?? "unknown"}`}>
      <p class="quiet">Guessed from the MTU alone. If you know better, say what packets are wrapped in:</p>
      <Encapsulation value={encap} set={setEncap} label="Framing" />
      {answer.state === "failed" && <Trouble problem={answer.problem} again={again} />}
      {answer.state === "done" && <Sawtooth answer={{ max_mtu: Math.min(answer.data.max_mtu, found.pmtu ?? answer.data.max_mtu) }} ask={ask} />}
    </Section>
  );
}
