import { useState } from "preact/hooks";
import { when } from "../format";
import { Choice, Fetched, Section, Text, useGet } from "../parts";
import { go } from "../route";
import type { JournalList as Journal, PresetsAnswer as Presets, RunSummary as Run, TrafficList } from "../schema";
import { Drop, hand } from "./file";
import { isBetter, leadsTo } from "../outcome";

/** Where one begins: four ways on, what runs, and what was found last. */
export function Start() {
  return (
    <>
      <h1>Make a connection faster</h1>
      <p class="lead">Windtunnel tries TCP/IP settings in random order, tells real gains from luck, and applies what wins so that it can be undone.</p>
      <div class="cards start">
        <Rehearse />
        <Measure />
        <Wrong />
        <Decide />
        <Section id="analyse-file" class="card" title="Analyse a file">
          <p>Drop a capture (pcap, pcapng) and read who slows it down, or a table (csv) and read whether a difference is real.</p>
          <Drop
            taken={(file) => {
              hand(file);
              go("/file");
            }}
          />
        </Section>
      </div>
      <Last />
    </>
  );
}

function Rehearse() {
  const [presets, again] = useGet<Presets>("lab/presets");
  const [lab, setLab] = useState("adsl");
  return (
    <Section id="rehearse" class="card" title="Rehearse on a line like mine">
      <p>Real kernels meet over an emulated line. Nothing on this host changes, no network is touched.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          go(`/experiment?${new URLSearchParams({ lab })}`);
        }}
      >
        <Fetched of={presets} again={again}>
          {({ presets }) => <Choice label="My line" value={lab} set={setLab} options={presets.map(({ name, title }): [string, string] => [name, title])} />}
        </Fetched>
        <button type="submit" class="primary">
          Rehearse
        </button>
      </form>
    </Section>
  );
}

function Measure() {
  const [target, setTarget] = useState("");
  return (
    <Section id="measure" class="card" title="Measure a real server">
      <p>Compares settings on the real path, one polite connection at a time. It needs the token that the terminal shows.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          go(`/experiment?${new URLSearchParams({ where: "target", target })}`);
        }}
      >
        <Text label="Address of a large file" value={target} set={setTarget} placeholder="https://example.org/file.iso" />
        <button type="submit">Measure</button>
      </form>
      <p class="quiet">
        Or <a href="/tests">download once and log it</a>, with nothing changed.
      </p>
    </Section>
  );
}

function Decide() {
  const [ports, setPorts] = useState("443");
  return (
    <Section id="decide" class="card" title="Let real traffic decide">
      <p>Gives each new connection of this server one of several settings by a secret coin, and says what that did for its users.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          go(`/traffic?${new URLSearchParams({ ports })}`);
        }}
      >
        <Text label="Port of the server" value={ports} set={setPorts} placeholder="443" />
        <button type="submit">Plan it</button>
      </form>
    </Section>
  );
}

function Wrong() {
  const [target, setTarget] = useState("");
  return (
    <Section id="wrong" class="card" title="What is wrong with this path?">
      <p>Hops, the largest packet that gets through, black holes, losses and the narrowest link.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          go(target.trim() ? `/path?${new URLSearchParams({ where: "target", target })}` : "/path");
        }}
      >
        <Text label="Host (empty: try one in the lab)" value={target} set={setTarget} placeholder="example.org:443" />
        <button type="submit">Look</button>
      </form>
    </Section>
  );
}

/** What runs, and the last verdict. */
function Last() {
  const [runs] = useGet<Run[]>("experiments");
  const [journal, again] = useGet<Journal>("journal?limit=20");
  const [traffic] = useGet<TrafficList>("traffic");
  const running = runs.state === "done" ? runs.data.find(({ end }) => !end) : undefined;
  return (
    <>
      {running && (
        <Section id="running" class="verdict" title="An experiment is running">
          <p>
            <a href={`/experiment/${running.id}`}>Watch it</a>
          </p>
        </Section>
      )}
      {traffic.state === "done" &&
        traffic.data.running.map(({ id, ports, headline }) => (
          <Section key={id} id={`running-${id}`} class="verdict" title={`Connections to port ${ports.join(", ")} are being assigned`}>
            <p>
              {headline ?? "Nothing can be said yet."} <a href={`/traffic/${encodeURIComponent(id)}`}>See how it stands</a>
            </p>
          </Section>
        ))}
      <Fetched of={journal} again={again}>
        {({ experiments }) => {
          const last = experiments.find(({ answer }) => answer);
          return last ? (
            <Section id="last" class={`verdict ${isBetter(last) ? "faster" : ""}`} title="Your last verdict">
              <p>
                <strong>{last.answer}</strong>
              </p>
              <p class="quiet">
                {last.target}, {when(last.started_unix_us)}. <a href={leadsTo(last)}>Read the report</a> or see <a href="/history">all experiments</a>.
              </p>
            </Section>
          ) : (
            <p class="quiet">No experiment was run yet.</p>
          );
        }}
      </Fetched>
    </>
  );
}
