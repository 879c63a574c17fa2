import { useEffect, useState } from "preact/hooks";
import { post } from "../api";
import { Token } from "../change";
import { count, iso, when } from "../format";
import { AsCommand, command, csv, keepFile, word } from "../keep";
import { leadsTo } from "../outcome";
import { Check, Choice, Fetched, Figure, Section, Table, Text, Trouble, useDoing, useGet, type Loaded } from "../parts";
import { useQuery } from "../route";
import { forgotten, useAnswer, useRun, useUnderWay, type Run } from "../run";
import type { JournalList as Journal, LoggedTests as Logged } from "../schema";
import { Running } from "./experiment";
import { Actions } from "./past";

/** Downloads with the settings as they are, each logged; one log by its name in the address. */
export function Tests({ part: id }: { part: string }) {
  return id ? <One id={id} /> : <All />;
}

/** Units of rates: how many bit/s one is, and what it is called. */
const UNITS: Record<string, [number, string]> = { kB: [8e3, "kB/s"], MB: [8e6, "MB/s"], kbit: [1e3, "kbit/s"], Mbit: [1e6, "Mbit/s"] };

/** A rate in a unit, chosen by its size where none is, with its standard error if there is one. */
function said(unit: string, bps: number | null | undefined, error?: number | null): string {
  if (bps === null || bps === undefined) return "–";
  const [size, name] = UNITS[unit] ?? (bps >= 1e6 ? UNITS.Mbit! : UNITS.kbit!);
  const digits = bps / size >= 100 ? 0 : bps / size >= 10 ? 1 : 2;
  return `${(bps / size).toFixed(digits)}${typeof error === "number" ? ` ± ${(error / size).toFixed(digits)}` : ""} ${name}`;
}

function Units({ value, set }: { value: string; set: (units: string) => void }) {
  return <Choice label="Rates in" size="short" value={value} set={set} options={[["", "what fits"], ...Object.entries(UNITS).map(([unit, [, name]]): [string, string] => [unit, name])]} />;
}

function All() {
  const [journal, again] = useGet<Journal>("journal?kind=test&limit=200");
  // The log that stands above the others, if one does.
  const [above, setAbove] = useState("");
  const logged = (id: string): void => {
    setAbove(id);
    again();
  };
  return (
    <>
      <h1>Logged tests</h1>
      <p class="lead">Downloads with the settings as they are. Each is a line of the log, with its number, all settings in force, bytes, seconds and rate. Nothing is compared and nothing is claimed.</p>
      <Begin logged={logged} />
      <Past journal={journal} again={again} above={above} />
    </>
  );
}

function Begin({ logged }: { logged: (id: string) => void }) {
  const [{ targets, each, time, comment, hops, run: named }, set] = useQuery({ targets: "", each: "1", time: "60s", comment: "", hops: "", run: "" });
  const [run, setRun] = useRun(named || null);
  const [asking, problem, doing] = useDoing();
  const known = run === "gone" ? null : run;
  const busy = [useUnderWay(known), asking].some(Boolean);
  const servers = targets.split(/\s+/).filter(Boolean);
  const request = { targets: servers, each: Number(each), time, ...(comment.trim() && { comment: comment.trim() }), ...(hops && { no_hops: true }) };
  const one = servers.length === 1;
  const list = servers.map((url) => `[[target]]\nurl = "${url}"\n`).join("");
  const options: (string | [string, string | undefined])[] = [["--each", each === "1" ? "" : each], ["--time", time === "60s" ? "" : time], ["--comment", comment.trim()], ...(hops ? ["--no-hops"] : [])];
  const text = one ? command("test", word(servers[0]!), ...options) : `cat > servers.toml <<'END'\n${list}END\n${command("test", "servers.toml", ...options)}`;
  return (
    <Section id="begin" title="Download once">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          doing(() =>
            post<Run>("tests", request).then((run) => {
              setRun(run);
              set({ run: run.id }, "push");
            }),
          );
        }}
      >
        <div class="row">
          <Text label="Addresses of files" size="long" value={targets} set={(targets) => set({ targets })} placeholder="http://example.org/file.iso" hint="http(s)://, ftp(s)://; several with a space between them: servers take turns" />
          <Text label="From each server" value={each} set={(each) => set({ each })} placeholder="1" />
          <Text label="Ends after" value={time} set={(time) => set({ time })} placeholder="60s" />
          <Text label="Note" size="long" value={comment} set={(comment) => set({ comment })} placeholder="new modem" />
        </div>
        <Check label="Don't ask how many hops away the servers are" value={hops !== ""} set={(on) => set({ hops: on ? "no" : "" })} />
        <Token what="Measuring a real path" />
        <div class="buttons">
          <button type="submit" class="primary" disabled={busy || servers.length === 0}>
            Download and log
          </button>
        </div>
        {servers.length > 0 && <AsCommand text={text} />}
      </form>
      {problem && <Trouble problem={problem} />}
      {run === "gone" && <p class="note">{forgotten("test")} What was logged stands below.</p>}
      {!named && <Running kind="test" name="A test" to={({ id }) => `/tests?run=${id}`} />}
      {known && <Asked key={known.id} run={known} logged={logged} />}
    </Section>
  );
}

/** How a test goes that this page knows of, and what it logged; `logged` hears of its end, and when it is shown no more. */
function Asked({ run, logged }: { run: Run; logged: (id: string) => void }) {
  const { result, end } = useAnswer<Logged>(run);
  useEffect(() => {
    if (!end) return;
    logged(result?.id ?? "");
    return () => logged("");
  }, [end, result?.id]);
  if (end?.error) return <Trouble problem={end.error} />;
  return result ? <Lines of={result} /> : <p role="status">Downloading …</p>;
}

/** One log of the journal. */
function One({ id }: { id: string }) {
  const [logged, again] = useGet<Logged>(`tests/${encodeURIComponent(id)}`);
  return (
    <>
      <h1>Logged tests</h1>
      <p class="lead mono">{id}</p>
      {logged.state === "done" && <Actions id={id} report={logged.data} />}
      <Fetched of={logged} again={again}>
        {(logged) => <Lines of={logged} />}
      </Fetched>
      <AsCommand text={`windtunnel journal show ${word(id)}`} />
    </>
  );
}

/** How many tests there were, and what became of those that no mean has: "1 of 2 tests of 2 servers, 1 failed". */
function done({ tests, hosts }: Logged): string {
  const all = `${tests.length === 1 ? "1 test" : `${count(tests.length)} tests`}${hosts.length > 1 ? ` of ${hosts.length} servers` : ""}`;
  const others = tests.filter(({ status, bytes }) => status !== "completed" || bytes === 0).map(({ status }) => (status === "completed" ? "empty" : status));
  if (others.length === 0) return all;
  const each = [...new Set(others)].map((status) => `${others.filter((other) => other === status).length} ${status}`);
  return [tests.length > 1 ? `${count(tests.length - others.length)} of ${all}` : all, ...each].join(", ");
}

/** A log: server by server, and line by line. */
function Lines({ of }: { of: Logged }) {
  const [{ units }, set] = useQuery({ units: "" });
  const rows = of.tests.map((test) => [test.number, iso(test.started_unix_us), test.server, test.address, test.status, test.bytes, test.seconds, test.goodput_bps, test.connect_us, test.min_rtt_us, test.retransmits, test.mss, test.rwin_max]);
  const head = ["number", "begun", "server", "address", "status", "bytes", "seconds", "goodput_bps", "connect_us", "min_rtt_us", "retransmits", "mss", "rwin_max"];
  return (
    <>
      <Section id="logged" class="verdict" title={`${said(units, of.mean_bps, of.standard_error_bps)}, ${done(of)}`}>
        <div class="row">
          <Units value={units} set={(units) => set({ units }, "push")} />
          <button type="button" onClick={() => keepFile(`${of.id}.csv`, csv([head, ...rows]))}>
            Download CSV
          </button>
        </div>
        <p class="quiet">
          Kept as <a href={leadsTo({ id: of.id, kind: "test" })}>{of.id}</a>.
        </p>
      </Section>
      {of.hosts.length > 0 && (
        <Section id="hosts" title="Server by server">
          <Table
            label="Servers"
            rows={of.hosts}
            columns={[
              {
                name: "Server",
                cell: ({ server, comment, address }) => (
                  <>
                    {server}
                    {comment && <span class="sub">{comment}</span>}
                    {address && <span class="sub mono">{address}</span>}
                  </>
                ),
              },
              { name: "Hops", cell: ({ hops }) => hops ?? "–" },
              { name: "TTL", cell: ({ reply_ttl }) => reply_ttl ?? "–" },
              { name: "Connect", cell: ({ connect_us }) => (typeof connect_us === "number" ? `${(connect_us / 1e3).toFixed(1)} ms` : "–") },
              { name: "Tests", cell: ({ completed, tests }) => `${completed} of ${tests}` },
              { name: "Mean ± standard error", cell: ({ mean_bps, standard_error_bps }) => said(units, mean_bps, standard_error_bps) },
            ]}
          />
        </Section>
      )}
      <Section id="lines" title="Line by line">
        <Table
          label="Tests"
          rows={of.tests}
          columns={[
            { name: "Number", cell: ({ number }) => number },
            { name: "Begun", cell: ({ started_unix_us }) => <span class="nowrap">{when(started_unix_us)}</span> },
            { name: "Server", cell: ({ server }) => server },
            { name: "Bytes", cell: ({ bytes }) => count(bytes) },
            { name: "Seconds", cell: ({ seconds }) => seconds.toFixed(2) },
            { name: "Rate", cell: ({ goodput_bps }) => said(units, goodput_bps) },
            { name: "Smallest RTT", cell: ({ min_rtt_us }) => (typeof min_rtt_us === "number" ? `${(min_rtt_us / 1e3).toFixed(1)} ms` : "–") },
            {
              name: "Status",
              cell: ({ status, notes }) => (
                <>
                  {status}
                  {notes.map((note) => (
                    <span class="sub">{note}</span>
                  ))}
                </>
              ),
            },
          ]}
        />
      </Section>
      <details>
        <summary>Settings in force</summary>
        <dl class="figures">
          {Object.entries(of.settings).map(([name, value]) => (
            <Figure key={name} name={name.replace(/^net\./, "")}>
              {value}
            </Figure>
          ))}
        </dl>
      </details>
    </>
  );
}

/** The logs of the journal; the one that stands above needs no link. */
function Past({ journal, again, above }: { journal: Loaded<Journal>; again: () => void; above: string }) {
  return (
    <Section id="past" title="The log">
      <Fetched of={journal} again={again}>
        {({ experiments }) =>
          experiments.length === 0 ? (
            <p class="quiet">Nothing was logged yet.</p>
          ) : (
            <Table
              label="Logs"
              rows={experiments}
              columns={[
                {
                  name: "Target",
                  cell: ({ id, target, comment }) => (
                    <>
                      {id === above ? (
                        target
                      ) : (
                        <a href={leadsTo({ id, kind: "test" })} aria-label={`${target}: ${id}`}>
                          {target}
                        </a>
                      )}
                      {comment && <span class="sub comment">{comment}</span>}
                      <span class="sub mono">{id}</span>
                    </>
                  ),
                },
                { name: "Begun", cell: ({ started_unix_us }) => <span class="nowrap">{when(started_unix_us)}</span> },
                { name: "Tests", cell: ({ trials }) => trials },
                { name: "What came of it", cell: ({ answer }) => answer ?? "–" },
              ]}
            />
          )
        }
      </Fetched>
    </Section>
  );
}
