import { count, evidence, span, times } from "../format";
import { AsCommand, word as shellWord } from "../keep";
import { gain, OUTCOMES } from "../outcome";
import { Choice, Fetched, Section, Table, useGet, useGetAgain, type Column } from "../parts";
import { useQuery } from "../route";
import { plain } from "../words";
import type { FleetStatusAnswer as Fleet, JobLine as Job, Rollout, RolloutPhase, SharedSetting, SideBySideAnswer as Found } from "../schema";

/** How often it is asked how a fleet stands. */
const ASK_EVERY = 10_000;
/** An agent of which nothing was heard for so long is away, seconds. */
const AWAY = 600;

/** Many hosts: what came of each path, and who waits for what. */
export function Fleet() {
  const [fleet, again] = useGetAgain<Fleet>("fleet", ASK_EVERY);
  return (
    <>
      <h1>Fleet</h1>
      <p class="lead">What each host measured to each target, what came of it, and who waits for which link.</p>
      <Fetched of={fleet} again={again}>
        {(fleet) => <Shown fleet={fleet} />}
      </Fetched>
    </>
  );
}

function Shown({ fleet }: { fleet: Fleet }) {
  const [{ mesh }, set] = useQuery({ mesh: "" });
  const meshes = [...new Set(fleet.jobs.map(({ mesh }) => mesh))].filter(Boolean);
  const jobs = mesh === "" ? fleet.jobs : fleet.jobs.filter((job) => job.mesh === mesh);
  const asked = mesh || (meshes.length === 1 ? meshes[0]! : "");
  return (
    <>
      {fleet.server === null || fleet.server === undefined ? (
        <p class="note">
          This page reads one journal, without a fleet: of each host and target you see the newest verdict on a real path. Start it with <code>windtunnel web --journal postgresql://USER@HOST/DATABASE</code> to see a fleet.
        </p>
      ) : (
        <p class="quiet">
          Its server: <code>{fleet.server}</code>
        </p>
      )}
      {meshes.length > 1 && <Choice label="Mesh" value={mesh} set={(mesh) => set({ mesh }, "push")} options={[["", "all"], ...meshes.map((name): [string, string] => [name, name])]} />}
      <Matrix jobs={jobs} />
      <Trouble jobs={jobs} />
      <Changes rollouts={fleet.rollouts} />
      {fleet.server && <Turns fleet={fleet} />}
      {fleet.server && <Agents fleet={fleet} />}
      {fleet.server && asked && <Everywhere key={asked} mesh={asked} server={fleet.server} />}
      <AsCommand text={fleet.server ? `windtunnel fleet status ${shellWord(fleet.server)}` : "windtunnel journal list"} />
    </>
  );
}

/** What came of a job, in a word. */
function word({ action, verdict, state }: Job): string {
  if (action) return OUTCOMES[action] ?? action;
  if (verdict) return verdict === "faster" ? OUTCOMES.set! : OUTCOMES.undecided!;
  return state === "refused" || state === "failed" ? state : "nothing yet";
}

/** What a job does now, where that isn't done. */
function now({ state, due_s, verdict }: Job): string | null {
  if (state === "waiting") return typeof due_s === "number" && due_s > 0 ? `due in ${span(due_s)}` : "due now";
  if (state === "running") return "measuring now";
  return state === "done" || !verdict ? null : state;
}

/** The mesh of a job, where jobs of several are shown. */
function meshOf(job: Job, jobs: Job[]): string | null {
  return jobs.some(({ mesh }) => mesh !== job.mesh) ? job.mesh : null;
}

function Cell({ job, mesh }: { job: Job; mesh: string | null }) {
  const what = word(job);
  const badge = <span class={`badge ${what === OUTCOMES.set ? "good" : what === "refused" || what === "failed" ? "bad" : ""}`}>{what}</span>;
  return (
    <>
      {mesh && <span class="sub">{mesh}</span>}
      {job.experiment ? (
        <a href={`/report/${encodeURIComponent(job.experiment)}`} aria-label={`${job.agent} to ${job.target}${mesh ? ` by ${mesh}` : ""}: ${what}`}>
          {badge}
        </a>
      ) : (
        badge
      )}
      {typeof job.change_bp === "number" && <strong class="nowrap"> {gain(job.change_bp)}</strong>}
      {job.setting && <span class="sub">{job.setting}</span>}
      {typeof job.age_s === "number" && <span class="sub">{span(job.age_s)} ago</span>}
      {now(job) && <span class="sub">{now(job)}</span>}
    </>
  );
}

/** Hosts by targets. */
function Matrix({ jobs }: { jobs: Job[] }) {
  if (jobs.length === 0) {
    return (
      <Section id="matrix" title="Hosts and targets">
        <p class="quiet">Nothing is measured yet.</p>
      </Section>
    );
  }
  const sites = [...new Set(jobs.map(({ agent }) => agent))].sort();
  const targets = [...new Set(jobs.map(({ target }) => target))].sort();
  const faster = jobs.filter((job) => word(job) === OUTCOMES.set).length;
  const columns: Column<string>[] = targets.map((target) => ({
    name: target,
    cell: (site) => {
      const own = jobs.filter((job) => job.agent === site && job.target === target);
      return own.length === 0 ? "–" : own.map((job) => <div key={job.mesh}>{<Cell job={job} mesh={meshOf(job, jobs)} />}</div>);
    },
  }));
  return (
    <Section id="matrix" title="Hosts and targets">
      <p>
        {jobs.length === 1 ? "1 path" : `${count(jobs.length)} paths`} of {sites.length === 1 ? "1 host" : `${count(sites.length)} hosts`}: a setting is faster on {count(faster)}.
      </p>
      <Table label="Verdicts by host and target" rows={sites} columns={[{ name: "Host", cell: (site) => site }, ...columns]} />
    </Section>
  );
}

/** What was refused or failed, and why. */
function Trouble({ jobs }: { jobs: Job[] }) {
  const wrong = jobs.filter(({ reason }) => reason !== "");
  if (wrong.length === 0) return null;
  return (
    <Section id="reasons" title="What waits or was refused, and why">
      <ul class="findings">
        {wrong.map((job) => (
          <li key={`${job.mesh} ${job.agent} ${job.target}`} class={job.state === "waiting" ? "warning" : "error"}>
            <span class="badge">{job.state}</span> <strong>{job.agent}</strong> to <span class="mono">{job.target}</span>
            {meshOf(job, jobs) && ` by ${job.mesh}`}: {plain(job.reason)}
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** What is said of a host in this phase of a change: `good`, `bad` or neither. */
function mood(phase: RolloutPhase): string {
  return phase === "confirmed" ? "good" : phase === "failed" || phase === "reverted" || phase === "refused" ? "bad" : "";
}

/** Changes of settings, the newest first, and how far each host is with them. */
function Changes({ rollouts }: { rollouts: Rollout[] }) {
  if (rollouts.length === 0) return null;
  return (
    <Section id="changes" title="Changes of settings">
      <Table
        label="Changes of settings by host"
        rows={rollouts.flatMap((change) => change.hosts.map((host) => ({ change, host })))}
        columns={[
          { name: "Change", cell: ({ change }) => change.name },
          {
            name: "As a whole",
            cell: ({ change }) => (
              <>
                <span class={`badge ${change.state === "done" ? "good" : ""}`}>{change.state}</span>
                {change.reason && <span class="sub">{plain(change.reason)}</span>}
              </>
            ),
          },
          { name: "Wave", cell: ({ host }) => count(host.wave) },
          { name: "Host", cell: ({ host }) => host.agent },
          { name: "There", cell: ({ host }) => <span class={`badge ${mood(host.phase)}`}>{host.phase}</span> },
          { name: "Why", cell: ({ host }) => (host.reason ? plain(host.reason) : "–") },
        ]}
      />
    </Section>
  );
}

/** Who has which link, and who waits for it. */
function Turns({ fleet }: { fleet: Fleet }) {
  const has = (wanted: string[]): string[] => [...new Set(fleet.turns.filter(({ granted, alone, shared }) => granted && [...alone, ...shared].some((one) => wanted.includes(one))).map(({ agent }) => agent))];
  return (
    <Section id="turns" title="Turns">
      {fleet.turns.length === 0 ? (
        <p class="quiet">Nobody has a turn or waits for one.</p>
      ) : (
        <Table
          label="Who has which turn, and who waits"
          rows={fleet.turns}
          columns={[
            { name: "Host", cell: ({ agent }) => agent },
            { name: "Turn", cell: ({ granted }) => <span class={`badge ${granted ? "good" : ""}`}>{granted ? "has it" : "waits"}</span> },
            { name: "Since", cell: ({ since_s }) => span(since_s) },
            { name: "Alone on", cell: ({ alone }) => alone.join(", ") || "–" },
            { name: "With others on", cell: ({ shared }) => shared.join(", ") || "–" },
            { name: "Waits for", cell: ({ granted, alone, shared }) => (granted ? "–" : has([...alone, ...shared]).join(", ") || "who asked before") },
          ]}
        />
      )}
    </Section>
  );
}

/** How far a clock is off, in hundredths of a second; less than half of one is none, and has no sign. */
function offset(seconds: number): string {
  return `${(Math.abs(seconds) < 0.005 ? 0 : seconds).toFixed(2)} s`.replace("-", "−");
}

function Agents({ fleet }: { fleet: Fleet }) {
  return (
    <Section id="agents" title="Agents">
      {fleet.agents.length === 0 ? (
        <p class="quiet">
          Nobody is in the fleet yet: <code>windtunnel fleet add HOST URL</code>
        </p>
      ) : (
        <Table
          label="Agents"
          rows={fleet.agents}
          columns={[
            { name: "Host", cell: ({ agent }) => agent },
            {
              name: "Heard of",
              cell: ({ seen_s }) => (typeof seen_s !== "number" ? "never" : seen_s > AWAY ? <span class="badge bad">{span(seen_s)} ago</span> : `${span(seen_s)} ago`),
            },
            { name: "Clock off by", cell: ({ skew_s }) => (typeof skew_s === "number" ? offset(skew_s) : "–") },
            { name: "Experiments to push", cell: ({ outbox }) => count(outbox) },
            { name: "Version", cell: ({ version }) => version || "–" },
          ]}
        />
      )}
    </Section>
  );
}

/** What all hosts of a mesh say together. */
function Everywhere({ mesh, server }: { mesh: string; server: string }) {
  const [found, again] = useGet<Found>(`fleet/report?${new URLSearchParams({ mesh })}`);
  const shown = (setting: SharedSetting): string => (setting.shown_in.length === 0 ? "none yet" : setting.shown_in.length === setting.each.length ? `all ${setting.each.length}` : `${setting.shown_in.length} of ${setting.each.length}`);
  return (
    <Section id="everywhere" title={`Where a setting helps, of ${mesh}`}>
      <Fetched of={found} again={again}>
        {({ settings }) =>
          settings.length === 0 ? (
            <p class="quiet">No setting was tried by two hosts or more.</p>
          ) : (
            <Table
              label="Settings over all hosts"
              rows={settings}
              columns={[
                { name: "Setting", cell: ({ label }) => label },
                { name: "Somewhere", cell: (one) => `${evidence(one.evidence)} of ${evidence(one.needed)}` },
                { name: "Everywhere", cell: (one) => `${evidence(one.everywhere)} of ${evidence(one.needed)}` },
                { name: "Shown at", cell: shown },
                {
                  name: "On a new host",
                  cell: ({ elsewhere }) =>
                    elsewhere ? (
                      <>
                        {times(elsewhere.ratio)} ({times(elsewhere.low)} to {times(elsewhere.high)})<span class="sub">{Math.round(elsewhere.heterogeneity * 100)} % of the spread is no noise</span>
                      </>
                    ) : (
                      "not known"
                    ),
                },
                { name: "Taken together by", cell: ({ combined }) => combined },
              ]}
            />
          )
        }
      </Fetched>
      <AsCommand text={`windtunnel fleet report ${shellWord(mesh)} ${shellWord(server)}`} title="The same as a command, for this mesh" />
    </Section>
  );
}
