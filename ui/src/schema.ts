// Made from crates/web/openapi.json: UPDATE_GOLDEN=1 cargo test -p wt-web

/** A network device. */
export type Adapter = {
  /** Addresses with the bits of their networks. */
  addresses: Array<string>;
  /** Where it is plugged in. */
  bus?: string | null;
  /** Whether there is a signal. */
  carrier: boolean;
  /** Whether the default route leads through it. */
  default_route: boolean;
  /** The driver, or the kind of a virtual device. */
  driver?: string | null;
  /** Version of the driver. */
  driver_version?: string | null;
  /** `full` or `half`. */
  duplex?: string | null;
  /** Version of the firmware. */
  firmware?: string | null;
  /** Its index. */
  index: number;
  /** Hardware address. */
  mac?: string | null;
  /** Who configures it. */
  managed_by?: string | null;
  /** Largest MTU. */
  max_mtu?: number | null;
  /** Least MTU. */
  min_mtu?: number | null;
  /** Largest packet, bytes. */
  mtu: number;
  /** Its name. */
  name: string;
  /** Offloads by our names. */
  offloads: Record<string, boolean>;
  /** Root qdisc. */
  qdisc: string;
  rings?: RingRow | null;
  /** Mbit/s. */
  speed_mbps?: number | null;
  /** Queue length, packets. */
  txqueuelen: number;
  /** Whether it is switched on. */
  up: boolean;
};

/** An agent as it stands. */
export type AgentLine = {
  /** Its name. */
  agent: string;
  /** Experiments that aren't here yet. */
  outbox: number;
  /** How long ago it was heard of, seconds; nothing means never. */
  seen_s?: number | null;
  /** Its wall clock less the server's, seconds; right to within a round trip. */
  skew_s?: number | null;
  /** Its version of the program. */
  version: string;
};

/** What a file allows one to say. */
export type Analysed = {
  /** As `windtunnel analyse --json` prints it. */
  answer: Record<string, unknown>;
  /** Its plots. */
  charts: Array<NamedChart>;
  /** What it was. */
  kind: FileKind;
  /** 1. */
  schema_version: number;
  /** As `windtunnel analyse` prints it. */
  text: string;
};

/** The answer: what to set, on which host, what it changes, how sure that is, and what to do now. */
export type Answer = {
  /** What to do with the settings. */
  action: AnswerAction;
  /** With what is recommended: `before` times or over the cautious estimate of the ratio, which lies half-way between what was seen and what is shown at least; `null` where the current settings stay. */
  after?: number | null;
  /** With the current settings: the geometric mean over the rounds that count for both. */
  before?: number | null;
  /** From `before` to `after`, %; negative where the figure gets smaller. */
  change_percent?: number | null;
  /** What to type, in this order; empty where there is nothing to do. */
  do: Array<AnswerStep>;
  host?: AnswerHost | null;
  /** The experiment's name in the journal. */
  kept: string;
  /** All of it in four lines. */
  lines: Array<string>;
  /** What was compared: `goodput`, `load time`; `before` and `after` are in the unit of `measured`. */
  measure: string;
  /** Of what the link can carry at most, the share that the current settings reach; `null` where the link isn't known, or carries more than its description allows. */
  reached?: number | null;
  /** What to set, `initcwnd=32`; `null` where the current settings stay. */
  setting?: string | null;
  /** How sure it is. */
  sure: Sure;
  /** The unit of `before` and `after`. */
  unit: string;
  /** The first line: a sentence. */
  what: string;
};

/** What to do with the settings. */
export type AnswerAction = "set" | "keep" | "undecided" | "failed";

/** The host on which a setting acts. */
export type AnswerHost = "here" | "server" | "client" | "both";

/** One thing to type. */
export type AnswerStep = {
  /** The command line. */
  command: string;
  /** On which host. */
  host: AnswerHost;
};

/** What came of a change. */
export type Applied = {
  /** What was asked, and what the kernel says. */
  applied: Array<AppliedRow>;
  /** When it is put back unless it is confirmed; `null` once it is confirmed, or put back. */
  confirm_deadline?: string | null;
  /** How long that is, seconds. */
  confirm_within_s?: number | null;
  /** Whether it stays. */
  confirmed: boolean;
  /** Why it failed. */
  error?: string | null;
  /** Files that make it stay. */
  files: Array<string>;
  /** Which change it is. */
  id: CheckpointId;
  /** What doesn't stay, and why. */
  notes: Array<Risk>;
  revert?: RevertReport | null;
  /** Routes that went or came, apart from those that only hold one of the settings. */
  routes?: Array<RouteChange>;
  /** The version of this form. */
  schema_version: number;
  /** What was left out, and why. */
  skipped: Array<Risk>;
};

/** What was asked, and what the kernel says. */
export type AppliedRow = {
  /** What was to be. */
  asked: unknown;
  /** What is; `null` if it can't be told. */
  granted?: unknown;
  /** The setting. */
  key: string;
  /** What a connection had that was made after the change; `null` if none was, or it can't tell. */
  observed?: unknown;
  /** Where. */
  scope: ScopeName;
  /** On which route or device. */
  target: string;
};

export type ArmSettings = Record<string, number | string>;

/** What is shown of a setting. */
export type ArmState = "current" | "faster" | "slower" | "same" | "behind" | "failing" | "open" | "not-set";

/** The connections of one arm. */
export type ArmTally = {
  /** Given the arm. */
  assigned?: number;
  /** Whose outcome was dropped, since a buffer was full. */
  lost?: number;
  /** That had other settings at the end. */
  not_compliant?: number;
  /** Without an outcome yet. */
  open?: number;
  /** With an outcome. */
  recorded?: number;
  /** For which the kernel refused at least one setting. */
  set_errors?: number;
};

/** Which backend is wanted. */
export type BackendChoice = "auto" | "sockops" | "routes" | "slots";

/** Whether a way of assigning connections works here. */
export type BackendState = {
  /** What was found. */
  found: string;
  /** Its name: `sockops`, `routes` or `slots`. */
  name: string;
  /** Whether it works. */
  works: boolean;
};

/** One value for each direction. */
export type BothWays_u64 = {
  down: number;
  up: number;
};

export type Bytes = string;

/** What follows from the version of the kernel. */
export type Caveat = {
  /** Stays the same from version to version of this program. */
  id: string;
  /** Whether this kernel is older, so that it limits what can be done here. */
  limits: boolean;
  /** The version of Linux with which it changed. */
  since: string;
  /** What holds on this kernel, in words. */
  text: string;
};

/** The goodput of the fastest setting over the link's limit. The limit is the link's rate times the efficiency of its framing, so 1 means that throughput ÷ rate is that efficiency: of ATM's cells, say. */
export type Ceiling = {
  /** The setting. */
  arm: number;
  /** Its upper end. */
  high?: number | null;
  /** The interval's lower end, with the experiment's confidence at any time; `null` while there are too few trials. */
  low?: number | null;
  /** The geometric mean of its trials over the limit, a share. */
  share: number;
  /** Trials that count. */
  trials: number;
};

/** A change that was tried: what came of it, and what failed. */
export type ChangeAnswer = Applied;

/** The experiment that a change rests on, and what was so when it was measured: whether its verdict still applies later is seen by looking again. */
export type ChangeBasis = {
  device?: ChangeBasisDevice | null;
  /** The experiment's name in the journal. */
  experiment: string;
  /** The name of the host that measured. */
  host?: string | null;
  /** The release of the kernel that measured. */
  kernel?: string | null;
  /** When it began, seconds since 1970. */
  measured_unix_s: number;
  /** The largest IP packet of the path with what is recommended, bytes; of a real path only. */
  path_mtu?: number | null;
  /** The smallest RTT of all trials, µs; of a real path only. */
  rtt_us?: number | null;
  /** The server, where this host measured a real path to it. */
  server?: string | null;
  /** What it was measured on: `adsl`, `example.org`. */
  target: string;
  /** Where it was measured: `lab`, `live`. */
  tunnel: string;
  /** What was fetched, of what curl can fetch. */
  url?: string | null;
};

/** A device that carried what was measured. */
export type ChangeBasisDevice = {
  /** Its driver, if it says so. */
  driver?: string | null;
  /** Its name. */
  name: string;
  /** Its speed, Mbit/s, if it says so. */
  speed_mbps?: number | null;
};

/** How far a change has come. */
export type ChangePhase = "prepared" | "applying" | "applied" | "confirming" | "confirmed" | "reverting" | "reverted" | "revert-failed" | "undoing" | "undone" | "lapsed" | "forgotten";

/** Changes to this host: the options of `windtunnel settings plan`. */
export type ChangeRequest = {
  /** Seconds until everything is put back, unless it is confirmed */
  confirm_within_s?: number | null;
  /** Setting and value: `{"initcwnd": "20"}` */
  settings: Record<string, string>;
  /** Where: `host`, `default`, a target such as `192.0.2.1`, or a device such as `eth0` */
  to?: string | null;
};

/** One thing that was looked at. */
export type Check = {
  /** What to do where it doesn't work. */
  advice?: string | null;
  /** What was found. */
  found: string;
  /** What. */
  name: string;
  /** Whether the lab can't do without it. */
  needed: boolean;
  /** Whether it works. */
  ok: boolean;
};

/** Which checkpoint: a number, so that it can't lead anywhere else. */
export type CheckpointId = string;

/** One experiment, with the sessions that it continues. */
export type ComparedExperiment = {
  /** The note stored with it. */
  comment: string;
  /** What held. */
  current: Settings;
  /** `down` or `up`. */
  direction?: string | null;
  /** Trials of the current settings that moved nothing: they are in no figure of them. */
  failed: number;
  /** The median of that with the current settings, in its unit. */
  figure?: number | null;
  /** The median goodput of the current settings, bit/s. */
  goodput_bps?: number | null;
  /** Which machine, as far as the journal says. */
  host?: Record<string, unknown> | null;
  /** Its name in the journal. */
  id: string;
  /** The links that its trials ran over: more than one if it changed. */
  links: Array<unknown>;
  /** What its trials are compared by. */
  measured: TrialFigure;
  /** The path. */
  path: PathFacts;
  /** Complete rounds. */
  rounds: number;
  /** When it began, µs since 1970. */
  started_unix_us: number;
  /** How it ended. */
  state: ExperimentState;
  /** What it was run against. */
  target: string;
  /** Trials in them. */
  trials: number;
  /** Where: the lab, the real path. */
  tunnel: string;
  /** What each trial did. */
  workload: unknown;
};

/** What makes a change stay. */
export type Confirmed = {
  /** Files that were written. */
  files: Array<string>;
  /** Which change it is. */
  id: CheckpointId;
  /** What doesn't stay, and why. */
  notes: Array<Risk>;
  /** The version of this form. */
  schema_version: number;
};

/** Congestion controls. */
export type Congestion = {
  /** That every program may choose. */
  allowed: Array<string>;
  /** Registered. */
  available: Array<string>;
  /** That of new connections. */
  current: string;
  /** Not loaded, but there. */
  loadable: Array<string>;
};

/** One parameter of a congestion control. */
export type ControlParameter = {
  /** Values that are allowed. */
  allowed: string;
  /** What it is if nobody sets it. */
  default: string;
  /** What it does. */
  help: string;
  /** Its name. */
  name: string;
  /** Its value, in its unit. */
  value: string;
};

/** What a congestion control does. Its JSON is the contract of `windtunnel cc show --json`. */
export type ControlShown = {
  /** Whether the kernel has it now. */
  available: boolean;
  /** Whether it is the kernel's own. */
  kernel: boolean;
  /** The kernel's name for it, of one of ours. */
  kernel_name?: string | null;
  /** What it does, in five lines. */
  lines: Array<string>;
  /** Its name. */
  name: string;
  /** Its parameters. */
  parameters: Array<ControlParameter>;
  /** The version of this object. */
  schema_version: number;
  /** Where it is described. */
  source: string;
  /** What it is. */
  title: string;
  /** The variant, of one of ours. */
  variant?: string | null;
  /** Its named variants. */
  variants: Array<ControlVariant>;
};

/** A named set of parameters. */
export type ControlVariant = {
  /** What it stands for. */
  help: string;
  /** Its name. */
  name: string;
};

/** Congestion controls to compare over a path of the lab: the options of `windtunnel cc compare`. */
export type ControlsComparisonRequest = {
  /** Which; the others are compared with the first */
  algorithms: Array<string>;
  disturb?: DisturbanceBody | null;
  /** A preset's path */
  lab?: string | null;
  path?: PathRequest | null;
  /** Each is run once a round */
  rounds?: number | null;
  /** How long each trial transfers */
  trial?: string | null;
};

/** The congestion controls that there are. Its JSON is the contract of `windtunnel cc list --json`. */
export type ControlsList = {
  /** Those in the kernel now. */
  kernel: Array<KernelControl>;
  /** Whether this user can load ours. */
  loadable: boolean;
  /** Why not. */
  obstacle?: string | null;
  /** Ours. */
  ours: Array<OwnControl>;
  /** The version of this object. */
  schema_version: number;
};

/** Two experiments' current settings. */
export type CurrentDifference = {
  /** The first. */
  against: string;
  difference?: HoursRatio | null;
  /** Always none: nothing was randomised between experiments. */
  evidence?: number | null;
  /** The one. */
  experiment: string;
};

/** What is known of the setting that may have less delay at the same speed. */
export type DelayReport = {
  /** What it was compared with. */
  against: number;
  /** That of the other. */
  against_delay_us: number;
  /** That of the other. */
  against_goodput_bps: number;
  /** The setting. */
  arm: number;
  /** By which share its delay is at least smaller, with probability 1 − `alpha`; `null` while nothing is excluded. */
  at_least?: number | null;
  /** Its delay under load, µs: the geometric mean over these rounds. */
  delay_us: number;
  /** The share by which its goodput may lie behind. */
  epsilon: number;
  /** The evidence for less delay. */
  evidence: number;
  /** Its goodput, bit/s: the geometric mean over these rounds. */
  goodput_bps: number;
  /** The evidence that each of them needs. */
  needed: number;
  /** Rounds. */
  rounds: number;
  /** Whether it is shown: both have the evidence that they need. */
  shown: boolean;
  /** The evidence for a goodput within `epsilon`. */
  within_evidence: number;
};

/** Which way the payload goes, seen from the client. */
export type Direction = "down" | "up" | "both";

/** One direction of a link. */
export type DirectionShown = {
  /** Propagation, µs. */
  delay_us: number;
  /** Standard deviation of the delay, µs. */
  jitter_us: number;
  /** Share of packets lost at random. */
  loss: number;
  /** What the queue in front of it holds. */
  queue: QueueShown;
  /** Bits on the wire. */
  rate_bps: number;
  /** What packets pass, in order: each with its field `stage` and its figures as texts. */
  stages: Array<Record<string, string>>;
};

/** What happens once in every trial. */
export type DisturbanceBody = "loss" | "burst" | "outage" | "half-rate" | "rtt-step" | "flow";

/** What works on this machine. Its JSON is the contract of `windtunnel doctor --json`. */
export type DoctorAnswer = {
  /** All that was looked at. */
  checks: Array<Check>;
  /** The version of this object. */
  schema_version: number;
  /** Whether the lab works. */
  works: boolean;
};

/** A shipped path, ready to be changed. */
export type DrawnPreset = {
  /** What that is. */
  kept: Array<KeptStage>;
  /** The path; its links keep what they can't say. */
  path: PathRequest;
  /** 1. */
  schema_version: number;
};

/** What a word is for. */
export type EncapsulationGroup = "link" | "cake" | "tunnel" | "carrier";

/** How it ended. */
export type End = {
  error?: Problem | null;
  /** 0: done, or something is faster; 1: the answer is no, or no difference is shown; else it failed. */
  exit_code: number;
};

/** The body of every answer that isn't a success. */
export type ErrorBody = {
  error: Problem;
};

/** Exchanges of request and answer. */
export type Exchanges = {
  /** From each request until the last byte of its answer; its count is that of the exchanges that were done. */
  latency: Spread;
  /** Exchanges a second over the whole time, pauses included. */
  per_second: number;
};

/** What a setting would gain on a path that wasn't measured, from how much it gained on several. */
export type ExpectedElsewhere = {
  /** I²: the share of the variation between them that isn't noise. */
  heterogeneity: number;
  /** Its upper end. */
  high: number;
  /** The lower end of the estimated 95 % interval for the ratio of one more path. With ten paths half of whose spread is noise, it lies too high for 6 % of new paths instead of 2.5 % (`tests/fleets.rs`): it is an estimate, not a claim. */
  low: number;
  /** The mean ratio. */
  ratio: number;
};

/** An experiment to start: what `windtunnel tune` takes. It runs on one of `lab`, `path` and `target`, or goes on with `resume`. */
export type ExperimentRequest = {
  /** Let trials on the real path change settings of this whole host */
  allow_host_wide?: boolean;
  /** Candidates of several settings that belong together: `probing: pmtud=on,mtu-probing=on`; `current` */
  arms?: Array<string>;
  /** What every candidate is compared with, instead of the current settings: `rwin=8192,mtu=576`, `os`, `windows-98` */
  baseline?: string | null;
  /** What it may cost at most: `10min`, `200MB` or `60 trials` */
  budget?: string | null;
  /** Certificate authorities that are believed, too, on the real path: PEM */
  ca?: string | null;
  /** Note stored with the experiment */
  comment?: string | null;
  direction?: Direction | null;
  /** How packets are framed on that link */
  encap?: string | null;
  /** Goodput loss tolerated when choosing the smallest sufficient RWIN, such as `10%` */
  epsilon?: string | null;
  goal?: Goal | null;
  /** Settings fixed in every trial, the baseline's included: `{"cc": "reno"}` */
  hold?: Record<string, string>;
  /** Compare so many candidates that are all the current settings (A/A test) */
  identical?: number | null;
  /** The version of IP, on the real path: `4` or `6` */
  ip?: string | null;
  /** What to vary; nothing means what the command line would vary */
  knobs?: Array<string>;
  /** An emulated path: a preset's name */
  lab?: string | null;
  /** Levels of a knob, instead of those chosen from the path: `{"rwin": "4x,16x,64KiB"}` */
  levels?: Record<string, string>;
  /** The rate of the link that bounds the real path, such as `16mbit` */
  link_rate?: string | null;
  /** Let no model choose which settings are worth a trial */
  no_model?: boolean;
  /** Don't probe the real path's MTU first */
  no_probes?: boolean;
  path?: PathRequest | null;
  /** Between two trials, on the real path */
  pause?: string | null;
  /** An experiment of the journal to go on with: its name, the beginning of it, or `last`; needs the token */
  resume?: string | null;
  /** Vary all knobs of `levels` at once, two levels each */
  screen?: boolean;
  /** Seed of everything random */
  seed?: number | null;
  /** Compare levels with the best of all of them instead of the current one */
  strict?: boolean;
  /** The real path to a server: `https://HOST/FILE`, `ftp://…`, `iperf3://HOST`; needs the token */
  target?: string | null;
  /** How long each trial transfers, 200ms to 1h */
  trial?: string | null;
  /** What each trial does: `bulk`, `page`, `transactions:request=200B,response=10kB`; `tune --workload help` lists all */
  workload?: string | null;
};

/** How far an experiment has come. */
export type ExperimentState = "running" | "finished" | "stopped" | "aborted";

/** One line of the list of experiments. */
export type ExperimentSummary = {
  /** What the verdict says to do: `set`, `keep`, `undecided`, `failed`. */
  action?: string | null;
  /** The verdict's first line. */
  answer?: string | null;
  /** What that changes, in hundredths of a percent; negative where the figure gets smaller. */
  change_bp?: number | null;
  /** What the user wrote about it. */
  comment: string;
  /** When it ended, if it has. */
  ended_unix_us?: number | null;
  /** Its name. */
  id: string;
  /** What it is: `tune`, `screen`, `cc`, `stacks`, `test`, `traffic`, `flent` or `proof`. */
  kind: string;
  /** What it recommends to set. */
  setting?: string | null;
  /** When it began, µs since the Unix epoch. */
  started_unix_us: number;
  /** How far it has come. */
  state: ExperimentState;
  /** What it runs on. */
  target: string;
  /** Its trials so far, every phase and status. */
  trials: number;
  /** Where its trials run. */
  tunnel: string;
  /** What the verdict is called: `faster`, `none`. */
  verdict?: string | null;
  /** What each trial did: `bulk`, `page`. */
  workload?: string | null;
};

/** A knob with two levels. */
export type Factor = {
  /** Where it counts as high. */
  high: Level;
  /** Which. */
  knob: Knob;
  /** Where it counts as low. */
  low: Level;
};

/** What a file is. */
export type FileKind = "capture" | "table";

/** Something worth knowing, with its reason. */
export type Finding = {
  /** Stays the same from version to version, so that it can be muted. */
  id: string;
  /** How much it matters. */
  severity: Severity;
  /** What, and why. */
  text: string;
};

/** One pair that is slower while another one measures. */
export type FleetDisturbance = {
  /** The one that slows it. */
  by: string;
  /** Those that the other one overlapped. */
  overlapped: number;
  /** The chance of as much by random starts alone. */
  p: number;
  /** `AGENT to TARGET`. */
  pair: string;
  /** Its goodput while the other one measures over that without it; an estimate. */
  ratio: number;
  /** Its runs. */
  runs: number;
};

/** Who is slower while whom measures: links that they share and the mesh doesn't name. */
export type FleetDisturbances = {
  /** Pairs that hang together by what is shown, `AGENT to TARGET`. */
  groups: Array<Array<string>>;
  /** Those that are shown, the surest first; the chance that any of them is wrong is 5 % at most. */
  shown: Array<FleetDisturbance>;
  /** So many directions of pairs had runs enough, some of which the other one overlapped. */
  tested: number;
};

/** A fleet as it stands. */
export type FleetState = {
  /** Who is in it. */
  agents: Array<AgentLine>;
  /** What is measured. */
  jobs: Array<JobLine>;
  /** Changes of settings on their way, the newest first. */
  rollouts: Array<Rollout>;
  /** Who has or waits for which turn. */
  turns: Array<TurnLine>;
};

/** How a fleet stands. */
export type FleetStatusAnswer = FleetState & {
  /** 1. */
  schema_version: number;
  /** Its server, without a password; nothing where it is one host's journal that was asked. */
  server?: string | null;
};

/** Four settings that differ in two: none, each alone, both. */
export type FourCells = {
  /** The arms: neither, the first, the second, both. */
  arms: Array<number>;
  /** Their figures, geometric means over the rounds that have all four: see `measured`. */
  figures: Array<number>;
  /** What the first changes against the baseline. */
  first: string;
  /** Its upper end. */
  high?: number | null;
  /** What both do together over what their two effects multiply to; above 1 they help each other. */
  interaction: number;
  /** The interval's lower end, with the experiment's confidence at any time; `null` while there are too few rounds. */
  low?: number | null;
  /** Rounds that have all four. */
  rounds: number;
  /** What the second changes. */
  second: string;
};

/** What bytes of a frame are for. */
export type FramePart = "header" | "payload" | "trailer" | "padding" | "coding";

/** What is wished for. */
export type Goal = "goodput" | "balanced" | "delay";

/** One knob of one setting: asked, granted, observed. */
export type GrantedLevel = {
  /** The arm. */
  arm: number;
  /** What was asked for. */
  asked: Level;
  /** Trials in which something else was tested than what was asked for. */
  differing: number;
  /** Whether they contradict each other in any trial. */
  differs: boolean;
  /** What the system says it set; more than one if trials differ. */
  granted: Array<Level>;
  /** The knob. */
  knob: Knob;
  /** What was seen on the wire or in `tcp_info`. */
  observed: Array<string>;
  /** Where it was set: `socket`, `route`, `host`. */
  scope: string;
  /** Trials in which they were looked at. */
  trials: number;
};

/** That the server answers. */
export type Health = {
  /** Whether the page is in the program. */
  page: boolean;
  /** Always `ok`. */
  status: string;
  /** The program's version. */
  version: string;
};

/** The changes that were made. */
export type HistoryAnswer = {
  /** Each of them, the oldest first. */
  changes: Array<HistoryRow>;
  /** Whose changes aren't among them; nothing where they are all that were made. */
  hidden?: string | null;
  /** Changes that nobody watched any more, and what became of them just now. */
  recovered: Array<Finding>;
  /** 1. */
  schema_version: number;
};

/** A change that was made some time. */
export type HistoryRow = {
  /** What was asked for: `initcwnd=20 on default via …`. */
  changes: Array<string>;
  /** When. */
  created?: string | null;
  /** Why it can't be used. */
  error?: string | null;
  /** Whether it was made in this network namespace. */
  here: boolean;
  /** Which. */
  id: CheckpointId;
  /** What was put back elsewhere, or is gone: devices that were renamed or removed meanwhile. */
  notes: Array<string>;
  /** How far it has come. */
  phase?: string | null;
  /** Routes that went or came with it, apart from those that only hold one of the settings. */
  routes?: Array<RouteChange>;
  /** Since when. */
  since?: string | null;
};

/** Whether a gain that was claimed is still there. */
export type HoldbackState = "holds" | "gone" | "smaller" | "open";

/** What a router does. */
export type HopRequest = {
  /** The largest MSS that it leaves in SYNs: bytes, or `pmtu` */
  mss_clamp?: string | null;
  /** Translates addresses of the client's side */
  nat?: boolean | null;
};

/** The router in front of a link. */
export type HopShown = {
  /** What it does to packets, in words. */
  does: Array<string>;
  host?: HostShown | null;
  /** Whether it translates addresses. */
  nat: boolean;
};

/** A host on the way. */
export type HostShown = {
  /** Its MTU, bytes. */
  mtu: number;
  /** Its name. */
  name: string;
};

/** What one server gave. */
export type HostTests = {
  /** Its address. */
  address?: string | null;
  /** What its profile says of it. */
  comment: string;
  /** Transfers that count. */
  completed: number;
  /** The mean time to connect, µs. */
  connect_us?: number | null;
  /** How many hops away it is, where that could be asked. */
  hops?: number | null;
  /** The mean of its transfers, bit/s. */
  mean_bps?: number | null;
  /** The TTL with which its answers arrive. */
  reply_ttl?: number | null;
  /** The server. */
  server: string;
  /** Its standard error; `null` for fewer than two transfers. */
  standard_error_bps?: number | null;
  /** Transfers that were begun. */
  tests: number;
};

/** The typical goodput in some hours over that in others, or what else is compared; larger is better. There is no interval: hours aren't trials, and no number of trials says how far the next hours lie apart. */
export type HoursRatio = {
  /** The ratio of the geometric means. */
  ratio: number;
};

/** A job as it stands. */
export type JobLine = {
  /** What its verdict says to do: `set`, `keep`, `undecided`, `failed`. */
  action?: string | null;
  /** How long ago it ended, seconds. */
  age_s?: number | null;
  /** Who measures. */
  agent: string;
  /** Its verdict's first line. */
  answer?: string | null;
  /** What that changes, in hundredths of a percent; negative where the figure gets smaller. */
  change_bp?: number | null;
  /** In how long it is due, seconds; of one that waits. */
  due_s?: number | null;
  /** The newest experiment. */
  experiment?: string | null;
  /** The mesh that it belongs to. */
  mesh: string;
  /** Why it was refused, failed or waits. */
  reason: string;
  /** Which time it is, from 1. */
  run: number;
  /** What it recommends to set. */
  setting?: string | null;
  /** `waiting`, `running`, `done`, `refused`, `failed` or `stopped`. */
  state: string;
  /** To what. */
  target: string;
  /** What its verdict is called: `faster`, `none`. */
  verdict?: string | null;
};

/** The experiments, the newest first. */
export type JournalList = {
  /** Each of them. */
  experiments: Array<ExperimentSummary>;
  /** 1. */
  schema_version: number;
};

/** What TCP said over time, trial by trial, on one axis. */
export type JournalSamples = {
  /** What its settings are called. */
  arms: Array<string>;
  /** The experiment's name. */
  id: string;
  /** The samples of all trials, one after the other; times are those since the first trial. */
  samples: SampleColumns;
  /** 1. */
  schema_version: number;
  /** What it runs on. */
  target: string;
  /** The trials. */
  trials: Array<SampledTrial>;
  /** How many more were left out. */
  trials_left_out: number;
};

/** An experiment with its trials, without samples. */
export type JournalShow = {
  /** What it is. */
  experiment: StoredExperiment;
  /** 1. */
  schema_version: number;
  /** The others, in the order in which they were run. */
  trials: Array<TrialRecord>;
  /** How many of its first trials are left out. */
  trials_left_out: number;
};

/** A link of a shipped path whose other stages are kept: bursts of losses, airtime, outages, a modem. */
export type KeptRequest = {
  /** Which of its links, from 0 */
  link: number;
  /** The preset */
  preset: string;
  /** What isn't kept of it: keys as `DrawnPreset` names them */
  without?: Array<string>;
};

/** Something that a drawn link keeps and can't edit. */
export type KeptStage = {
  /** Its figures. */
  figures: string;
  /** Its key, to leave it out: `down.loss_model`. */
  key: string;
  /** Of which link, from 0. */
  link: number;
  /** Its field of a scenario file: `loss_model`. */
  stage: string;
  /** Which way it works; nothing means both. */
  way?: string | null;
};

/** A congestion control that the kernel has now. */
export type KernelControl = {
  /** Whether it is the default of this network namespace. */
  default: boolean;
  /** The kernel's name for it. */
  name: string;
  /** Which of ours it is. */
  ours?: string | null;
  /** Whose programs may choose it: `everybody`, or those with `CAP_NET_ADMIN`. */
  who: string;
};

/** What runs for longer than a request. */
export type Kind = "experiment" | "probe" | "lab" | "workload" | "traffic" | "test" | "comparison";

export type Knob = string;

/** A setting. */
export type KnobRow = {
  /** What keeps the value from having its full effect: a limit, or the default route's own value. */
  clamped_by?: string | null;
  /** What the kernel does by itself, if that is known. */
  default?: unknown;
  /** What it is. */
  help: string;
  /** Its name. */
  key: string;
  /** Who else sets it. */
  managed_by?: string | null;
  /** Where the value comes from. */
  origin: SettingOrigin;
  /** Where this value holds: `host`, `route`, `link`, `socket`. */
  scope: string;
  /** The kernel's name for it. */
  sysctl?: string | null;
  /** Which route or device. */
  target?: string | null;
  /** What it is set to; `null` where this kernel or namespace doesn't have it. */
  value?: unknown;
};

/** The model's error in one part of the world, as shares of the completion time. */
export type KnownError = {
  /** The kernel that the model was compared with. */
  kernel?: string;
  /** Half of the transfers are nearer than this. */
  median: number;
  /** Nine in ten are nearer than this. */
  p90: number;
  /** The part of the world: `dsl`, `lossy`, `grid`, … */
  region: string;
  /** Transfers that were compared. */
  transfers: number;
  /** None was farther away. */
  worst: number;
};

/** Where something runs: a shipped path by name, or a drawn one. */
export type LabRequest = {
  /** A preset's name */
  lab?: string | null;
  path?: PathRequest | null;
};

/** A file for whoever configures a device, with which it keeps settings that it would set back otherwise. */
export type LastingFile = {
  /** What it holds; empty if that manager has no words for any of it. */
  content: string;
  /** The device. */
  device: string;
  /** Who configures it. */
  manager: string;
  /** Permission bits. */
  mode: number;
  /** Where the file belongs. */
  path: string;
  /** What it has no words for. */
  skipped: Array<Risk>;
};

/** How late messages of a steady stream came. The earliest message, relative to the pace, is on time by definition, so that the clocks of the two ends needn't agree; a difference between their speeds (some 10 µs a second) isn't taken out. */
export type Lateness = {
  /** The most messages that came at once after a stall, within one interval. */
  burst: number;
  /** Messages that should have come. */
  expected: number;
  /** The longest of them, µs. */
  longest_stall_us: number;
  /** How late each was. Those that never came count as late as the trial's deadline allowed. */
  spread: Spread;
  /** Times that nothing came for longer than a stall takes: five intervals, and at least 50 ms. */
  stalls: number;
};

export type Level = number | string;

/** What limits a transfer. */
export type LimitedBy = "rwnd" | "sndbuf" | "link" | "application" | "loss" | "cwnd" | "pacing" | "path" | "unknown";

/** What held the current settings back, and the figures that say so. */
export type LimitsReport = {
  /** Of the whole time, the share in which there was nothing to send; `null` where the sender isn't ours. */
  application_limited?: number | null;
  /** The best median goodput of any setting, bit/s. */
  best_goodput_bps?: number | null;
  /** What it was. */
  by: LimitedBy;
  /** The congestion window in the second half of a trial, bytes; `null` where nobody sampled it. */
  cwnd_bytes?: number | null;
  /** Median goodput of the current settings, bit/s. */
  goodput_bps?: number | null;
  /** Payload under way in the second half of a trial, by rate and RTT, bytes. */
  in_flight_bytes?: number | null;
  /** What the framing leaves of the link's rate for TCP payload, bit/s; `null` where the link isn't known. */
  physical_goodput_bps?: number | null;
  /** Retransmitted segments of those sent; `null` where the sender isn't ours. */
  retransmitted?: number | null;
  /** RTT, µs. */
  rtt_us: number;
  /** The largest receive window seen with the current settings, bytes. */
  rwnd_bytes?: number | null;
  /** Of the time with something to send, the share that was spent waiting for the receive window; `null` where the sender isn't ours. */
  rwnd_limited?: number | null;
  /** The same for the send buffer. */
  sndbuf_limited?: number | null;
  /** In a sentence. */
  text: string;
};

/** One link. */
export type LinkRequest = {
  /** To the client */
  down: WayRequest;
  /** What a packet occupies on it: words of `overhead --list` joined by + */
  framing?: string | null;
  hop?: HopRequest | null;
  /** Whether the router in front of it tells of packets that are too long; false makes a black hole */
  icmp?: boolean | null;
  keeps?: KeptRequest | null;
  /** The largest IP packet that it takes, bytes */
  mtu?: number | null;
  /** Its name */
  name?: string | null;
  up?: WayRequest | null;
};

/** A link. */
export type LinkShown = {
  /** To the client. */
  down: DirectionShown;
  /** What a packet occupies on it. */
  framing: string;
  /** Whether only one end can send at a time. */
  half_duplex: boolean;
  /** The router in front of it. */
  hop: HopShown;
  /** Whether the router in front of it reports longer packets. */
  icmp: boolean;
  /** The largest packet that it takes, bytes. */
  mtu: number;
  /** Its name. */
  name: string;
  /** To the server. */
  up: DirectionShown;
};

/** A documented value with its source, or that there is none. */
export type ListedFact_bool = {
  /** Documented, and where. */
  known: [boolean, string];
} | "unknown";

/** A documented value with its source, or that there is none. */
export type ListedFact_u32 = {
  /** Documented, and where. */
  known: [number, string];
} | "unknown";

/** An old stack: settings under which another stack stands in for it. */
export type ListedProfile = {
  /** How long it delayed ACKs, ms. */
  ack_delay_ms: ListedFact_u32;
  /** The MSS on Ethernet, bytes. */
  mss: ListedFact_u32;
  /** The word that names it. */
  name: string;
  /** Whether it had selective acknowledgements. */
  sack: ListedFact_bool;
  /** The stack that stands in. */
  stands_on: string;
  /** Its own name. */
  title: string;
  /** The receive window, bytes. */
  window: ListedFact_u32;
  /** Whether a user could set the window. */
  window_can_be_set: ListedFact_bool;
  /** Whether it had window scaling. */
  window_scaling: ListedFact_bool;
};

/** A stack of today. */
export type ListedStack = {
  /** Whether it can be had. */
  built: boolean;
  /** How it can be had. */
  install?: string | null;
  /** The word that names it. */
  name: string;
  /** Its settings beside rwin, mss and mtu. */
  options?: Array<string> | null;
  /** The program that is its adapter. */
  program?: string | null;
  /** What it is. */
  title: string;
  /** Its version. */
  version?: string | null;
};

/** One line of the log. */
export type LoggedTest = {
  /** Its address. */
  address?: string | null;
  /** Payload that came. */
  bytes: number;
  /** From the first SYN until the connection stood, µs. */
  connect_us?: number | null;
  /** Payload over time, bit/s. */
  goodput_bps: number;
  /** The device of this host, with its MTU, and the route over which the server was reached, as they were. */
  link?: Record<string, unknown> | null;
  /** The smallest RTT, µs. */
  min_rtt_us?: number | null;
  /** The largest segment, bytes of payload. */
  mss?: number | null;
  /** What a person should know of it. */
  notes: Array<string>;
  /** Its number in the journal. */
  number: number;
  /** Segments that were retransmitted, as far as this end knows. */
  retransmits?: number | null;
  /** The widest window that was announced, bytes. */
  rwin_max?: number | null;
  /** How long it took, s. */
  seconds: number;
  /** The server. */
  server: string;
  /** When it began, µs since the Unix epoch. */
  started_unix_us: number;
  /** `completed`, `incomplete`, `failed`, `aborted` or `invalid`. */
  status: string;
};

/** Downloads to log: the options of `windtunnel test`. */
export type LoggedTestRequest = {
  /** Note stored with it */
  comment?: string | null;
  /** Downloads from each server */
  each?: number | null;
  /** The version of IP: `4` or `6` */
  ip?: string | null;
  /** Don't ask how many hops away the servers are */
  no_hops?: boolean;
  /** The files: `http://HOST/FILE`, `ftp://…`; servers take turns */
  targets: Array<string>;
  /** A download ends after this time, if the file hasn't before */
  time?: string | null;
};

/** What was logged. */
export type LoggedTests = {
  /** What else was known of the moment, by name. */
  covariates?: Record<string, number>;
  /** Server by server. */
  hosts: Array<HostTests>;
  /** The name in the journal. */
  id: string;
  /** Mean over the servers' means, bit/s; `null` where nothing was completed. */
  mean_bps?: number | null;
  /** 1. */
  schema_version: number;
  /** What the kernel did with every connection, by its names. */
  settings: Record<string, string>;
  /** Its standard error; `null` for fewer than two servers. */
  standard_error_bps?: number | null;
  /** The transfers, in the order in which they ran. */
  tests: Array<LoggedTest>;
};

/** What a workload measures beyond payload and time. What it doesn't measure is empty. */
export type Measures = {
  exchanges?: Exchanges | null;
  /** Goodput of each of several flows at once, the one that is compared first, bit/s. */
  flows_bps?: Array<number>;
  lateness?: Lateness | null;
  /** How many bytes are missing where one wasn't what was sent, if what came is what stands behind them. */
  missing_bytes?: number | null;
  /** Each object of a page. */
  objects?: Array<ObjectTime>;
  /** What is compared between settings, larger is better, where that isn't payload over time: see [`Scale`](crate::Scale). */
  score?: number | null;
  /** Each third of a long transfer. */
  thirds?: Array<Third>;
  under_load?: UnderLoad | null;
};

/** A picture. */
export type NamedChart = {
  /** What it shows. */
  name: string;
  /** The picture. */
  svg: string;
};

/** When an object of a page was asked for and came, µs since the load began. */
export type ObjectTime = {
  /** When it was asked for. */
  asked_us: number;
  /** Its bytes. */
  bytes: number;
  /** Over which connection. */
  connection: number;
  /** When its last byte came. */
  done_us: number;
  /** When its first byte came. */
  first_byte_us: number;
  /** Its number in the page. */
  object: number;
  /** When the request left, where what asked for it is a browser: until then it waited there, for a free connection or for a new one. Elsewhere that is when it was asked for. */
  sent_us?: number | null;
};

/** All that is known of one stack. Its JSON is the contract of `windtunnel overhead --json`. # Units In JSON lengths are bytes, rates bits per second, shares numbers from 0 to 1. */
export type OverheadAnswer = {
  /** The efficiency of full packets there. */
  best_efficiency: number;
  /** The best MTU at or under it. */
  best_mtu: number;
  /** The cells in all, on a link that has them. */
  cells?: number | null;
  /** The payload's share of the wire. */
  efficiency: number;
  /** The stack. */
  encap: string;
  /** The payload per second at that rate. */
  goodput_bps?: number | null;
  /** The version of IP. */
  ip: number;
  /** Their IP packets in all, tunnels not counted. */
  ip_len: number;
  /** The first frame in the order of the wire. */
  layers: Array<OverheadLayer>;
  /** The rate of the wire that was asked about. */
  link_rate_bps?: number | null;
  /** The bound of the best MTU. */
  max_mtu: number;
  /** The MTU that TCP sees. */
  mtu: number;
  /** The rate that the wire must have for it. */
  needed_link_rate_bps?: number | null;
  /** What is right by the arithmetic and may still surprise. */
  notes: Array<string>;
  /** The outermost IP packet of the first of them. */
  outer_len: number;
  /** What is added, as a share of the payload. */
  overhead_ratio?: number | null;
  /** The packets that it takes. */
  packets: number;
  /** The payload that was asked for, or that fits. */
  payload_len: number;
  /** The transport. */
  proto: OverheadProto;
  /** The version of this object. */
  schema_version: number;
  /** Full packets at every MTU of the sweep. */
  sweep: Array<SweepStep>;
  /** TCP's options on each segment. */
  tcp_options_len: number;
  /** The payload per second that was asked about. */
  wanted_goodput_bps?: number | null;
  /** The wire in all. */
  wire_len: number;
};

/** Bytes of a frame that belong together. */
export type OverheadLayer = {
  /** How many bytes; negative only where tc's `overhead` is. */
  len: number;
  /** What they are. */
  name: string;
  /** What they are for. */
  part: FramePart;
};

/** The transport of which the overhead is computed. */
export type OverheadProto = "tcp" | "udp";

/** A word of a stack. */
export type OverheadWord = {
  /** What it stands for, in one line. */
  about: string;
  /** Other spellings. */
  aliases: Array<string>;
  /** Bytes that the word alone adds to a long packet before cells, carriers included. */
  alone_bytes?: number | null;
  /** Bytes that its own layers add. */
  bytes?: number | null;
  /** What it is for. */
  group: EncapsulationGroup;
  /** The word as it is written; `N` stands for a number. */
  name: string;
};

/** The words of which stacks are made. Its JSON is the contract of `windtunnel overhead --list --json`. */
export type OverheadWords = {
  /** The version of this object. */
  schema_version: number;
  /** The words, in the order in which they are shown. */
  words: Array<OverheadWord>;
};

/** A named variant of a congestion control of ours. */
export type OwnControl = {
  /** Whether a unit of systemd loads it at boot. */
  boot: boolean;
  /** The kernel's name for it. */
  kernel_name: string;
  /** Whether the kernel has it now. */
  loaded: boolean;
  /** The algorithm. */
  name: string;
  /** Whether it stays loaded when no program holds it. */
  pinned: boolean;
  /** What it is. */
  title: string;
  /** The variant. */
  variant: string;
};

/** The process that runs an experiment, so that another one that got the same id later isn't taken for it. */
export type Owner = {
  /** Which boot that was. */
  boot_id: string;
  /** The process id. */
  pid: number;
  /** When it began, in clock ticks since boot. */
  start_ticks: number;
};

/** A page as its objects: the first one alone, since it names the others; then these, over several connections at once, each taking the next that nobody has asked for. */
export type Page = {
  /** Whether each object has a connection of its own, as from a server without keep-alive: then `connections` is how many there are at once. */
  close_each?: boolean;
  /** How many connections. */
  connections: number;
  /** Whether it is loaded over HTTP/2: then there is one connection, and all objects but the first are asked for at once. */
  http2?: boolean;
  /** How it is called. */
  name: string;
  /** The objects, in the order in which they are asked for. */
  objects: Array<PageObject>;
  /** Whether a server that offers both is to be spoken to through TLS, as with HTTP/2 it always is. */
  tls?: boolean;
};

/** One object of a page. */
export type PageObject = {
  /** What is asked for: the path and query of an HTTP request. `None` asks for the first `size` bytes of whatever the far end offers. */
  path?: string | null;
  /** How many bytes it has. */
  size: Bytes;
};

/** What is known of the path before any setting is varied. */
export type PathFacts = {
  /** The rate of the payload that the path can carry at most, times the RTT, bytes. */
  bdp_bytes: number;
  /** What the framing leaves of the link's rate for TCP payload, bit/s; `None` where the link isn't known. */
  physical_goodput_bps?: number | null;
  /** Largest IP packet that gets through, bytes. */
  pmtu: number;
  /** RTT of a full-sized segment and its ACK on the idle path, µs. */
  rtt_us: number;
};

/** A path drawn from links, as a scenario file describes it; texts have the same grammar. */
export type PathRequest = {
  /** MTU of the client's device, bytes */
  client_mtu?: number | null;
  /** From the client to the server; a router stands between two */
  links: Array<LinkRequest>;
  /** MTU of the server's device, bytes */
  server_mtu?: number | null;
  /** What it is called */
  title?: string | null;
};

/** What follows from a path's figures. */
export type PathShown = {
  /** Bandwidth-delay product, bytes. */
  bdp_bytes: number;
  /** The largest packet that gets through, bytes. */
  pmtu: number;
  /** From a full-sized segment to its ACK on the idle path, µs. */
  rtt_us: number;
};

/** The path, with the share of probes that got lost. */
export type PathWithLoss = PathFacts & {
  /** The share of probes that got lost, if there were any. */
  loss?: number | null;
};

/** A change that waits for its confirmation. */
export type Pending = {
  /** When it is put back. */
  confirm_deadline?: string | null;
  /** Whether a guard watches it. */
  guarded: boolean;
  /** Which. */
  id: CheckpointId;
  /** How far it has come. */
  phase: ChangePhase;
  /** Seconds until then. */
  seconds_left: number;
};

/** The change that waits for its confirmation. */
export type PendingChange = {
  /** Whose changes weren't looked at; nothing where all were. */
  hidden?: string | null;
  pending?: Pending | null;
  /** 1. */
  schema_version: number;
};

/** One change to this host. */
export type PlanStep = {
  /** What to type. */
  command: string;
  /** The setting. */
  key: string;
  /** What this host was in the transfers: `sender` or `receiver`. */
  side: string;
  /** Where: the address of the target, or `host`. */
  to: string;
  /** What it is to be. */
  value: Level;
};

/** What an experiment would do. */
export type Planned = TunePlan | ScreenPlan;

/** One setting that is compared. */
export type PlannedArm = {
  /** How it is called in tables. */
  label: string;
  /** What is asked for: everything that isn't named stays as it is. */
  settings: Settings;
  /** Why it is tried. */
  why: string;
};

/** An arm before the first connection. */
export type PlannedTrafficArm = {
  /** What reports call it. */
  name: string;
  /** What it sets. */
  settings: ArmSettings;
  /** Its share of the first connections, 0 to 1. */
  share: number;
};

/** The smallest sufficient level of an ordered knob. */
export type Plateau = {
  /** The arm that levels were compared with. */
  anchor: number;
  /** The arm with that level. */
  arm: number;
  /** Goodput by level, ascending. */
  curve: Array<PlateauPoint>;
  /** By which share a level may lie behind. */
  epsilon: number;
  /** The knob. */
  knob: Knob;
  /** The smallest level shown to be within `epsilon` of the anchor; the anchor's own if none smaller is. */
  level: Level;
  /** Whether further rounds could still change the answer. */
  settled: boolean;
  /** Whether a level smaller than the anchor's is shown to suffice. */
  shown: boolean;
  /** The unit of `x`: `bytes`, `segments`, or nothing. */
  unit: string;
};

/** Goodput at one level. */
export type PlateauPoint = {
  /** The arm. */
  arm: number;
  /** Geometric mean of the figures of its trials: see `measured`. */
  figure?: number | null;
  /** The figures of its trials. */
  figures: Array<number>;
  /** Geometric mean of its trials, bit/s. */
  goodput_bps?: number | null;
  /** Its level. */
  level: Level;
  /** Goodput of its trials, bit/s. */
  trials_bps: Array<number>;
  /** Where it stands on the axis: the level, or the largest value seen where the system chose. */
  x: number;
};

/** What the model says of the settings of a request. */
export type PredictAnswer = {
  /** Each setting, the current one first. */
  arms: Array<PredictedArm>;
  /** Payload of the workload, bytes; nothing where it goes by time. */
  bytes?: number | null;
  /** What is worth measuring, the most promising settings first. */
  candidates: Array<Settings>;
  /** Whether the path changes with time, as a trace does; each run meets it from its first second on. */
  changes_with_time: boolean;
  /** Which way the payload went. */
  direction: TransferDirection;
  /** What a gain must exceed besides chance to be worth measuring, as a share: the known error on nine in ten of such paths, or what it is taken as; at least 1 %. */
  least_gain: number;
  /** What hops do to TCP that the model leaves out, a sentence each: where there is any, its answer says little of the path. */
  left_out?: Array<string>;
  /** What is compared. */
  measured: TrialFigure;
  model_error?: KnownError | null;
  /** The path's name. */
  path: string;
  /** What is known of the path. */
  path_facts: PathFacts;
  /** Whether anything is left to chance; then one seed says little of what another would. */
  random: boolean;
  /** 1. */
  schema_version: number;
  /** Random seeds per setting. */
  seeds: number;
  this_host?: StackSettings | null;
  /** Time of the workload, µs; nothing where it goes by size. */
  time_us?: number | null;
  /** `sim`. */
  tunnel: string;
  /** What was done. */
  workload: Workload;
};

/** What the model says of one setting: medians over all seeds. */
export type PredictedArm = {
  /** From the request to the last byte, µs; nothing if not all arrived in time. */
  completion_us?: number | null;
  /** Seeds in which the model stopped early, for want of time: figures are of what was done until then. */
  cut_short: number;
  /** Seeds in which nothing arrived. */
  failures: number;
  /** What is compared, in its unit; nothing where most runs weren't whole. */
  figure?: number | null;
  /** The gain over the current settings, as a share; more is better. Nothing for the current settings themselves, and where there is nothing to compare. */
  gain?: number | null;
  /** Payload over time, bit/s. */
  goodput_bps: number;
  /** One in twenty seeds had less. */
  goodput_p5_bps: number;
  /** One in twenty seeds had more. */
  goodput_p95_bps: number;
  /** What its gain must exceed besides chance, as a share, where that is more than the answer's `least_gain`: the model was compared with a kernel on such paths, but not with such settings. */
  least_gain?: number | null;
  /** The mean of the smoothed RTT over the smallest one, less one of these, µs. */
  queueing_delay_us: number;
  /** Retransmitted segments, of all with payload. */
  retransmitted_share: number;
  samples?: SampleColumns | null;
  /** What is set. */
  settings: Settings;
  /** Why it was tried. */
  why: string;
  /** Whether it gets done what the current settings don't, which no number says. */
  works_instead: boolean;
  /** Whether it works instead, or the gain is more than the model's error on nine in ten of such paths, and than the spread between seeds explains. */
  worth_measuring: boolean;
};

/** A shipped path. */
export type Preset = {
  /** Its name. */
  name: string;
  /** What it is. */
  title: string;
};

/** The shipped paths. */
export type PresetsAnswer = {
  /** Each of them. */
  presets: Array<Preset>;
  /** 1. */
  schema_version: number;
};

/** What is asked of a path. */
export type ProbeKind = "path" | "mtu" | "scan" | "trace" | "first-window";

/** A path to probe: to a host, or to the server of a path of the lab. */
export type ProbeRequest = {
  /** The smallest size to scan, bytes */
  from?: number | null;
  kind: ProbeKind;
  /** Or the server behind a preset's path */
  lab?: string | null;
  path?: PathRequest | null;
  /** From one size to the next, bytes */
  step?: number | null;
  /** The host, with or without the TCP port for TCP probes, or for `first-window` a URL; needs the token */
  target?: string | null;
  /** The largest size to scan, bytes */
  to?: number | null;
};

/** What happened, the likely cause, and what to try. */
export type Problem = {
  /** The likely cause, if it is known. */
  cause?: string | null;
  /** The exit code of the command, if one was run: 2 usage, 3 this machine can't, 4 the remote host failed, 5 our fault. */
  exit_code?: number | null;
  /** What to try, if anything helps. */
  hint?: string | null;
  /** What happened. */
  what: string;
};

/** What came out. */
export type ProveAnswer = {
  /** With it. */
  after_s?: number | null;
  /** The median time of a run without the change, seconds. */
  before_s?: number | null;
  /** What measured. */
  by: string;
  /** The number of the change. */
  change: string;
  /** The experiment's name in the journal. */
  id: string;
  /** The rate with the change over that without it. */
  ratio?: number | null;
  /** At most: with 95 % where it is slower, whenever one looks; else the interval's upper end. */
  ratio_high?: number | null;
  /** At least: with 95 % where it is faster, whenever one looks; else the interval's lower end. */
  ratio_low?: number | null;
  /** Rounds that count. */
  rounds: number;
  /** The version of this form. */
  schema_version: number;
  shown?: ShownDifference | null;
  /** Whether it is shown to be slower. */
  slower: boolean;
  /** The answer in words. */
  text: string;
  /** The verdict's word: `faster`, `no-difference` or `stopped`. */
  verdict: VerdictKind;
  /** What it makes, for people. */
  what?: string | null;
};

/** What was pruned, or would be. */
export type Pruned = {
  /** Whether nothing was deleted. */
  dry_run: boolean;
  /** How many. */
  experiments: number;
  /** Those that stay, since they are under way or another one that stays continues them. */
  kept: Array<string>;
  /** The experiments. */
  pruned: Array<string>;
  /** Whether only samples go. */
  samples_only: boolean;
  /** 1. */
  schema_version: number;
  /** Their trials. */
  trials: number;
};

/** What a queue holds. */
export type QueueShown = {
  /** So many bytes. */
  bytes: number;
} | {
  /** So many packets. */
  packets: number;
};

/** Settings in which arms differ and that act on what the server receives. What is compared is what it sends, so that no figure, no verdict and no guard of goodput is of their effect. */
export type ReceiverSettings = {
  /** Whether the arms differ in nothing else: then no difference in what the server sends is to be expected, and none forecast. */
  alone: boolean;
  /** Their names, such as `initrwnd`. */
  settings: Array<string>;
  /** Both in a sentence or two. */
  text: string;
};

/** One of the settings that were compared. */
export type ReportArm = {
  /** Packets of `queue_drops` that a discipline dropped before the queue was full, the mean; not there where nobody counted them. */
  aqm_drops?: number | null;
  /** Of those, trials that stalled or failed. */
  bad: number;
  /** Packets of a trial that arrived with a mark of congestion from the path, the mean; not there where nobody counted them. */
  ce_marks?: number | null;
  /** Delay under load, µs: the median of the RTTs that its trials lived with; `null` where the sender isn't ours. */
  delay_us?: number | null;
  /** The largest evidence for "faster" so far. */
  evidence: number;
  /** Median figure of its trials: see `measured`. */
  figure?: number | null;
  /** Median goodput of its trials, bit/s. */
  goodput_bps?: number | null;
  /** The ratio is at most this; `null` while nothing can be excluded. */
  high?: number | null;
  /** What people call it. */
  label: string;
  /** The ratio is at least this; `null` while nothing can be excluded. */
  low?: number | null;
  /** By the model the ratio is at most this. */
  model_high?: number | null;
  /** By the model the ratio is at least this: with normal noise, for all settings together, however often one looked. There before `low` is, and claims nothing. */
  model_low?: number | null;
  /** The evidence that a claim needs; `null` for the current settings. */
  needed?: number | null;
  /** Packets that queues of the path dropped in a trial, full or by their discipline, the mean; `null` where nobody sees them. */
  queue_drops?: number | null;
  /** Estimated ratio to the current settings of what was compared; larger is better. */
  ratio?: number | null;
  /** Segments retransmitted in a trial, the mean; `null` where the sender isn't ours. */
  retransmits?: number | null;
  /** Rounds in which it could be compared. */
  rounds: number;
  /** Round and evidence after it. */
  series: Array<[number]>;
  /** What it asks for; everything else is as it was. */
  settings: Settings;
  /** What is shown of it. */
  state: ArmState;
  /** Its trials. */
  trials: number;
};

/** What is known of the path. */
export type ReportPath = {
  /** Payload rate times RTT, bytes; 0 where nobody knows it. */
  bdp_bytes: number;
  /** The share of small probes that got lost; `null` where nobody probed. */
  loss?: number | null;
  /** The largest IP packet that gets through, bytes; 0 where nobody knows it. */
  pmtu: number;
  /** RTT of a full-sized segment and its ACK on the idle path, µs; 0 where nobody knows it. */
  rtt_us: number;
};

/** One trial of a round. */
export type ReportTrial = {
  /** Which of `arms`. */
  arm: number;
  /** Payload that reached the receiver. */
  bytes: number;
  /** How long it took, µs. */
  elapsed_us: number;
  /** The figure that was compared: see `measured`. */
  figure?: number | null;
  /** Payload over time, bit/s. */
  goodput_bps: number;
  /** What the workload measured beyond payload and time. */
  measures?: Measures;
  /** The smallest RTT that the sender saw, µs. */
  min_rtt_us: number;
  /** What the tunnel noted. */
  notes: Array<string>;
  /** The place within the round, from 1. */
  order: number;
  /** `round` or `plateau`; `delay` in `delay_trials`. */
  phase: TrialPhase;
  /** Retransmitted segments. */
  retransmits: number;
  /** The round, from 1. */
  round: number;
  /** The server, where a profile names several. */
  server?: string | null;
  /** The settings in full. */
  settings: Settings;
  /** `completed`, `incomplete`, `failed`, `aborted` or `invalid`. */
  status: string;
  /** Its number in the journal. */
  trial: number;
};

/** The answer. */
export type ReportVerdict = {
  /** The probability of any false "faster" in the whole experiment. */
  alpha: number;
  /** The answer in four lines and their figures: what to set and where, how sure, what to do, where it is kept. */
  answer: Answer;
  /** The recommended arm, 0 being the current settings. */
  arm: number;
  /** That ratio is at least this, with probability 1 − `alpha`, however often one looked. */
  at_least?: number | null;
  /** The other sentences of `text`. */
  details: Array<string>;
  /** The evidence for it, to one. */
  evidence: number;
  /** The first sentence of `text`. */
  headline: string;
  /** `faster`, `no-difference` or `stopped`. */
  kind: VerdictKind;
  /** Its label. */
  label: string;
  /** The evidence that a claim needs. */
  needed?: number | null;
  /** The noise of one trial about its round, as a coefficient of variation. */
  noise_cv?: number | null;
  /** The estimated ratio of goodput to the current settings: of the recommended ones, or of those that lead unproven. */
  ratio?: number | null;
  /** The share by which the recommended settings are at most slower than the best ones tested. */
  regret?: number | null;
  /** The recommended settings in full: those shown to be faster, else the current ones. */
  settings: Settings;
  stop?: StopReason | null;
  /** Everything in plain sentences. */
  text: string;
};

/** An experiment, assessed again: the schema of what it is depends on what it was. */
export type Reported = TuneReport | TrafficReport | ProveAnswer | Record<string, unknown>;

/** Whether a change that failed was put back. */
export type RevertReport = {
  /** The file with the old state. */
  backup: string;
  /** Whether everything is as it was. */
  done: boolean;
  /** What isn't, and what the kernel said. */
  errors: Array<string>;
  /** What was put back elsewhere, or is gone: devices that were renamed or removed meanwhile. */
  notes: Array<string>;
};

/** Descriptors. */
export type RingRow = {
  /** To receive. */
  rx: number;
  /** At most. */
  rx_max: number;
  /** To send. */
  tx: number;
  /** At most. */
  tx_max: number;
};

/** What could go wrong, or was left out, and why. */
export type Risk = {
  /** The setting. */
  key: string;
  /** In words. */
  text: string;
};

/** A change on its way. */
export type Rollout = {
  /** The hosts, by wave and name. */
  hosts: Array<RolloutHost>;
  /** What it is called. */
  name: string;
  /** Why it was stopped. */
  reason: string;
  /** `running`, `done`, `undoing` or `undone`. */
  state: string;
};

/** A host on the way. */
export type RolloutHost = {
  /** Its name. */
  agent: string;
  /** What is ordered. */
  ordered: RolloutOrder;
  /** How far it is. */
  phase: RolloutPhase;
  /** Why, where there is something to say. */
  reason: string;
  /** From 1; wave 1 has the canaries. */
  wave: number;
};

/** What the owner wants of a host. */
export type RolloutOrder = "nothing" | "apply" | "confirm" | "undo";

/** How far a host has come. */
export type RolloutPhase = "untouched" | "applying" | "applied" | "confirmed" | "undone" | "refused" | "failed" | "reverted";

/** A route that a change removes or makes, apart from those that only hold one of its settings. */
export type RouteChange = {
  /** What becomes of it. */
  done: RouteFate;
  /** The route in the words of ip-route(8): `192.0.2.0/24 via 10.9.0.2 dev eth0 proto static mtu 1300`. */
  route: string;
};

/** The version of IP that a route is for. */
export type RouteFamily = "ipv4" | "ipv6";

/** What becomes of a route. */
export type RouteFate = "removed" | "made";

/** A route. */
export type RouteRow = {
  /** Bytes. */
  advmss?: number | null;
  /** Congestion control. */
  congctl?: string | null;
  /** The device. */
  dev?: string | null;
  /** 4 or 6. */
  family: number;
  /** Such as `ecn`. */
  features: Array<string>;
  /** Time to live. */
  hoplimit?: number | null;
  /** Segments. */
  initcwnd?: number | null;
  /** Segments. */
  initrwnd?: number | null;
  /** Metrics that the kernel may not change. */
  locked: Array<string>;
  /** Its priority: the lowest wins. */
  metric: number;
  /** Bytes. */
  mtu?: number | null;
  /** Every other metric. */
  other: Record<string, number>;
  /** Who made it. */
  proto: string;
  /** Acknowledge at once. */
  quickack?: boolean | null;
  /** Milliseconds. */
  rto_min?: number | null;
  /** The address that packets are sent from. */
  src?: string | null;
  /** The table. */
  table: number;
  /** In short. */
  text: string;
  /** Where it leads: `default`, `192.0.2.0/24`. */
  to: string;
  /** The next router. */
  via?: string | null;
  /** Bytes. */
  window?: number | null;
};

/** How it was run. */
export type RunReport = {
  /** What to type to run the same again. */
  command: string;
  /** What the user wrote about it. */
  comment: string;
  /** The pause after each trial, s. */
  cool_down_s: number;
  /** The network device that the trials went through, with its driver; `null` in the lab. */
  device?: string | null;
  /** The name of the machine that it ran on; `null` where it isn't kept. */
  host?: string | null;
  /** The release of its kernel. */
  kernel?: string | null;
  /** Seeds everything random. */
  seed: number;
  /** How long the trials took, cool-downs included, s. */
  spent_s: number;
  /** When it began, µs since the Unix epoch. */
  started_unix_us: number;
  /** The version of the program. */
  version: string;
  /** What each trial did. */
  workload: string;
};

/** Something that this server started, as it stands. */
export type RunSummary = {
  end?: End | null;
  /** An experiment's name in the journal, once it has one. */
  experiment?: string | null;
  /** Its name here. */
  id: string;
  /** What it is. */
  kind: Kind;
  /** What was asked for. */
  request: Record<string, unknown>;
  /** When, in µs since 1970. */
  started_unix_us: number;
};

/** What one side's kernel said of the connection at one moment. Field names that iperf3 has keep its spelling and unit: `rtt` in µs, `snd_cwnd` in bytes. # Source `struct tcp_info` of linux/tcp.h; tcp(7). */
export type Sample = {
  /** Payload that had arrived at the receiver (receiver's samples) or was acknowledged (sender's), bytes. */
  bytes: number;
  /** The kernel's delivery rate estimate, bit/s. */
  delivery_rate_bps: number;
  /** Smallest RTT so far, µs. */
  min_rtt: number;
  /** Retransmitted segments so far. */
  retransmits: number;
  /** Smoothed RTT, µs. */
  rtt: number;
  /** Congestion window, bytes. */
  snd_cwnd: number;
  /** The peer's window as the sender sees it, bytes. */
  snd_wnd: number;
  /** Slow start threshold, bytes; 0 while the kernel has none. */
  ssthresh: number;
  /** Since the beginning of the trial, µs. */
  t_us: number;
};

/** Samples as columns, a tenth of the JSON that one object for each would take: one list for each field, all of the same length; names and units are those of [`Sample`]. */
export type SampleColumns = {
  bytes: Array<number>;
  delivery_rate_bps: Array<number>;
  min_rtt: Array<number>;
  retransmits: Array<number>;
  rtt: Array<number>;
  snd_cwnd: Array<number>;
  snd_wnd: Array<number>;
  ssthresh: Array<number>;
  t_us: Array<number>;
};

/** Where a trial's samples are, and what came of it. */
export type SampledTrial = {
  /** The number of its settings. */
  arm: number;
  /** When it began, µs since the first one did. */
  begin_us: number;
  /** How many there are. */
  count: number;
  /** How long it took, µs. */
  elapsed_us: number;
  /** The place of its first sample. */
  from: number;
  /** Payload over time, bit/s. */
  goodput_bps: number;
  /** Its number in the journal. */
  id: i64;
  /** Its place in the round, from 1. */
  order: number;
  /** What it was for. */
  phase: TrialPhase;
  /** Its round, from 1; 0 outside of rounds. */
  round: number;
  /** What was asked for. */
  settings: Settings;
  /** Which end took the samples: `sender`, or `receiver` where only that is ours. */
  side: string;
  /** How it ended. */
  status: TrialStatus;
};

/** What is compared between settings. Larger is always better; people are told the figure that they know. */
export type Scale = "goodput" | "time" | "rate" | "lateness" | "responsiveness";

/** A path: its links, and what follows from its figures. */
export type ScenarioAnswer = {
  /** MTU of the client's device, bytes. */
  client_mtu: number;
  /** Its links, from the client to the server. */
  links: Array<LinkShown>;
  /** Its name. */
  name: string;
  /** What follows. */
  path: PathShown;
  /** The most payload that full-sized TCP segments carry, in the long run. */
  physical_goodput_bps: BothWays_u64;
  /** 1. */
  schema_version: number;
  /** MTU of the server's device, bytes. */
  server_mtu: number;
  /** Where its figures come from. */
  source: string;
  /** What it is. */
  title: string;
};

/** The narrowest place that was used. */
export type ScopeName = "host" | "route" | "link" | "connection";

/** What a screen would vary. */
export type ScreenPlan = {
  /** What holds now. */
  current: Settings;
  /** How long all of them take, seconds. */
  expected_s: number;
  /** The knobs with their two levels. */
  factors: Array<Factor>;
  /** After how many rounds an effect shows at the earliest, however clear it is. */
  fewest_rounds: number;
  /** The most trials, those of the confirmation among them. */
  max_trials: number;
  /** The path. */
  path: PathFacts;
  /** That the rounds are fewer; there only if they are. */
  reach?: string | null;
  /** The most rounds. */
  rounds: number;
  /** 1. */
  schema_version: number;
  /** How long each trial takes, seconds. */
  trial_s: number;
  /** Trials of a round. */
  trials_per_round: number;
};

/** What one of several servers gave; servers take turns by rounds, so it says nothing of settings. */
export type ServerTrials = {
  /** Of those, completed ones. */
  completed: number;
  /** Median figure of the completed ones: see `measured`. */
  figure?: number | null;
  /** The server. */
  server: string;
  /** Trials that it served, or was asked for. */
  trials: number;
};

/** One change. */
export type SettingChange = {
  /** What was asked, where that is more than the value: `4x`, `from-mtu`. */
  asked?: unknown;
  family?: RouteFamily | null;
  /** The setting. */
  key: string;
  /** Its value then. */
  new: unknown;
  /** Its value now. */
  old: unknown;
  /** Where to look for the value. */
  place?: SettingPlace;
  /** `host`, `route`, `link` or `connection`. */
  scope: ScopeName;
  /** Which route or device, or the kernel setting. */
  target: string;
  /** Whether it is so already. */
  unchanged: boolean;
  /** Why here, and why at all if somebody said so. */
  why: string;
};

/** Where a value comes from. */
export type SettingOrigin = {
  /** The file whose line won. */
  file?: string | null;
  /** `file`, `kernel-default`, `run-time`, `route`, `link`, `socket`, `absent`. */
  kind: string;
  /** Its line, from 1. */
  line?: number | null;
};

/** Where a value is found in a snapshot. */
export type SettingPlace = "host" | {
  /** On the route with this key. */
  route: string;
} | {
  /** On the device of this name. */
  link: string;
} | {
  /** On connections with this target. */
  connections: string;
};

export type Settings = Record<string, number | string>;

/** What is to be changed on this host, and everything that somebody should know before it is. */
export type SettingsPlan = {
  basis?: ChangeBasis | null;
  /** Old and new. */
  changes: Array<SettingChange>;
  /** The commands that would do it. */
  commands: Array<string>;
  /** What makes whoever configures the devices keep it; a confirmation writes that. */
  lasting?: Array<LastingFile>;
  /** Where those settings are to hold that don't belong there, by their keys; places as `to` names them. */
  places?: Record<string, string>;
  /** Whether it leads back to what the system does by itself, on narrower places than the host, too. */
  resets?: boolean;
  /** The commands that would undo it. */
  revert_commands: Array<string>;
  /** What could go wrong. */
  risks: Array<Risk>;
  /** Routes that go or come, apart from those that only hold one of the settings. */
  routes?: Array<RouteChange>;
  /** The version of this form. */
  schema_version: number;
  /** What was asked for but isn't done, and why. */
  skipped: Array<Risk>;
  /** Where. */
  to: string;
};

/** Everything that `settings show` shows. */
export type SettingsReport = {
  /** Network devices. */
  adapters: Array<Adapter>;
  /** What follows from it. */
  caveats: Array<Caveat>;
  /** Congestion controls. */
  congestion: Congestion;
  /** The device that the default route leads through. */
  default_adapter?: string | null;
  /** What could be better, and why. */
  findings: Array<Finding>;
  /** The kernel's release. */
  kernel: string;
  /** Every setting. */
  knobs: Array<KnobRow>;
  /** Programs that set things too. */
  managers: Array<string>;
  /** Findings that are there but muted. */
  muted: Array<string>;
  pending?: Pending | null;
  /** Every route. */
  routes: Array<RouteRow>;
  /** The version of this form. */
  schema_version: number;
};

/** How much a finding matters. */
export type Severity = "info" | "warning" | "problem";

/** One setting in several experiments. */
export type SharedSetting = {
  /** `product` or `mean`. */
  combined: string;
  /** What came of it in each. */
  each: Array<TriedSetting>;
  elsewhere?: ExpectedElsewhere | null;
  /** The least evidence of any of them: that it is faster in each. */
  everywhere: number;
  /** The evidence of all of them that it is faster: of separate experiments with orders of their own the product, of others the mean. */
  evidence: number;
  /** Whether it is shown to be faster, and by so little on average that it isn't worth a change: `tune` recommends no such setting. */
  faster_by_little: boolean;
  /** Whether its gain differs between two of them: their intervals have nothing in common. */
  gains_differ: boolean;
  /** What it is called. */
  label: string;
  /** How many times an experiment of that many settings would need. */
  needed: number;
  /** By how much it is faster in all rounds of all of them: the geometric mean of their ratios, each as often as it has rounds. An estimate; `None` where one of them has none. */
  ratio?: number | null;
  /** What it is. */
  settings: Settings;
  /** The experiments in which it is shown to be faster, by name; of them a share of 1 / `needed` is wrong on average (e-BH). */
  shown_in: Array<string>;
};

/** Transfers too short for the clock that timed them: they count as if they had taken its shortest time, in whichever arm they were. */
export type ShortTransfers = {
  /** The shortest time that is told from shorter ones, µs. */
  below_us?: number;
  /** How many connections that sent something there were. */
  connections?: number;
};

/** What a proof shows. */
export type ShownDifference = "faster" | "slower" | "nothing";

/** What comes out of experiments side by side. */
export type SideBySideAnswer = {
  /** Why not. */
  because: Array<string>;
  /** Whether they can be compared. */
  comparable: boolean;
  /** The current settings of each, against those of the first. */
  current: Array<CurrentDifference>;
  disturbances?: FleetDisturbances | null;
  /** The experiments. */
  experiments: Array<ComparedExperiment>;
  /** What is shown, in a sentence. */
  headline: string;
  /** `compare`. */
  kind: string;
  /** What differs and is part of any difference. */
  notes: Array<string>;
  /** What to know of it, a sentence each. */
  remarks: Array<string>;
  /** 1. */
  schema_version: number;
  /** Settings that several of them tried, each against the current ones of its experiment. */
  settings: Array<SharedSetting>;
  /** In words: the headline, tables of what is above, and the remarks. */
  text: string;
};

/** What the thirds of a setting's transfers say together. */
export type SoakReport = {
  /** The arm. */
  arm: number;
  /** Whether it is shown to get worse. */
  decays: boolean;
  /** The evidence that it gets worse within a transfer, to one. */
  evidence: number;
  /** The median ratio of the last third to the middle one. */
  last_to_middle: number;
  /** The evidence that a claim needs. */
  needed: number;
  /** Medians over its transfers of each third: bit/s, or µs. */
  thirds: Array<number>;
  /** Transfers. */
  trials: number;
  /** What changes: `goodput`, `srtt` or `ack-gap`. */
  what: string;
};

/** Times of many things of one kind. */
export type Spread = {
  /** How many. */
  count: number;
  /** The longest, µs. */
  max_us: number;
  /** The mean, µs. */
  mean_us: number;
  /** The shortest, µs. */
  min_us: number;
  /** Half are no longer, µs. */
  p50_us: number;
  /** 95 % are no longer, µs. */
  p95_us: number;
  /** 99 % are no longer, µs. */
  p99_us: number;
};

/** What a host's settings are, as far as the model asks hosts for theirs. */
export type StackSettings = {
  /** The congestion control of connections that ask for none. */
  cc: string;
  /** Whether receive buffers grow as before Linux 6.16. */
  grows_as_before_6_16: boolean;
  /** What a receive buffer begins with, bytes: the second number of `tcp_rmem`. */
  rmem_initial: number;
  /** How large a receive buffer may become, bytes: the third number of `tcp_rmem`. */
  rmem_max: number;
  /** How large a send buffer may become, bytes: the third number of `tcp_wmem`. */
  wmem_max: number;
};

/** TCP/IP stacks to compare over a path of the lab: the options of `windtunnel stacks compare`. */
export type StacksComparisonRequest = {
  /** A preset's path */
  lab?: string | null;
  /** Don't ask by packet scripts what each stack can do */
  no_conformance?: boolean;
  path?: PathRequest | null;
  /** Each is run once a round with each workload */
  rounds?: number | null;
  /** How long a soak takes */
  soak?: string | null;
  /** Which, each with settings of its own */
  stacks: Array<string>;
  /** What each does */
  workloads?: Array<string> | null;
};

/** The TCP/IP stacks that can be compared. Its JSON is the contract of `windtunnel stacks list --json`. */
export type StacksList = {
  /** Old ones, as far as they are documented. */
  profiles: Array<ListedProfile>;
  /** The version of this object. */
  schema_version: number;
  /** Those of today. */
  stacks: Array<ListedStack>;
};

/** Why no further round is drawn. */
export type StopReason = "claimed" | "only-current-left" | "futile" | "budget" | "user";

/** One of the settings that an experiment compares. */
export type StoredArm = {
  /** What people call it. */
  label: string;
  /** What it sets. */
  settings: Settings;
};

/** An experiment as the journal keeps it, without its trials. */
export type StoredExperiment = {
  /** What is compared, 0 being the current settings. */
  arms: Array<StoredArm>;
  /** What the user wrote about it. */
  comment: string;
  /** What it is, and all that is needed to run it again. */
  config: Record<string, unknown>;
  /** What was in force without any setting of ours. */
  current: Settings;
  /** When it ended, if it has; for an orphan, when it was last heard of. */
  ended_unix_us?: number | null;
  /** Its name. */
  id: string;
  /** Who runs or ran it. */
  owner: Owner;
  /** What is known of the path. */
  path: PathFacts;
  /** Seeds everything random in it. */
  seed: number;
  /** When it began, µs since the Unix epoch. */
  started_unix_us: number;
  /** How far it has come. */
  state: ExperimentState;
  /** What it runs on. */
  target: string;
  /** Where its trials run. */
  tunnel: string;
  /** What the data allow one to say, once it has ended; the caller's own form. */
  verdict?: Record<string, unknown> | null;
  /** The version of the program that ran it. */
  version: string;
};

/** How sure an answer is. */
export type Sure = {
  /** The least change, %, with the sign of `change_percent`; `null` where none is claimed. */
  at_least?: number | null;
  /** The probability that no claim of the experiment is false, however often one looked. */
  confidence: number;
  /** Rounds that count; of less delay those that were run for it, too. */
  rounds: number;
  /** How long the trials took, s. */
  seconds: number;
};

/** Full packets at one MTU of a sweep. */
export type SweepStep = {
  /** Its cells, on a link that has them. */
  cells?: number | null;
  /** The payload's share of the wire. */
  efficiency: number;
  /** The MTU. */
  mtu: number;
  /** The payload of a full packet. */
  payload_len: number;
  /** What it takes on the wire. */
  wire_len: number;
};

/** One third of a long transfer. */
export type Third = {
  /** For how long no ACK came while data was under way, µs: the 95th percentile over the sender's samples. It grows where a receiver acknowledges later and later. */
  ack_gap_us: number;
  /** Payload over time, bit/s. */
  goodput_bps: number;
  /** Median of the sender's smoothed RTT, µs. */
  srtt_us: number;
};

/** How the shares of the arms change from epoch to epoch. */
export type TrafficAllocation = "fixed" | "mixed";

/** One arm's connections. */
export type TrafficArmReport = {
  /** Connections that were reset or timed out, of those with an outcome. */
  aborted_share?: number | null;
  /** Connections that were given it. */
  assigned: number;
  /** Of those, without an outcome although they have ended: their record was lost. */
  missed: number;
  /** Its name. */
  name: string;
  /** That had other settings at the end. */
  not_compliant: number;
  /** Of those, still without an outcome. */
  open: number;
  /** Connections that the shares, the evidence and the classes are of: those that have ended, and those still open that were as old as the cohort's age when they were looked at. Left out where they are those recorded, and in reports of versions before this was told. */
  outcomes?: number | null;
  /** Of those, with an outcome. */
  recorded: number;
  /** Responses that were timed by themselves; `null` where only whole connections are. */
  responses?: number | null;
  /** Segments that were retransmitted, of all that were sent. */
  retransmitted_share?: number | null;
  /** Retransmission timeouts per 1000 connections. */
  rto_per_1000?: number | null;
  /** For which the kernel refused at least one setting. */
  set_errors: number;
  /** What it sets. */
  settings: ArmSettings;
  /** Connections that weren't finished at the cohort's age, of those with an outcome. */
  unfinished_share?: number | null;
};

/** About whom something is claimed. */
export type TrafficClaim = "beside" | "everybody";

/** The connections of one class and arm. */
export type TrafficClassArm = {
  /** How many; of their responses where those are timed by themselves. */
  connections: number;
  /** The geometric mean of their goodputs, bit/s. */
  goodput_bps?: number | null;
  /** All their bits over all their time, bit/s. */
  overall_bps?: number | null;
  /** The time that 90 % of them stayed below, ms, to a fifth. */
  p90_ms?: number | null;
  /** Of all of the arm. */
  share?: number | null;
};

/** The connections of one class by size. */
export type TrafficClassReport = {
  /** By arm. */
  arms: Array<TrafficClassArm>;
  /** Its sizes. */
  name: string;
};

/** One arm that was tried against the first. */
export type TrafficEffect = {
  /** Its name. */
  arm: string;
  /** Evidence by ranks, aborted connections as the worst, that it is better; the second reading. */
  evidence_better_rank: number;
  /** Evidence that it is faster, the largest so far. */
  evidence_faster: number;
  /** Evidence that it is slower, the largest so far. */
  evidence_slower: number;
  /** The same that it is worse. */
  evidence_worse_rank: number;
  /** Its other end. */
  high?: number | null;
  /** The interval of the ratio, at the evidence needed on either side: of the one gain that all units would have, not of their mean. */
  low?: number | null;
  /** The evidence at which either is claimed. */
  needed?: number;
  /** Its goodput over the first's: a typical gain, exact if all units gain alike. Where few gain much it lies nearer to what the many gain than the mean does. */
  ratio?: number | null;
  /** Its upper end, ms. */
  saved_high_ms?: number | null;
  /** The lower end of the interval of that, ms. */
  saved_low_ms?: number | null;
  /** By how much the time of a typical connection is shorter, ms; negative is longer. */
  saved_ms?: number | null;
  /** With mixed allocations: those without it beside it over nobody with it. */
  spillover_ratio?: number | null;
  /** Its other end. */
  total_high?: number | null;
  /** The interval of that, at the evidence needed on either side. */
  total_low?: number | null;
  /** With mixed allocations: everybody with it over nobody with it. */
  total_ratio?: number | null;
  /** Units that bet: prefixes × epochs, connections, or blocks of slots. */
  units: number;
};

/** An experiment on connections that is under way in this network namespace. */
export type TrafficElsewhere = {
  /** Its name. */
  id: string;
  /** The local ports. */
  ports: Array<number>;
};

/** What an experiment may expect if the gain is so large. */
export type TrafficExpectation = {
  /** Connections, of all arms together, after which half of the experiments claim it. */
  connections: number;
  /** Those after which four of five do. */
  connections_80: number;
  /** The gain: 0.1 is 10 % more goodput. */
  gain: number;
  /** Hours until the first, at the rate that was given. */
  hours: number;
  /** Hours until the second. */
  hours_80: number;
};

/** What stops an arm by itself. */
export type TrafficGuard = "slower" | "retransmissions" | "rtos" | "resets" | "not_finishing";

/** One guard of one arm. */
export type TrafficGuardReport = {
  /** The arm's name. */
  arm: string;
  /** The largest evidence so far that the arm is worse. */
  evidence: number;
  /** Which. */
  guard: TrafficGuard;
  /** The evidence at which it stops the arm. */
  needed: number;
  /** Whether it has stopped the arm. */
  stopped: boolean;
};

/** What a holdback shows. */
export type TrafficHoldback = {
  /** The evidence that the old settings are faster by now. */
  evidence_reversed: number;
  /** Its other end. */
  high?: number | null;
  /** The interval of that ratio. */
  low?: number | null;
  /** The goodput with the new settings over that with the old ones. */
  ratio?: number | null;
  /** Whether the gain is still there. */
  state: HoldbackState;
  /** In one sentence. */
  text: string;
};

/** Who takes part although they are left alone as a rule. */
export type TrafficInclusion = "private" | "administrator" | "own-cc";

/** The experiments that are under way. Its JSON is the contract of `windtunnel traffic status --json`. */
export type TrafficList = {
  /** Those of other journals in this network namespace. */
  elsewhere?: Array<TrafficElsewhere>;
  /** Whether routing rules of an experiment stand here that was killed with its guard; they steer nobody. */
  rules_left: boolean;
  /** All of them. */
  running: Array<TrafficStatus>;
  /** The version of this object. */
  schema_version: number;
  /** Whether this host has a setting of an experiment that was killed with its guards. */
  settings_left: boolean;
};

/** What is known of why no unit has bet. */
export type TrafficNoData = {
  /** Connections that were given an arm. */
  assigned: number;
  /** Whether the experiment has ended, so that nothing will come any more. */
  ended: boolean;
  /** Epochs with connections that were old enough to be looked at. */
  epochs: number;
  /** Connections that were left alone. */
  left_alone: number;
};

/** The connections that are open on a server's ports now: how those would be dealt with that come next. */
export type TrafficOpenNow = {
  /** Left alone: from where somebody is logged in who runs this. */
  administrator: number;
  /** The client networks that they come from: IPv4 /24, IPv6 /48. */
  networks: number;
  /** Left alone: on other ports at which somebody listens. */
  other_ports: number;
  /** Left alone: with a congestion control of their own, where arms differ in theirs. */
  own_cc: number;
  /** Left alone: from private addresses. */
  private: number;
  /** Such as would take part. */
  take_part: number;
  /** Left alone: from this host. */
  this_host: number;
  /** The ports at which nobody listens in this network namespace. */
  without_listener: Array<number>;
};

/** What a start would do. Its JSON is the contract of `windtunnel traffic start --dry-run --json`. */
export type TrafficPlan = {
  /** The arms, the first of which the others are compared with. */
  arms: Array<PlannedTrafficArm>;
  /** What assigns connections, and whether it works here. */
  backends: Array<BackendState>;
  /** Connections of all ports that this network namespace accepts in an hour, by a look of a second. */
  connections_per_hour: number;
  /** How long coins hold, s. */
  epoch_s: number;
  /** How long it takes to find an effect, for some effects; none where arms differ in what the server receives alone. */
  expects: Array<TrafficExpectation>;
  /** Whom it leaves alone. */
  left_alone: string;
  open_now?: TrafficOpenNow | null;
  /** BPF programs of others that see the same connections: beside them it isn't begun unless that is asked for. */
  other_programs: Array<string>;
  receiver_settings?: ReceiverSettings | null;
  /** The version of this object. */
  schema_version: number;
  /** Whom it touches. */
  touches: string;
  /** Whom it touches, and whom not. */
  whom: string;
};

/** What an experiment on a server's connections shows. A figure that isn't known is `null`. */
export type TrafficReport = {
  /** The arms; the first is what the others are compared with. */
  arms: Array<TrafficArmReport>;
  /** What assigned and recorded. */
  backend: string;
  /** Connections, or responses where those are timed by themselves, by the bytes that were acknowledged. Sizes can depend on the settings: compare the shares, too. */
  classes: Array<TrafficClassReport>;
  /** Each arm that was tried against the first. */
  effects: Array<TrafficEffect>;
  /** Whether the experiment has ended, so that nothing will come any more; left out while it runs, where `no_data` tells it, and in reports of versions before this was told. */
  ended?: boolean;
  /** What would stop an arm, or has. */
  guardrails: Array<TrafficGuardReport>;
  holdback?: TrafficHoldback | null;
  /** The experiment's name in the journal. */
  id: string;
  /** What to do now, the first first. */
  next?: Array<TrafficStep>;
  no_data?: TrafficNoData | null;
  receiver_settings?: ReceiverSettings | null;
  /** [`TRAFFIC_SCHEMA_VERSION`]. */
  schema_version: number;
  /** Whether the experiment itself can be trusted. */
  self_checks: Array<TrafficSelfCheck>;
  /** To what one coin gave an arm. */
  unit: TrafficUnit;
  /** What may be claimed. */
  verdict: TrafficVerdict;
};

/** An experiment on this server's own connections: the options of `windtunnel traffic start`, and what its experiment files hold. */
export type TrafficRequest = {
  /** How old a connection is when it is looked at, if it hasn't ended before, such as `60s` */
  age?: string | null;
  allocations?: TrafficAllocation | null;
  backend?: BackendChoice | null;
  /** Begin although BPF programs of others see the same connections, such as a tuner's */
  beside_programs?: boolean;
  /** How long after the beginning of an epoch connections don't count yet, with slots and mixed allocations */
  burn_in?: string | null;
  /** Note stored with the experiment */
  comment?: string | null;
  /** How long coins hold, such as `10m` */
  epoch?: string | null;
  /** For how long, such as `2h`; nothing means until it is stopped */
  for?: string | null;
  /** A/A test: the same setting twice */
  identical?: boolean;
  /** Who else takes part who is left alone as a rule */
  include?: Array<TrafficInclusion>;
  /** A setting and its levels each, the first being what the others are compared with; several make all combinations */
  levels?: Array<string>;
  /** The same as mixed allocations */
  mixed?: boolean;
  /** Give half of the connections the new setting from the first on, instead of 5 %, 25 % and then 50 % */
  no_ramp?: boolean;
  /** The local ports of the server */
  ports?: Array<number>;
  /** Clients in private ranges take part, too; those on this host never do */
  private?: boolean;
  unit?: TrafficUnit | null;
};

/** One question to the experiment itself. */
export type TrafficSelfCheck = {
  /** Its name: `sample_ratio`, `accounting`, `largest_prefix`, `units`, `set_errors`, `compliance`, `own_cc` (only where sockets were left alone for that), `clock` (only where some were too short for it). */
  name: string;
  /** Whether all is well. */
  ok: boolean;
  /** What was seen. */
  text: string;
};

/** One experiment that is under way. */
export type TrafficStatus = {
  /** What the arms are called. */
  arms: Array<string>;
  /** Since it began, s. */
  elapsed_s: number;
  /** What could be said then. */
  headline?: string | null;
  holdback?: TrafficHoldback | null;
  /** Its name. */
  id: string;
  /** The local ports. */
  ports: Array<number>;
  tally?: TrafficTally | null;
};

/** Something to do after a look at a report. */
export type TrafficStep = {
  /** What does it, to be typed on the server. */
  command?: string | null;
  /** In a sentence. */
  text: string;
};

/** Which experiments were ended. Its JSON is the contract of `windtunnel traffic stop --json`. */
export type TrafficStop = {
  /** Those of other journals in this network namespace, which go on. */
  elsewhere?: Array<TrafficElsewhere>;
  /** Whether routing rules were removed that an experiment had left which was killed with its guard. */
  rules_removed: boolean;
  /** The version of this object. */
  schema_version: number;
  /** Whether a setting of this host was put back that an experiment had left which was killed with its guards. */
  settings_put_back: boolean;
  /** Their names. */
  stopped: Array<string>;
};

/** Every connection that the server accepted since the start, accounted for. `passive_opens = missed + left_alone + not_assigned + Σ assigned`, and for each arm `assigned = recorded + lost + open`. */
export type TrafficTally = {
  /** By arm. */
  arms?: Array<ArmTally>;
  /** Left alone: other ports, loopback, private ranges, sockets with settings of their own. */
  left_alone?: number;
  /** Not assigned for another reason: outside the shares, or while nobody watched (no heartbeat). */
  not_assigned?: number;
  /** Of those, sockets with a congestion control of their own, where arms differ in theirs; left out where there were none. */
  own_cc?: number;
  /** The kernel's own count (`TcpPassiveOpens` of the namespace); none where it can't be read. */
  passive_opens?: number | null;
  /** Seen by the backend, before any filter. */
  seen?: number;
  short?: ShortTransfers | null;
};

/** To what one coin gives an arm. */
export type TrafficUnit = "prefix" | "connection" | "slot";

/** What may be claimed. */
export type TrafficVerdict = {
  /** Of which arm. */
  arm?: string | null;
  /** The end of the interval that is nearer to "no difference", only if something is claimed. */
  at_least?: number | null;
  /** With mixed allocations, where it is of everybody: of how many blocks of whole epochs ratio, end and evidence are. */
  blocks?: number | null;
  /** About whom. */
  claim: TrafficClaim;
  /** The largest evidence so far for what is claimed, or for what leads. */
  evidence: number;
  /** In one word. */
  kind: TrafficVerdictKind;
  /** The evidence at which something is claimed. */
  needed: number;
  /** Its goodput over the first's, estimated. */
  ratio?: number | null;
  /** In one sentence. */
  text: string;
};

/** What may be claimed, in one word. */
export type TrafficVerdictKind = "faster" | "slower" | "stopped" | "undecided" | "no_data";

/** Which way the payload goes, seen from the client. */
export type TransferDirection = "down" | "up";

/** The figure by which people know a trial of this experiment. */
export type TrialFigure = {
  /** Whether `larger` or `smaller` is better. Ratios are always so that larger is better. */
  better: string;
  /** What it is called: `goodput`, `load time`. */
  name: string;
  /** What kind of figure it is. */
  scale: Scale;
  /** Its unit in `figure` fields: `bit/s`, `s`, `1/s`, `1/min`. */
  unit: string;
};

/** What held the transfer back, as shares of its time. From the sender's `tcp_info`. */
export type TrialLimits = {
  /** Time in which there was something to send, µs. */
  busy_us: number;
  /** Of that, waiting for the receive window, µs. */
  rwnd_limited_us: number;
  /** Of that, waiting for the send buffer, µs. */
  sndbuf_limited_us: number;
};

/** What came of a trial. Asked and granted settings side by side: a difference is shown, never hidden. */
export type TrialOutcome = {
  /** Payload that reached the receiver, checked byte by byte. */
  bytes: number;
  /** From the request to the last byte, µs; for an incomplete trial, the deadline. */
  elapsed_us: number;
  /** What the system says it set. */
  granted: Settings;
  /** What held the transfer back. */
  limits: TrialLimits;
  /** What the workload measured beyond bytes and time. */
  measures?: Measures;
  /** What a person should know: a refused setting, a failure's reason, what the tunnel did wrong. */
  notes: Array<string>;
  /** What was seen on the wire or in `tcp_info`. */
  observed: Record<string, unknown>;
  /** From the receiver's side, in time order. */
  receiver: Array<Sample>;
  /** The scope that was used for each knob: `socket`, `route` or `host`. */
  scopes: Record<string, string>;
  /** From the sender's side, in time order. */
  sender: Array<Sample>;
  /** How it ended. */
  status: TrialStatus;
};

/** Why a trial is run. */
export type TrialPhase = "pilot" | "warm-up" | "round" | "plateau" | "delay";

/** A trial as the journal keeps it. */
export type TrialRecord = {
  /** Number within the journal. */
  id: number;
  /** What came of it. */
  outcome: TrialOutcome;
  /** What was asked. */
  spec: TrialSpec;
  /** When it began, µs since the Unix epoch. */
  started_unix_us: number;
};

/** One fresh execution of a workload with one set of settings. */
export type TrialSpec = {
  /** Which of the experiment's arms, 0 being the current settings. */
  arm: number;
  /** After this long the trial counts as incomplete. */
  deadline: string;
  /** The experiment that it belongs to. */
  experiment: string;
  /** The place within the round, from 1. */
  order: number;
  /** Why it is run. */
  phase: TrialPhase;
  /** The round, from 1; 0 outside of rounds. */
  round: number;
  /** Seeds everything random in the trial. */
  seed: number;
  /** What is asked for. */
  settings: Settings;
  /** What the connection is to do. */
  workload: Workload;
};

/** How a trial ended. */
export type TrialStatus = "running" | "completed" | "incomplete" | "failed" | "aborted" | "invalid";

/** What came of a setting in one experiment, against its current settings. */
export type TriedSetting = {
  /** The evidence at its end. */
  evidence: number;
  /** The experiment's name. */
  experiment: string;
  /** Its upper end. */
  high?: number | null;
  /** The lower end of the ratio's 95 % interval, from the random order alone, which holds whenever it was stopped. */
  low?: number | null;
  /** Rate over that of the current settings. */
  ratio?: number | null;
  /** Complete rounds with it. */
  rounds: number;
};

/** What an experiment would compare, and how long it may take. */
export type TunePlan = {
  /** What would be compared, the current settings first. */
  arms: Array<PlannedArm>;
  /** What holds now. */
  current: Settings;
  /** Payload that they may move, bytes; on the real path. */
  expected_bytes?: number | null;
  /** How long all of them take, seconds. */
  expected_s: number;
  /** After how many rounds the clearest gain could be shown; none if the budget can show nothing. */
  fewest_rounds?: number | null;
  /** The most trials. */
  max_trials: number;
  /** What the model expects, if it was asked. */
  model?: unknown;
  /** The path, with the share of probes that got lost. */
  path: PathWithLoss;
  /** 1. */
  schema_version: number;
  /** How long each trial takes, seconds. */
  trial_s: number;
};

/** What came of tuning: the object of `tune --json`, and the source of every other form. Fields are only ever added within a `schema_version`. A value that isn't known is `null`. */
export type TuneReport = {
  /** Every setting that was compared, the current one first. */
  arms: Array<ReportArm>;
  baseline?: Settings | null;
  ceiling?: Ceiling | null;
  cells?: FourCells | null;
  /** The experiment that goes on with this one: all of this is of a part of its trials. There only where there is such a one. */
  continued_by?: string | null;
  /** The settings in force when nothing is asked for. */
  current: Settings;
  delay?: DelayReport | null;
  /** Every trial of the rounds on which `delay` rests, in the order in which they ran; left out where there are none. */
  delay_trials?: Array<ReportTrial>;
  /** The settings (places in `arms`) that no other equals or beats in both goodput and delay, by the medians of their trials, ascending in both: an estimate, no claim. Empty where delay isn't known, or something else than goodput is compared. */
  frontier: Array<number>;
  /** What each setting asked for, what it got, and what was seen. */
  granted: Array<GrantedLevel>;
  /** The experiment's name in the journal. */
  id: string;
  /** What held the current settings back. */
  limits: LimitsReport;
  /** What was compared, and what the `figure` fields are. */
  measured: TrialFigure;
  /** What a model expected of each setting before the first trial: `known_error` (a share), and of each `expected_gain`, its `weight` and whether it was `left_out`. It chose and weighed candidates and is no evidence. There only where one was asked. */
  model?: unknown;
  /** What to do next. */
  next: Array<string>;
  /** What is known of the path. */
  path: ReportPath;
  /** What the framing leaves of the link's rate for TCP payload, bit/s; `null` where the link isn't known. */
  physical_goodput_bps?: number | null;
  /** The changes that make the recommended settings hold; empty where there is nothing to change, or nothing real. */
  plan: Array<PlanStep>;
  plateau?: Plateau | null;
  /** Rounds that count. */
  rounds: number;
  /** How it was run. */
  run: RunReport;
  /** The version of this object. */
  schema_version: number;
  /** Which server gave what, where a profile names several: servers take turns, so nothing here is claimed of settings. */
  servers?: Array<ServerTrials>;
  /** Whether long transfers decay; there only if that was looked at. */
  soak?: Array<SoakReport>;
  /** `running` while its trials are still being run: then all of this is what is so until now. There only then. */
  state?: string | null;
  /** What was tuned: a preset, a file, a host. */
  target: string;
  /** Every trial of a round, in the order in which they ran. */
  trial_table: Array<ReportTrial>;
  /** Trials of rounds, those of rounds cut short included. */
  trials: number;
  /** Where the trials ran: `sim`, `lab` or `live`. */
  tunnel: string;
  /** The answer. */
  verdict: ReportVerdict;
  /** What a person should know before trusting the answer. */
  warnings: Array<string>;
};

/** A turn that somebody has or waits for. */
export type TurnLine = {
  /** Who. */
  agent: string;
  /** For what alone. */
  alone: Array<string>;
  /** Whether it has it. */
  granted: boolean;
  /** For what with others. */
  shared: Array<string>;
  /** Since when it has it or waits, seconds. */
  since_s: number;
};

/** Round trips of small requests. */
export type UnderLoad = {
  /** On the idle path. */
  idle: Spread;
  /** Beside the transfer. */
  loaded: Spread;
  /** Round trips a minute beside the transfer: 60 s over the mean. */
  rpm: number;
};

/** A change that was taken back. */
export type Undone = {
  /** What was put back, in our words. */
  changes: Array<string>;
  /** Whether everything is as it was. */
  done: boolean;
  /** Which. */
  id: CheckpointId;
  /** What was put back elsewhere, or is gone: devices that were renamed or removed meanwhile. */
  notes: Array<string>;
  /** Routes that went or came with that. */
  routes?: Array<RouteChange>;
  /** The version of this form. */
  schema_version: number;
  /** Whether it had been confirmed. */
  was_confirmed: boolean;
};

/** The answer in one word. */
export type VerdictKind = "faster" | "no-difference" | "stopped";

/** One direction of a link. */
export type WayRequest = {
  /** Propagation, one way, such as `15ms` */
  delay: string;
  /** Standard deviation of the delay, such as `2ms` */
  jitter?: string | null;
  /** Share of packets lost at random, such as `0.1%` */
  loss?: string | null;
  /** What the queue in front of it holds, such as `64KiB` or `100 packets` */
  queue?: string | null;
  /** Bits on the wire, such as `8mbit` */
  rate: string;
};

/** Which change is meant. */
export type WhichChange = {
  /** The change; nothing means the one that waits, or the latest in force */
  id?: string | null;
};

/** What is done in a lab that is up. */
export type WorkKind = "download" | "upload" | "ping" | "path";

/** A workload for a lab that is up. */
export type WorkRequest = {
  /** How many pings */
  count?: number | null;
  kind: WorkKind;
  /** What the connection's sockets are set to, `cc` and `sndbuf` the sender's: `{"cc": "bbr"}` */
  settings?: Record<string, string>;
  /** How much a transfer moves, such as `10MB` */
  size?: string | null;
  /** Or for how long it goes, such as `5s` */
  time?: string | null;
};

/** What the connection is asked to do. */
export type Workload = {
  /** How much. */
  amount: Record<string, unknown>;
  /** Which way. */
  direction: TransferDirection;
  kind: "bulk";
} | {
  kind: "duplex";
  /** For so long. */
  time: string;
} | {
  /** Which way. */
  direction: TransferDirection;
  kind: "soak";
  /** For so long. */
  time: string;
} | {
  /** How often. */
  amount: Record<string, unknown>;
  kind: "transactions";
  /** Bytes of each request. */
  request: Bytes;
  /** Bytes of each answer. */
  response: Bytes;
  /** How long the client thinks before it asks again. */
  think: string;
} | {
  /** How many bursts. */
  amount: Record<string, unknown>;
  /** Bytes of each answer of a burst, in order. */
  blocks: Array<Bytes>;
  kind: "bursts";
  /** Nothing happens for so long after each burst. */
  pause: string;
  /** Bytes of each request. */
  request: Bytes;
} | {
  /** Which way. */
  direction: TransferDirection;
  /** From one message to the next. */
  interval: string;
  kind: "stream";
  /** Bytes of each message. */
  message: Bytes;
  /** For so long. */
  time: string;
} | {
  kind: "page";
  /** Which objects, over how many connections. */
  page: Page;
} | {
  /** Which way. */
  direction: TransferDirection;
  kind: "competing";
  /** How many others. */
  rivals: number;
  /** For so long. */
  time: string;
} | {
  /** Which way the transfer goes. */
  direction: TransferDirection;
  kind: "load";
  /** For so long, the idle part not counted. */
  time: string;
};

export type i64 = number;
