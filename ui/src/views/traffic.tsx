import { useState } from "preact/hooks";
import { post, problemOf, remove, type Problem } from "../api";
import { Token } from "../change";
import { change, count, duration, percent, span, when } from "../format";
import { AsCommand, command, word } from "../keep";
import { leadsTo, outcome, OUTCOMES } from "../outcome";
import { Check, Choice, Fetched, Section, Table, Text, Trouble, useDoing, useGet, useGetAgain } from "../parts";
import { useQuery } from "../route";
import { forgotten, useEvents, useRun, useUnderWay, type Run } from "../run";
import type { JournalList as Journal, TrafficList, TrafficPlan as Plan, TrafficReport as Report, TrafficStatus as Status } from "../schema";
import { Verdict } from "../traffic";
import { plain } from "../words";
import { Actions } from "./past";

/** How often it is asked how those stand that are under way. */
const ASK_EVERY = 5000;

/** Experiments on this server's own connections; one of them by its name in the address. */
export function Traffic({ part: id }: { part: string }) {
  return id ? <One id={id} /> : <All />;
}

function All() {
  return (
    <>
      <h1>Real traffic decides</h1>
      <p class="lead">Each new connection of this server gets one of several settings by a secret coin. What becomes of it says whether the difference is real, for the users that you have.</p>
      <UnderWay />
      <Begin />
      <Past />
    </>
  );
}

/** What is assigned now, whoever began it. */
function UnderWay() {
  const [status, again] = useGetAgain<TrafficList>("traffic", ASK_EVERY);
  return (
    <Section id="under-way" title="Under way">
      <Fetched of={status} again={again}>
        {({ running }) =>
          running.length === 0 ? (
            <p class="quiet">No connections are being assigned.</p>
          ) : (
            <ul class="findings">
              {running.map((one) => (
                <li key={one.id}>
                  <p>
                    <a href={leadsTo({ id: one.id, kind: "traffic" })}>
                      Port {one.ports.join(", ")}: {one.arms.join(" | ")}
                    </a>
                  </p>
                  <p>{one.headline ?? "Nothing can be said yet."}</p>
                  <Tally of={one} />
                </li>
              ))}
            </ul>
          )
        }
      </Fetched>
    </Section>
  );
}

function Tally({ of: { tally, elapsed_s } }: { of: Status }) {
  const assigned = (tally?.arms ?? []).reduce((sum, arm) => sum + (arm.assigned ?? 0), 0);
  return (
    <p class="quiet">
      For {duration(elapsed_s)}
      {tally && `: ${count(assigned)} of ${count(tally.seen ?? 0)} connections assigned, ${count(tally.left_alone ?? 0)} left alone`}.
    </p>
  );
}

const UNITS: [string, string][] = [
  ["prefix", "clients of one network, for an epoch"],
  ["connection", "each connection by itself"],
  ["slot", "everybody, for an epoch"],
];

/** What can be chosen besides, by its name in a request. */
const OPTIONS: [string, string][] = [
  ["mixed", "Epochs for nobody, half and everybody: shows what it does to everybody"],
  ["private", "Clients in private ranges take part"],
  ["no_ramp", "Half of the connections at once, instead of 5 %, 25 % and then 50 %"],
  ["identical", "A/A test: the same settings twice"],
];

/** What is asked for, before anything is done. */
function Begin() {
  const [{ ports, levels, unit, epoch, lasts, options, run: named }, set] = useQuery({ ports: "443", levels: "initcwnd=10,32", unit: "prefix", epoch: "", lasts: "", options: "", run: "" });
  const chosen = options.split(" ").filter(Boolean);
  const lists = levels.split(/\s+/).filter(Boolean);
  const numbers = ports.split(/[\s,]+/).filter(Boolean);
  const request = {
    ports: numbers.map(Number),
    levels: lists,
    unit,
    ...(epoch.trim() && { epoch: epoch.trim() }),
    ...(lasts.trim() && { for: lasts.trim() }),
    ...Object.fromEntries(chosen.map((option) => [option, true])),
  };
  const flags: [string, string][] = [...numbers.map((port): [string, string] => ["--port", port]), ...lists.map((list): [string, string] => ["--levels", list])];
  const text = `sudo ${command("traffic", "start", ...flags, ["--unit", unit === "prefix" ? "" : unit], ["--epoch", epoch.trim()], ["--for", lasts.trim()], ...chosen.map((option) => `--${option.replace("_", "-")}`))}`;
  const asked = JSON.stringify(request);
  const [plan, setPlan] = useState<{ of: string; plan: Plan } | null>(null);
  const [busy, problem, doing] = useDoing();
  const [run, setRun] = useRun(named || null);
  const start = (): Promise<void> =>
    post<Run>("traffic", request).then((run) => {
      setRun(run);
      set({ run: run.id }, "push");
    });
  return (
    <Section id="begin" title="Begin one">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          doing(() => post<Plan>("traffic/plan", request).then((plan) => setPlan({ of: asked, plan })));
        }}
      >
        <div class="row">
          <Text label="Ports of the server" value={ports} set={(ports) => set({ ports })} placeholder="443" />
          <Text
            label="Settings and their levels"
            size="long"
            value={levels}
            set={(levels) => set({ levels })}
            placeholder="initcwnd=10,32 cc=cubic,bbr"
            hint="The first level is what the others are compared with; one alone is compared with the current settings"
          />
        </div>
        <div class="row">
          <Choice label="Who shares a coin" size="long" value={unit} set={(unit) => set({ unit }, "push")} options={UNITS} />
          <Text label="An epoch lasts" value={epoch} set={(epoch) => set({ epoch })} placeholder="10m" />
          <Text label="For how long" value={lasts} set={(lasts) => set({ lasts })} placeholder="until stopped" />
        </div>
        <div class="checks">
          {OPTIONS.map(([option, label]) => (
            <Check key={option} label={label} value={chosen.includes(option)} set={(on) => set({ options: [...chosen.filter((one) => one !== option), ...(on ? [option] : [])].sort().join(" ") })} />
          ))}
        </div>
        <div class="buttons">
          <button type="submit" class="primary" disabled={busy}>
            {busy ? "Looking …" : "Whom would it touch?"}
          </button>
        </div>
        <AsCommand text={text} />
      </form>
      {problem && <Trouble problem={problem} />}
      {plan && plan.of === asked && <Planned plan={plan.plan} text={text} start={start} />}
      {run === "gone" && <p class="note">{forgotten("experiment")} A server that ends takes along what it began. What was recorded stands below.</p>}
      {run && run !== "gone" && <Started key={run.id} run={run} />}
    </Section>
  );
}

/** What would be done, and the way to have it done: here where that works, in a terminal anywhere. */
function Planned({ plan, text, start }: { plan: Plan; text: string; start: () => Promise<unknown> }) {
  const [busy, problem, doing] = useDoing();
  const works = plan.backends.some(({ works }) => works);
  const rate = plan.connections_per_hour;
  const needs = (connections: number, hours: number) => (
    <>
      {count(Math.round(connections))} connections
      {rate > 0 && <span class="sub">{span(hours * 3600)}</span>}
    </>
  );
  return (
    <div class="card planned" id="planned">
      <h3>It would touch {plan.whom}.</h3>
      <Table
        label="Shares of the first connections"
        rows={plan.arms}
        columns={[
          { name: "Setting", cell: ({ name }) => name },
          { name: "Share at first", cell: ({ share }) => percent(share) },
        ]}
      />
      {plan.receiver_settings && <p class="note">{plan.receiver_settings.text}</p>}
      {plan.expects.length > 0 && (
        <Table
          label="How long it takes"
          rows={plan.expects}
          columns={[
            { name: "To show a gain of", cell: ({ gain }) => change(1 + gain) },
            { name: "Half of the experiments need", cell: ({ connections, hours }) => needs(connections, hours) },
            { name: "Four of five need", cell: ({ connections_80, hours_80 }) => needs(connections_80, hours_80) },
          ]}
        />
      )}
      <p class="quiet">{rate > 0 ? `This network namespace accepts about ${count(Math.round(rate))} connections an hour, of all ports.` : "No connection came during the look of a second, so the time isn't known."}</p>
      <Table
        label="What can assign connections here"
        rows={plan.backends}
        columns={[
          { name: "Backend", cell: ({ name }) => name },
          { name: "Here", cell: ({ works }) => <span class={`badge ${works ? "good" : ""}`}>{works ? "works" : "doesn't work"}</span> },
          { name: "Found", cell: ({ found }) => plain(found) },
        ]}
      />
      {works ? (
        <>
          <Token what="Assigning settings to this server's own connections" />
          <div class="buttons">
            <button type="button" class="primary" disabled={busy} onClick={() => doing(start)}>
              Start
            </button>
          </div>
          {problem && <Trouble problem={problem} />}
        </>
      ) : (
        <p class="note">This page's server can't assign connections. Run the command on the server as root; the experiment shows here if root's journal is the one that this page reads.</p>
      )}
      <AsCommand title="What to type on the server" open={!works} text={text} />
    </div>
  );
}

/** What is heard of one that this page began. */
interface Heard {
  id: string | null;
  text: string;
  problem: Problem | null;
}

/** One that this page began: it leads to its report once it has a name. */
function Started({ run }: { run: Run }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const busy = useUnderWay(run);
  const heard = useEvents<Heard>(run, { id: run.experiment ?? null, text: "It begins.", problem: null }, (heard, { kind, data }) => {
    const of = data as { id: string; whom: string; headline: string; open: number; error: Problem | null };
    if (kind === "begin") return { ...heard, id: of.id, text: `It touches ${of.whom}.` };
    if (kind === "progress") return { ...heard, text: of.headline };
    if (kind === "draining") return { ...heard, text: `Nothing more is assigned; ${of.open} connections may end.` };
    return kind === "end" ? { ...heard, problem: of.error } : heard;
  });
  return (
    <Section id="started" class="verdict" title={busy ? "Connections are being assigned" : "It has ended"}>
      <p>{heard.text}</p>
      {heard.problem && <Trouble problem={heard.problem} />}
      {problem && <Trouble problem={problem} />}
      <div class="buttons">
        {heard.id && (
          <a class="button" href={leadsTo({ id: heard.id, kind: "traffic" })}>
            See how it stands
          </a>
        )}
        {busy && (
          <button type="button" onClick={() => remove(`runs/${run.id}`).catch((error) => setProblem(problemOf(error)))}>
            Stop
          </button>
        )}
      </div>
    </Section>
  );
}

/** Those of the journal. */
function Past() {
  const [journal, again] = useGet<Journal>("journal?kind=traffic&limit=200");
  return (
    <Section id="past" title="Experiments on connections">
      <Fetched of={journal} again={again}>
        {({ experiments }) =>
          experiments.length === 0 ? (
            <p class="quiet">None yet.</p>
          ) : (
            <Table
              label="Experiments on connections"
              rows={experiments}
              columns={[
                {
                  name: "Experiment",
                  cell: ({ id, target, comment }) => (
                    <>
                      <a href={leadsTo({ id, kind: "traffic" })} aria-label={`${target}: ${id}`}>
                        {target}
                      </a>
                      {comment && <span class="sub comment">{comment}</span>}
                      <span class="sub mono">{id}</span>
                    </>
                  ),
                },
                { name: "Begun", cell: ({ started_unix_us }) => <span class="nowrap">{when(started_unix_us)}</span> },
                {
                  name: "Verdict",
                  cell: (one) => (
                    <>
                      <span class={`badge ${outcome(one) === "set" ? "good" : ""}`}>{OUTCOMES[outcome(one)] ?? outcome(one)}</span>
                      {one.answer && <span class="sub">{one.answer}</span>}
                    </>
                  ),
                },
              ]}
            />
          )
        }
      </Fetched>
    </Section>
  );
}

/** One experiment, as it stands or ended. */
function One({ id }: { id: string }) {
  const [status, askStatus] = useGetAgain<TrafficList>("traffic", ASK_EVERY);
  const running = status.state === "done" ? status.data.running.find((one) => one.id === id) : undefined;
  // One that has just begun has written nothing down.
  const written = status.state !== "loading" && !(running && !running.tally);
  const [report, again] = useGetAgain<Report>(written ? `traffic/${encodeURIComponent(id)}` : null, running ? ASK_EVERY : null);
  const stopped = (): void => {
    askStatus();
    again();
  };
  return (
    <>
      <h1>Real traffic</h1>
      <p class="lead mono">{id}</p>
      {running && <Stop one={running} stopped={stopped} />}
      {!running && report.state === "done" && <Actions id={id} report={report.data} />}
      <Fetched of={report} again={again}>
        {(report) => <Verdict report={report} running={running !== undefined} />}
      </Fetched>
      <AsCommand text={`windtunnel traffic report ${word(id)}`} />
    </>
  );
}

function Stop({ one, stopped }: { one: Status; stopped: () => void }) {
  const [busy, problem, doing] = useDoing();
  return (
    <Section id="under-way" class="progress" title={`Connections to port ${one.ports.join(", ")} are being assigned`}>
      <Tally of={one} />
      <Token what="Ending it" />
      <div class="buttons">
        <button type="button" disabled={busy} onClick={() => doing(() => remove(`traffic/${encodeURIComponent(one.id)}`).then(stopped))}>
          {busy ? "Ending …" : "Stop it"}
        </button>
      </div>
      {problem && (
        <>
          <Trouble problem={problem} />
          <AsCommand title="What to type on the server" open text={`sudo windtunnel traffic stop ${word(one.id)}`} />
        </>
      )}
    </Section>
  );
}
