import { useEffect, useRef, useState } from "preact/hooks";
import { get, onRefused, post, setToken, token } from "./api";
import { useConnection } from "./connection";
import { value } from "./format";
import { changed, onChanged } from "./host";
import { Field, Section, Table, Text, Trouble, useDoing } from "./parts";
import type { Knob } from "./views/host";
import type { Pending as Waiting, PendingChange, SettingsPlan as Plan } from "./schema";

/** The token, where the page hasn't been opened with it, or with that of another server. */
export function Token({ what = "Changing this host" }: { what?: string }) {
  const [known, setKnown] = useState(token() !== "");
  const [refused, setRefused] = useState(false);
  const [text, setText] = useState("");
  // The field stays for as long as the view does: should it vanish while one reaches for a button, the button would move away.
  useEffect(
    () =>
      onRefused(() => {
        setKnown(false);
        setRefused(true);
        setText("");
      }),
    [],
  );
  if (known) return null;
  const edit = (text: string): void => {
    setText(text);
    setToken(text);
  };
  return (
    <div class="row">
      <Field label="Token" hint={`${refused ? "The last one was missing or wrong. " : ""}${what} needs what “windtunnel web” printed in its terminal`}>
        <input type="password" autocomplete="off" value={text} onInput={(event) => edit(event.currentTarget.value)} />
      </Field>
    </div>
  );
}

/** How often it is asked whether a change waits. */
const ASK_EVERY = 3000;

/** On every view: the change that waits for its confirmation, and what became of it. */
export function PendingBar() {
  const [waiting, setWaiting] = useState<(Waiting & { end: number }) | null>(null);
  const [said, setSaid] = useState("");
  const { turn } = useConnection();
  const before = useRef<Waiting | null>(null);
  const ended = useRef("");
  const ask = (): void => {
    get<PendingChange>("settings/pending").then(({ pending }) => {
      const last = before.current;
      before.current = pending ?? null;
      setWaiting((old) => (pending ? { ...pending, end: old?.id === pending.id ? old.end : performance.now() + pending.seconds_left * 1e3 } : null));
      if (last && last.id !== pending?.id) {
        setSaid(ended.current || `Change ${last.id} wasn't confirmed here in time: unless it was confirmed elsewhere, it is put back.`);
        ended.current = "";
        changed();
      }
      if (pending && pending.id !== last?.id) setSaid("");
    }, () => {});
  };
  useEffect(() => {
    ask();
    const timer = setInterval(() => document.hidden || ask(), ASK_EVERY);
    const leave = onChanged(ask);
    return () => {
      clearInterval(timer);
      leave();
    };
  }, [turn]);
  if (waiting) {
    return (
      <Pending
        key={waiting.id}
        waiting={waiting}
        done={(what) => {
          ended.current = what;
          ask();
        }}
      />
    );
  }
  if (!said) return null;
  return (
    <div class="bar-note" role="status">
      {said}{" "}
      <button type="button" class="link" onClick={() => setSaid("")}>
        Dismiss
      </button>
    </div>
  );
}

/** Counts down until a change is put back; confirms it or undoes it at once. */
function Pending({ waiting, done }: { waiting: Waiting & { end: number }; done: (what: string) => void }) {
  const seconds = (): number => Math.max(0, Math.ceil((waiting.end - performance.now()) / 1e3));
  const [left, setLeft] = useState(seconds);
  const [busy, problem, run] = useDoing();
  useEffect(() => {
    const title = document.title;
    const timer = setInterval(() => {
      const left = seconds();
      setLeft(left);
      document.title = `${left} s to confirm – Windtunnel`;
      if (left === 0) done("");
    }, 500);
    return () => {
      clearInterval(timer);
      document.title = title;
    };
  }, [waiting.id]);
  const answer = (verb: string, what: string): void => run(() => post(`settings/${verb}`, { id: waiting.id }).then(() => done(what)));
  return (
    <section class="pending" aria-labelledby="pending">
      <h2 id="pending">
        Change {waiting.id} is put back in <span class="mono">{left} s</span>
      </h2>
      <p>If this host still works as you want, confirm it; then it also survives a reboot.</p>
      <Token />
      <div class="buttons">
        <button type="button" class="primary" disabled={busy} onClick={() => answer("confirm", `Change ${waiting.id} is confirmed and survives a reboot.`)}>
          Confirm
        </button>
        <button type="button" disabled={busy} onClick={() => answer("undo", `Change ${waiting.id} is undone: everything is as before.`)}>
          Undo now
        </button>
      </div>
      {problem && <Trouble problem={problem} />}
    </section>
  );
}

/** Plans a change, shows what it would do, and applies it. */
export function Change({ knobs }: { knobs: Knob[] }) {
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
      changed();
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
        <Text label="Where" hint="Optional: host, default, an address or a device. Empty: as little as possible is changed." value={to} set={edit(setTo)} />
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
