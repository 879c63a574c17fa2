import { useEffect, useState } from "preact/hooks";
import { ApiProblem, post } from "../api";
import { count, duration, ms, percent, rate, size } from "../format";
import { AsCommand, command, json, keepFile } from "../keep";
import { Section, Table, Text, Trouble, useDoing } from "../parts";
import type { Analysed } from "../schema";
import { plain } from "../words";

/** What another view took for this one. */
let handed: globalThis.File | null = null;
export const hand = (file: globalThis.File): void => void (handed = file);

/** As the server takes it. */
const LARGEST = 256 * 2 ** 20;

/** A place to drop a file, or a button to choose one. */
export function Drop({ taken }: { taken: (file: globalThis.File) => void }) {
  const [over, setOver] = useState(false);
  const take = (files: FileList | null | undefined): void => {
    const file = files?.[0];
    if (file) taken(file);
  };
  return (
    <label
      class={`drop ${over ? "over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files);
      }}
    >
      Drop a capture or a table here, or choose one
      <input
        type="file"
        aria-label="Capture or table"
        onChange={(event) => {
          take(event.currentTarget.files);
          event.currentTarget.value = "";
        }}
      />
    </label>
  );
}

/** A capture or a table that somebody measured: dropped, analysed, forgotten by the server. */
export function File() {
  const [file, setFile] = useState(handed);
  const [columns, setColumns] = useState({ value: "", factor: "", block: "", filter: "" });
  const [answer, setAnswer] = useState<Analysed | null>(null);
  const [busy, problem, run] = useDoing();
  handed = null;
  const analyse = (file: globalThis.File): void => {
    setFile(file);
    setAnswer(null);
    const given = Object.entries(columns).filter(([, text]) => text.trim() !== "");
    const query = new URLSearchParams([["file", file.name.slice(0, 200)], ...given]);
    run(() => (file.size > LARGEST ? Promise.reject(tooLarge(file)) : post<Analysed>(`analyse?${query}`, file).then(setAnswer)));
  };
  useEffect(() => {
    if (file && !answer) analyse(file);
  }, []);
  const set = (name: keyof typeof columns) => (text: string) => setColumns({ ...columns, [name]: text });
  const flags: [string, string | undefined][] = [
    ["--value", columns.value],
    ["--factor", columns.factor],
    ["--block", columns.block],
    ["--filter", columns.filter],
  ];
  return (
    <>
      <h1>Analyse a file</h1>
      <p class="lead">A capture (pcap, pcapng): who slows it down. A table (csv): whether a difference is real. The file stays on this machine and is deleted after the answer.</p>
      <Drop taken={analyse} />
      <details>
        <summary>Which columns, which packets</summary>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            if (file) analyse(file);
          }}
        >
          <Text label="Outcomes" hint="Of a table: the column that was measured" value={columns.value} set={set("value")} />
          <Text label="Settings" hint="Of a table: the column that is compared" value={columns.factor} set={set("factor")} />
          <Text label="Blocks" hint="Of a table: rounds, days" value={columns.block} set={set("block")} />
          <Text label="Filter" hint="Of a capture: tcp port 443" value={columns.filter} set={set("filter")} />
          <button type="submit" disabled={!file || busy}>
            Analyse again
          </button>
        </form>
      </details>
      {busy && (
        <p class="progress" role="status">
          Analysing {file?.name} …
        </p>
      )}
      {problem && <Trouble problem={problem} />}
      {answer && file && <Answer of={answer} file={file.name} />}
      {answer && file && (
        <div class="buttons">
          <button type="button" onClick={() => keepFile(`${file.name}.json`, json(answer.answer))}>
            Download JSON
          </button>
          <button type="button" onClick={() => keepFile(`${file.name}.txt`, new Blob([answer.text], { type: "text/plain" }))}>
            Download text
          </button>
        </div>
      )}
      {file && <AsCommand text={command("analyse", ["", file.name], ...flags).replace("  ", " ")} />}
    </>
  );
}

const tooLarge = (file: globalThis.File): ApiProblem =>
  new ApiProblem({ what: `${file.name} is larger than ${size(LARGEST)}.`, hint: `run windtunnel analyse ${file.name} in a terminal: it takes files of any size` }, 413);

function Answer({ of, file }: { of: Analysed; file: string }) {
  return (
    <div aria-live="polite">
      {of.kind === "capture" ? <Capture of={of.answer as unknown as CaptureAnswer} file={file} /> : <Measured of={of} />}
      <details>
        <summary>Everything, as the terminal prints it</summary>
        <pre class="mono" tabIndex={0} aria-label="The whole answer">
          {of.text}
        </pre>
      </details>
    </div>
  );
}

/** What `analyse --json` says of a capture, as far as it is shown. */
interface CaptureAnswer {
  duration_us: number;
  packets: { all: number; tcp: number; connections: number };
  connections: Connection[];
  connections_left_out: number;
  warnings: string[];
}

interface Connection {
  number: number;
  duration_us: number;
  state: string;
  min_rtt_us: number | null;
  client: End;
  server: End;
  blame: { end: string; reason: string; text: string; findings: { end: string; text: string; weight: number }[] };
}

interface End {
  address: string;
  bytes: number;
  goodput_bps: number;
  retransmission_rate: number;
}

/** Who is to blame, in words. */
const ENDS: Record<string, string> = { client: "the client", server: "the server", path: "the path", nobody: "nobody", none: "nobody" };
const named = (end: string): string => ENDS[end] ?? end.replaceAll("-", " ");
const larger = ({ client, server }: Connection): End => (client.bytes > server.bytes ? client : server);

function Capture({ of, file }: { of: CaptureAnswer; file: string }) {
  const order = [...of.connections].sort((a, b) => larger(b).bytes - larger(a).bytes);
  const first = order[0];
  if (!first) return <Section id="blame" class="verdict" title={`There is no TCP connection in ${file}.`}>{of.warnings.map((warning) => <p>{plain(warning)}</p>)}</Section>;
  return (
    <>
      <Section id="blame" class="verdict" title={`To blame: ${named(first.blame.end)}`}>
        <p>
          <strong>{first.blame.text}</strong>
        </p>
        <p class="quiet">
          {order.length === 1 ? "The only connection" : `The largest of ${count(of.packets.connections)} connections`}: {first.client.address} to {first.server.address}, {size(larger(first).bytes)} at{" "}
          {rate(larger(first).goodput_bps)} in {duration(first.duration_us / 1e6)}.
        </p>
        {first.blame.findings.length > 1 && (
          <ul>
            {first.blame.findings.slice(1).map(({ text }) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        )}
      </Section>
      {of.warnings.map((warning) => (
        <p class="note">{plain(warning)}</p>
      ))}
      <Section id="connections" title="Connections">
        <Table
          label="Connections"
          rows={order}
          columns={[
            { name: "Connection", cell: ({ client, server }) => `${client.address} → ${server.address}` },
            { name: "Payload", cell: (one) => size(larger(one).bytes) },
            { name: "Goodput", cell: (one) => rate(larger(one).goodput_bps) },
            { name: "Least RTT", cell: ({ min_rtt_us }) => (min_rtt_us === null ? "–" : ms(min_rtt_us)) },
            { name: "Retransmitted", cell: (one) => percent(larger(one).retransmission_rate) },
            { name: "End", cell: ({ state }) => state },
            { name: "To blame", cell: ({ blame }) => <>{named(blame.end)}<span class="sub">{blame.text}</span></> },
          ]}
        />
        {of.connections_left_out > 0 && <p class="quiet">{count(of.connections_left_out)} smaller connections are left out.</p>}
        <p class="quiet">
          {count(of.packets.all)} packets, {count(of.packets.tcp)} of them TCP, over {duration(of.duration_us / 1e6)}.
        </p>
      </Section>
    </>
  );
}

function Measured({ of }: { of: Analysed }) {
  const [first = "", ...rest] = (of.text.split("\n\n")[0] ?? "").split(/(?<=[.!?]) (?=[A-Z])/);
  const shown = (of.answer as { difference_shown?: boolean }).difference_shown === true;
  return (
    <Section id="difference" class={`verdict ${shown ? "faster" : ""}`} title={first}>
      {rest.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      {of.charts.map(({ name, svg }) => (
        <img key={name} class="picture" alt={`${name.replaceAll("-", " ")} of the table`} src={`data:image/svg+xml,${encodeURIComponent(svg)}`} />
      ))}
    </Section>
  );
}
