/** What the page calls what the command line has a flag for. */
const FIELDS: Record<string, string> = {
  encap: "Encapsulation",
  mtu: "MTU",
  proto: "Transport",
  ip: "IP",
  "tcp-options": "TCP options",
  "link-rate": "Link rate",
  "link-mtu": "Link MTU",
  budget: "Budget",
  trial: "Each trial",
  workload: "Workload",
  direction: "Direction",
  knobs: "What to vary",
  levels: "the levels",
  to: "Where",
  value: "Outcomes",
  factor: "Settings",
  block: "Blocks",
  filter: "Filter",
  lab: "Path",
  rate: "Rate",
  rtt: "RTT",
  loss: "Loss",
  queue: "Queue",
  size: "Transfer",
  time: "How much",
  framing: "Framing",
  hold: "Fixed settings",
  baseline: "Baseline",
  arm: "Settings that belong together",
  arms: "Settings that belong together",
  goal: "Goal",
  comment: "Note",
  encapsulation: "Encapsulation",
  json: "",
};

/** Flags that are buttons or choices of the page, or that only a terminal has, with what is said instead. */
const WAYS: [RegExp, string][] = [
  [/--resume goes on( later)?/g, "windtunnel tune in a terminal can go on with it$1"],
  [/try --direction (up|down)(, or [^.;]*)?/g, "choose “$1” as Direction"],
  [/take --unit slot/g, "choose “everybody, for an epoch”"],
  [/--allow-host-wide allows it for each trial/g, "windtunnel tune in a terminal can allow it for each trial"],
  [/fewer --knobs and --levels/g, "fewer settings to vary"],
  [/--screen --levels (\S+) --levels (\S+)/g, "a screen of levels such as $1 and $2"],
  [/--confirm-within(?:[ =]\S+)?/g, "the time to confirm"],
];

/** A whole command stands as it is to be typed. */
const COMMAND = /((?:sudo )?windtunnel [a-z][a-z-]*(?: [^ ;]*[^ ;.,])*)/;

/** A message without flags and placeholders: those are the command line's. */
export function plain(text: string): string {
  return text
    .split(COMMAND)
    .map((part) => (COMMAND.test(part) ? part : spoken(part)))
    .join("");
}

function spoken(text: string): string {
  for (const [flags, words] of WAYS) text = text.replace(flags, words);
  return text
    .replace(/^([a-z][a-z_-]*): /, (all, field: string) => (FIELDS[field] ? `${FIELDS[field]}: ` : all))
    .replace(/invalid value ('[^']*'|"[^"]*") for '--([a-z-]+)(?: <[^>]*>)?'/g, (_, value: string, flag: string) => `${FIELDS[flag] ?? flag}: ${value} is invalid`)
    .replace(/--([a-z][a-z-]*)(?:[ =]<?[A-Z][A-Z_]*>?)?/g, (_, flag: string) => FIELDS[flag] ?? flag.replaceAll("-", " "));
}
