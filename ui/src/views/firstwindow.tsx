import { post } from "../api";
import { count, size, when } from "../format";
import { AsCommand, command } from "../keep";
import { Figure, Section, Table, Trouble, useDoing } from "../parts";
import { usePlace } from "../place";
import { useQuery } from "../route";
import { forgotten, useAnswer, useRun, useUnderWay, type Run } from "../run";
import { Running } from "./experiment";

/** What `first-window --json` says of a URL. */
interface Finding {
  url: string;
  provider: string;
  address: string | null;
  segments: number | null;
  bytes: number | null;
  mss: number | null;
  verdict: "exact" | "at-least" | "unknown";
  why: string;
  limit: "segments" | "rfc5681" | "bytes" | null;
  method: string;
  syn_ack: { mss: number | null; sack: boolean | null; timestamps: boolean | null; window_scale: number | null; window: number | null; ecn: boolean | null; fast_open: boolean | null } | null;
  probes: number;
  packets: number;
  seconds: number;
}

/** How much a server sends before anything is acknowledged: its initial congestion window. */
export function FirstWindow() {
  const place = usePlace({
    lab: "lan",
    real: "a real server",
    label: "Large file",
    placeholder: "https://example.org/large.bin",
    hint: "http:// or https://; large files give exact answers. A few packets, and nothing is downloaded",
    doing: "Asking a real server",
  });
  const [{ run: named }, set] = useQuery({ run: "" });
  const [run, setRun] = useRun(named || null);
  const [asking, problem, doing] = useDoing();
  const known = run === "gone" ? null : run;
  const busy = [asking, useUnderWay(known), !place.complete].some(Boolean);
  return (
    <>
      <h1>First window</h1>
      <p class="lead">How much a server sends before anything is acknowledged: its initial congestion window, in segments.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          doing(() =>
            post<Run>("probes", { kind: "first-window", ...place.request }).then((run) => {
              setRun(run);
              set({ run: run.id }, "push");
            }),
          );
        }}
      >
        {place.fields}
        {place.token}
        <div class="buttons">
          <button type="submit" class="primary" disabled={busy}>
            Ask
          </button>
        </div>
        {place.real ? place.complete && <AsCommand text={command("first-window", place.target)} /> : <AsCommand text={`${command("lab", "run", place.preset ?? "drawn.toml")} -- windtunnel first-window http://server/bytes/1MB`} />}
      </form>
      {problem && <Trouble problem={problem} />}
      {run === "gone" && <p class="note">{forgotten("probe")} Ask once more.</p>}
      {!named && !problem && <p class="quiet">Nothing asked yet. Lab paths need no root and touch no network.</p>}
      {!named && <Running kind="probe" name="A probe" to={({ id, request }) => (request.kind === "first-window" ? `/first-window?${new URLSearchParams({ ...where(request), run: id })}` : `/path?run=${id}`)} />}
      {known && <Asked key={known.id} run={known} />}
    </>
  );
}

/** What a request says in the address. */
function where({ target, lab }: Record<string, unknown>): Record<string, string> {
  if (typeof target === "string") return { where: "target", target };
  return { lab: typeof lab === "string" ? lab : "drawn" };
}

/** The answer in a sentence, and how good it is. */
function headline({ verdict, segments, bytes, mss }: Finding): [string, string] {
  const many = segments === 1 ? "1 segment" : `${segments} segments`;
  if (verdict === "exact") return [`The server sends ${many} of ${mss} bytes at first: ${size(bytes ?? 0)}`, "faster"];
  if (verdict === "at-least") return [`The server sends at least ${many} at first`, ""];
  return ["The first window isn't known", ""];
}

const LIMITS: Record<string, string> = {
  segments: "The window is a number of segments, whatever their size.",
  rfc5681: "The window follows RFC 5681: 2 to 4 segments by their size.",
  bytes: "The window is a number of bytes: with smaller segments there are more of them.",
};

function Asked({ run }: { run: Run }) {
  const { result, end } = useAnswer<{ targets: Finding[] }>(run);
  const found = result?.targets[0];
  if (!found) {
    if (end?.error) return <Trouble problem={end.error} />;
    return end ? <p class="quiet">Stopped.</p> : <p class="progress" role="status">Asking: two connections with segments of different sizes, and no acknowledgement …</p>;
  }
  const [title, look] = headline(found);
  const usual = found.verdict === "exact" && found.segments !== null && found.segments < 10;
  return (
    <>
      <Section id="window" class={`verdict ${look}`} title={title}>
        <p class="quiet">
          {found.url} {found.address && `(${found.address})`}
          {run.request.lab ? `, lab path ${String(run.request.lab)}` : ""}, {when(run.started_unix_us)}
        </p>
        {found.why && <p>{sentence(found.why)}</p>}
        {found.limit && <p>{LIMITS[found.limit]}</p>}
        {usual && <p>10 segments are usual (RFC 6928): with them this server's answers of up to 14 KiB need a round trip less.</p>}
      </Section>
      <dl class="figures">
        <Figure name="Segments">{found.verdict === "unknown" ? "–" : `${found.verdict === "at-least" ? "at least " : ""}${found.segments}`}</Figure>
        <Figure name="Size of one">{found.mss === null ? "–" : `${found.mss} bytes`}</Figure>
        <Figure name="Connections, packets sent">{`${found.probes}, ${count(found.packets)}`}</Figure>
        <Figure name="Took">{`${found.seconds.toFixed(1)} s`}</Figure>
        {found.provider && <Figure name="Provider">{found.provider}</Figure>}
      </dl>
      {found.syn_ack && <Options said={found.syn_ack} />}
      {end?.error && <Trouble problem={end.error} />}
    </>
  );
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

/** What the server's SYN-ACK said. */
function Options({ said }: { said: NonNullable<Finding["syn_ack"]> }) {
  const yes = (value: boolean | null): string => (value === null ? "not asked" : value ? "yes" : "no");
  const rows: [string, string][] = [
    ["Largest segment", said.mss === null ? "–" : `${said.mss} bytes`],
    ["Its own first receive window", said.window === null ? "–" : size(said.window)],
    ["Window scale", said.window_scale === null ? "none" : String(said.window_scale)],
    ["SACK", yes(said.sack)],
    ["Timestamps", yes(said.timestamps)],
    ["ECN", yes(said.ecn)],
    ["Fast Open", yes(said.fast_open)],
  ];
  return (
    <Section id="syn-ack" title="What its SYN-ACK said">
      <Table
        label="Options of the SYN-ACK"
        rows={rows}
        columns={[
          { name: "Option", cell: ([name]) => name },
          { name: "Answer", cell: ([, value]) => value },
        ]}
      />
    </Section>
  );
}
