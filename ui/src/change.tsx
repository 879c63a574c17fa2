import { useEffect, useState } from "preact/hooks";
import { post, setToken, token } from "./api";
import { value } from "./format";
import { Field, Section, Table, Text, Trouble, useDoing } from "./parts";
import type { Knob } from "./views/host";

/** A change that is put back unless it is confirmed. */
export interface Waiting {
  id: string;
  seconds_left: number | null;
}

interface Planned {
  key: string;
  old: unknown;
  new: unknown;
  target: string;
  unchanged: boolean;
  why: string;
}

interface Plan {
  changes: Planned[];
  commands: string[];
  risks: { key: string; text: string }[];
}

/** The token, where the page hasn't been opened with it. */
export function Token({ what = "Changing this host" }: { what?: string }) {
  const [known, setKnown] = useState(token() !== "");
  const [text, setText] = useState("");
  if (known) return null;
  const keep = (): void => {
    setToken(text);
    setKnown(text.trim() !== "");
  };
  return (
    <div class="row">
      <Field label="Token" hint={`${what} needs what \`windtunnel web\` printed in its terminal`}>
        <input type="password" autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} onBlur={keep} />
      </Field>
    </div>
  );
}

/** Counts down until a change is put back; confirms it or undoes it at once. */
export function Pending({ waiting, done }: { waiting: Waiting; done: () => void }) {
  const [end] = useState(() => performance.now() + (waiting.seconds_left ?? 0) * 1e3);
  const [left, setLeft] = useState(waiting.seconds_left ?? 0);
  const [busy, problem, run] = useDoing();
  useEffect(() => {
    const timer = setInterval(() => {
      const left = Math.max(0, Math.ceil((end - performance.now()) / 1e3));
      setLeft(left);
      if (left === 0) {
        clearInterval(timer);
        // The guard needs a moment to put everything back.
        setTimeout(done, 1500);
      }
    }, 250);
    return () => clearInterval(timer);
  }, [end]);
  const answer = (verb: string): void => run(() => post(`settings/${verb}`, { id: waiting.id }).then(done));
  return (
    <Section
      class="pending"
      id="pending"
      title={
        <>
          Change {waiting.id} is put back in <span class="mono">{left} s</span>
        </>
      }
    >
      <p>If this host still works as you want, confirm it; then it also survives a reboot.</p>
      <Token />
      <div class="buttons">
        <button type="button" class="primary" disabled={busy} onClick={() => answer("confirm")}>
          Confirm
        </button>
        <button type="button" disabled={busy} onClick={() => answer("undo")}>
          Undo now
        </button>
      </div>
      {problem && <Trouble problem={problem} />}
    </Section>
  );
}

/** Plans a change, shows what it would do, and applies it. */
export function Change({ knobs, done }: { knobs: Knob[]; done: () => void }) {
  // A verdict's settings come along in the address.
  const wanted = new URLSearchParams(location.search);
  const [key, setKey] = useState(wanted.get("change") ?? "");
  const [level, setLevel] = useState(wanted.get("to") ?? "");
  const [to, setTo] = useState("");
  const [plan, setPlan] = useState<Plan | null>(null);
  const [busy, problem, run] = useDoing();
  const names = [...new Set(knobs.filter((knob) => knob.scope !== "socket").map((knob) => knob.key))].sort();
  const help = knobs.find((knob) => knob.key === key);
  const request = { settings: { [key]: level }, ...(to.trim() ? { to: to.trim() } : {}) };
  const apply = (): void => {
    const applied = (): void => {
      setPlan(null);
      done();
    };
    run(() => post("settings/apply", { ...request, confirm_within_s: 60 }).then(applied));
  };
  const edit = (set: (text: string) => void) => (text: string) => {
    set(text);
    setPlan(null);
  };
  return (
    <Section id="change" title="Change">
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          run(() => post<Plan>("settings/plan", request).then(setPlan));
        }}
      >
        <Field label="Setting">
          <select value={key} onChange={(event) => edit(setKey)(event.currentTarget.value)} required>
            <option value="">choose …</option>
            {names.map((name) => (
              <option>{name}</option>
            ))}
          </select>
        </Field>
        <Field label="New value" {...(help ? { hint: `now ${value(help.value)}` } : {})}>
          <input value={level} onInput={(event) => edit(setLevel)(event.currentTarget.value)} class="short" required />
        </Field>
        <Text label="Where" hint="host, default, 192.0.2.1, eth0; empty: the narrowest" value={to} set={edit(setTo)} />
        <button type="submit" disabled={busy}>
          Show the plan
        </button>
      </form>
      {problem && <Trouble problem={problem} />}
      {plan && <ShowPlan plan={plan} busy={busy} apply={apply} />}
    </Section>
  );
}

function ShowPlan({ plan, busy, apply }: { plan: Plan; busy: boolean; apply: () => void }) {
  return (
    <div class="card">
      <Table
        label="What would change"
        rows={plan.changes}
        columns={[
          { name: "Setting", cell: (change) => change.key },
          { name: "Now", cell: (change) => value(change.old) },
          { name: "Then", cell: (change) => (change.unchanged ? "stays" : value(change.new)) },
          {
            name: "Where",
            cell: (change) => (
              <>
                {change.target}
                <span class="sub">{change.why}</span>
              </>
            ),
          },
        ]}
      />
      {plan.risks.map((risk) => (
        <p class="note">
          {risk.key}: {risk.text}
        </p>
      ))}
      {plan.commands.length > 0 && <pre class="mono">{plan.commands.join("\n")}</pre>}
      <Token />
      <button type="button" class="primary" disabled={busy || plan.commands.length === 0} onClick={apply}>
        Apply, put back after 60 s unless confirmed
      </button>
    </div>
  );
}
