import { useEffect, useMemo, useState } from "preact/hooks";
import { get, problemOf, type Problem } from "../api";
import { Chart } from "../chart";
import { count, percent, rate } from "../format";
import { Field, Figure, Trouble, useGet, Wide } from "../parts";

interface Layer {
  name: string;
  part: "header" | "payload" | "trailer" | "padding" | "coding";
  len: number;
}

interface Answer {
  encap: string;
  mtu: number;
  payload_len: number;
  packets: number;
  ip_len: number;
  wire_len: number;
  cells: number | null;
  efficiency: number;
  best_mtu: number;
  best_efficiency: number;
  max_mtu: number;
  goodput_bps: number | null;
  layers: Layer[];
  sweep: { mtu: number; efficiency: number }[];
  notes: string[];
}

interface Words {
  words: { name: string; about: string; group: string }[];
}

const FIRST = { encap: "pppoe-llc-bridged-fcs-atm", mtu: "1492", ip: "4", proto: "tcp", tcp_options: "none", link_rate: "8mbit" };

/** What the layers below TCP cost. */
export function Calculator() {
  const [ask, setAsk] = useState(FIRST);
  const [words] = useGet<Words>("overhead/encapsulations");
  const [answer, problem] = useAnswer(ask);
  const set = (name: keyof typeof FIRST) => (event: { currentTarget: { value: string } }) =>
    setAsk({ ...ask, [name]: event.currentTarget.value });
  return (
    <>
      <h1>Calculator</h1>
      <p class="lead">What the layers below TCP cost: every byte on the wire, for any stack of encapsulations.</p>
      <div class="row">
        <Field label="Encapsulation" hint="Words joined by +, from the packet outwards">
          <input list="encaps" value={ask.encap} onInput={set("encap")} spellcheck={false} autocapitalize="off" class="long" />
        </Field>
        <datalist id="encaps">
          {words.state === "done" && words.data.words.map((word) => <option value={word.name}>{word.about}</option>)}
        </datalist>
        <Field label="MTU" hint="IP packet, bytes">
          <input value={ask.mtu} onInput={set("mtu")} inputMode="numeric" class="short" />
        </Field>
        <Field label="IP">
          <select class="short" value={ask.ip} onChange={set("ip")}>
            <option value="4">IPv4</option>
            <option value="6">IPv6</option>
          </select>
        </Field>
        <Field label="Transport">
          <select class="short" value={ask.proto} onChange={set("proto")}>
            <option value="tcp">TCP</option>
            <option value="udp">UDP</option>
          </select>
        </Field>
        {ask.proto === "tcp" && (
          <Field label="TCP options">
            <select value={ask.tcp_options} onChange={set("tcp_options")}>
              <option value="none">none</option>
              <option value="timestamps">timestamps (12 bytes)</option>
              <option value="timestamps,sack1">timestamps and SACK (24 bytes)</option>
            </select>
          </Field>
        )}
        <Field label="Link rate" hint="8mbit, 1gbit">
          <input value={ask.link_rate} onInput={set("link_rate")} class="short" />
        </Field>
      </div>
      {problem && <Trouble problem={problem} />}
      {answer && <Result answer={answer} ask={ask} />}
    </>
  );
}

/** Asks as one types; the last answer stays until the next one comes. */
function useAnswer(ask: typeof FIRST): [Answer | null, Problem | null] {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const leave = new AbortController();
    const timer = setTimeout(() => {
      get<Answer>(`overhead?${query(ask)}`, leave.signal).then(
        (answer) => {
          setAnswer(answer);
          setProblem(null);
        },
        (error) => leave.signal.aborted || setProblem(problemOf(error)),
      );
    }, 150);
    return () => {
      clearTimeout(timer);
      leave.abort();
    };
  }, [ask]);
  return [answer, problem];
}

function query(ask: Record<string, string>): string {
  const given = Object.entries(ask).filter(([name, text]) => text.trim() !== "" && !(name === "tcp_options" && ask.proto === "udp"));
  return new URLSearchParams(given).toString();
}

function Result({ answer, ask }: { answer: Answer; ask: typeof FIRST }) {
  return (
    <>
      <dl class="figures" aria-live="polite">
        <Figure name="Efficiency">{percent(answer.efficiency)}</Figure>
        <Figure name="Payload a packet">{count(answer.payload_len)} bytes</Figure>
        <Figure name="On the wire">
          {count(answer.wire_len)} bytes{answer.cells ? `, ${answer.cells} cells` : ""}
        </Figure>
        {answer.goodput_bps !== null && <Figure name="Goodput at most">{rate(answer.goodput_bps)}</Figure>}
        <Figure name="Best MTU">
          {answer.best_mtu} ({percent(answer.best_efficiency)})
        </Figure>
      </dl>
      {answer.notes.map((note) => (
        <p class="note">{note}</p>
      ))}
      <Frame answer={answer} />
      <Sawtooth answer={answer} ask={ask} />
    </>
  );
}

/** The packet as it goes over the wire: boxes to read, and below them a strip that is true to scale. */
function Frame({ answer }: { answer: Answer }) {
  const total = answer.layers.reduce((sum, layer) => sum + layer.len, 0);
  return (
    <section aria-labelledby="frame">
      <h2 id="frame">On the wire</h2>
      <Wide label="The frame, in the order of its bytes">
        <ol class="frame">
          {answer.layers.map((layer, place) => (
            <li key={place} class={layer.part} style={{ flexGrow: Math.sqrt(layer.len) }}>
              <span>{layer.name}</span>
              <b>{count(layer.len)}</b>
            </li>
          ))}
        </ol>
      </Wide>
      <div class="strip" aria-hidden="true">
        {answer.layers.map((layer, place) => (
          <i key={place} class={layer.part} style={{ width: `${(100 * layer.len) / total}%` }} />
        ))}
      </div>
      <p class="legend">
        <i class="header" /> header <i class="payload" /> payload <i class="trailer" /> trailer <i class="padding" /> padding{" "}
        <i class="coding" /> line coding. Bytes above; the strip is true to scale.
      </p>
    </section>
  );
}

/** Efficiency against the MTU: where cells are filled, it jumps. */
function Sawtooth({ answer, ask }: { answer: Answer; ask: typeof FIRST }) {
  const least = ask.ip === "6" ? 1280 : 576;
  const last = Math.max(answer.max_mtu, least);
  const first = Math.max(least, last - 200);
  const { mtu: _, ...others } = ask;
  const [swept, again] = useGet<Answer>(`overhead?${query({ ...others, sweep: `${first}..${last}` })}`);
  const steps = swept.state === "done" ? swept.data.sweep : [];
  const data = useMemo(
    () => ({ x: steps.map((step) => step.mtu), lines: [{ label: "Efficiency", values: steps.map((step) => step.efficiency * 100) }] }),
    [swept],
  );
  return (
    <section aria-labelledby="sawtooth">
      <h2 id="sawtooth">Efficiency by MTU</h2>
      {swept.state === "failed" && <Trouble problem={swept.problem} again={again} />}
      {swept.state === "done" && (
        <>
          <p>
            Of {first} to {last} bytes the best MTU is <strong>{swept.data.best_mtu}</strong> with {percent(swept.data.best_efficiency)}.
          </p>
          <Chart
            label={`Efficiency of MTUs from ${first} to ${last} bytes; the best is ${swept.data.best_mtu}`}
            xLabel="MTU, bytes"
            yLabel="Efficiency, %"
            format={(value) => value.toFixed(1)}
            {...data}
          />
        </>
      )}
    </section>
  );
}
