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
  json: "",
};

/** A message without flags and placeholders: those are the command line's. */
export function plain(text: string): string {
  return text
    .replace(/invalid value ('[^']*'|"[^"]*") for '--([a-z-]+)(?: <[^>]*>)?'/g, (_, value: string, flag: string) => `${FIELDS[flag] ?? flag}: ${value} is invalid`)
    .replace(/--([a-z][a-z-]*)(?:[ =]<?[A-Z][A-Z_]*>?)?/g, (_, flag: string) => FIELDS[flag] ?? flag.replaceAll("-", " "));
}
