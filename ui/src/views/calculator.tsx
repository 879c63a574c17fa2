import { useId, useMemo } from "preact/hooks";
import { get } from "../api";
import { Chart } from "../chart";
import { count, percent, rate } from "../format";
import { AsCommand, command } from "../keep";
import { Choice, Field, Figure, Section, Text, Trouble, useGet, useLatest, Wide } from "../parts";
import { useQuery } from "../route";
import type { OverheadAnswer as Answer, OverheadWords as Words } from "../schema";

const FIRST = { encap: "pppoe-llc-bridged-fcs-atm", mtu: "1492", ip: "4", proto: "tcp", tcp_options: "none", link_rate: "8mbit" };

/** What the layers below TCP cost. */
export function Calculator() {
  const [ask, setAsk] = useQuery(FIRST);
  const asked = query(ask);
  const [answer, problem] = useLatest<Answer>(asked, (signal) => get(`overhead?${asked}`, signal));
  const set = (name: keyof typeof FIRST) => (value: string) => setAsk({ [name]: value });
  return (
    <>
      <h1>Calculator</h1>
      <p class="lead">What the layers below TCP cost: every byte on the wire, for any stack of encapsulations.</p>
      <div class="row">
        <Encapsulation value={ask.encap} set={set("encap")} />
        <Text label="MTU" hint="IP packet, bytes" value={ask.mtu} set={set("mtu")} />
        <Choice label="IP" size="short" value={ask.ip} set={set("ip")} options={[["4", "IPv4"], ["6", "IPv6"]]} />
        <Choice label="Transport" size="short" value={ask.proto} set={set("proto")} options={[["tcp", "TCP"], ["udp", "UDP"]]} />
        {ask.proto === "tcp" && (
          <Choice
            label="TCP options"
            value={ask.tcp_options}
            set={set("tcp_options")}
            options={[
              ["none", "none"],
              ["timestamps", "timestamps (12 bytes)"],
              ["timestamps,sack1", "timestamps and SACK (24 bytes)"],
            ]}
          />
        )}
        <Text label="Link rate" hint="8mbit, 1gbit" value={ask.link_rate} set={set("link_rate")} />
      </div>
      {problem && <Trouble problem={problem} />}
      {answer && !problem && <Result answer={answer} ask={ask} />}
      <AsCommand text={command("overhead", ...[...new URLSearchParams(asked)].map(([name, value]): [string, string] => [`--${name.replaceAll("_", "-")}`, value]))} />
    </>
  );
}

/** A stack of encapsulations, with the words that are known. */
export function Encapsulation({ value, set, label = "Encapsulation" }: { value: string; set: (value: string) => void; label?: string }) {
  const [words] = useGet<Words>("overhead/encapsulations");
  const id = useId();
  return (
    <>
      <Field label={label} hint="Words joined by +, from the packet outwards">
        <input list={id} value={value} onInput={(event) => set(event.currentTarget.value)} spellcheck={false} autocapitalize="off" class="long" />
      </Field>
      <datalist id={id}>
        {words.state === "done" && words.data.words.map((word) => <option value={word.name}>{word.about}</option>)}
      </datalist>
    </>
  );
}

export function query(ask: Record<string, string>): string {
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
    <Section id="frame" title="On the wire">
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
      <div class="to-scale" aria-hidden="true">
        {answer.layers.map((layer, place) => (
          <i key={place} class={layer.part} style={{ width: `${(100 * layer.len) / total}%` }} />
        ))}
      </div>
      <p class="legend">
        <i class="header" /> header <i class="payload" /> payload <i class="trailer" /> trailer <i class="padding" /> padding{" "}
        <i class="coding" /> line coding. Bytes above; the strip is true to scale.
      </p>
    </Section>
  );
}

/** What an efficiency depends on. */
export type Ask = Pick<typeof FIRST, "encap" | "mtu" | "ip" | "proto" | "tcp_options">;

/** Efficiency against the MTU, with the chosen one: where cells are filled, it jumps. */
export function Sawtooth({ answer, ask }: { answer: Pick<Answer, "max_mtu">; ask: Ask }) {
  const { mtu, ...others } = ask;
  const chosen = Number(mtu);
  const least = ask.ip === "6" ? 1280 : 576;
  const last = Math.max(answer.max_mtu, least);
  const first = Math.max(least, Math.min(last - 200, (chosen || last) - 100));
  const { link_rate: _, ...asked } = others as Record<string, string>;
  const [swept, again] = useGet<Answer>(`overhead?${query({ ...asked, sweep: `${first}..${last}` })}`);
  const data = useMemo(() => {
    const steps = swept.state === "done" ? swept.data.sweep : [];
    const here = { label: `MTU ${chosen}`, points: true, colour: 1, values: steps.map((step) => (step.mtu === chosen ? step.efficiency * 100 : null)) };
    return { x: steps.map((step) => step.mtu), lines: [{ label: "Efficiency", values: steps.map((step) => step.efficiency * 100) }, here] };
  }, [swept, chosen]);
  return (
    <Section id="sawtooth" title="Efficiency by MTU">
      {swept.state === "failed" && <Trouble problem={swept.problem} again={again} />}
      {swept.state === "done" && (
        <>
          <p>
            Of {first} to {last} bytes the best MTU is <strong>{swept.data.best_mtu}</strong> with {percent(swept.data.best_efficiency)}.
          </p>
          <Chart
            label={`Efficiency of MTUs from ${first} to ${last} bytes; the best is ${swept.data.best_mtu}`}
            whole
            xLabel="MTU, bytes"
            yLabel="Efficiency, %"
            format={(value) => value.toFixed(1)}
            {...data}
          />
        </>
      )}
    </Section>
  );
}
