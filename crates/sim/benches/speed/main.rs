//! How many packets per second the model moves, and how many ns-3 does in the same run.
//!
//! `cargo bench -p wt-sim` prints one line per case: packets through the link (data and acknowledgements) per second of
//! computing, the median of several runs, each in a process of its own, and the most memory that such a process had. Where ns-3
//! is installed (Debian's `ns3` and `libns3-dev`, and g++) the same cases run there, in turn with the model's; where it isn't,
//! figures of ns-3.37 on a machine of two shared cores stand in, and that is said. Where valgrind is installed, instructions
//! per packet are counted, which no load changes.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

/// The same cases in ns-3.
mod ns3;

use ns3::Ns3;
use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wt_link::{LinkConfig, PathConfig, QueueConfig, StageConfig};
use wt_sim::{FlowSpec, Job, Report, Simulation, StackConfig};
use wt_testing::Goal;
use wt_trial::{Amount, Direction};
use wt_units::{BitsPerSecond, Bytes};

/// Flows over one link.
struct Case {
    name: &'static str,
    cc: &'static str,
    bps: u64,
    rtt_ms: u64,
    /// Packets.
    queue: u32,
    flows: usize,
    /// Simulated seconds.
    seconds: u64,
    /// Of each socket, bytes; the same in ns-3.
    buffer: u64,
    runs: usize,
    /// Packets a second of ns-3.37 on a machine of two shared cores; `None` where it has nothing to compare with.
    ns3_known: Option<f64>,
    /// How many times ns-3's figure is wanted.
    wanted: f64,
}

const CASES: [Case; 4] = [
    Case {
        name: "1 CUBIC flow, 100 Mbit/s, 50 ms, 60 s",
        cc: "cubic",
        bps: 100_000_000,
        rtt_ms: 50,
        queue: 417,
        flows: 1,
        seconds: 60,
        buffer: 8 << 20,
        runs: 3,
        ns3_known: Some(37_000.0),
        wanted: 200.0,
    },
    Case {
        name: "100 CUBIC flows of 1 MiB buffers, the same",
        cc: "cubic",
        bps: 100_000_000,
        rtt_ms: 50,
        queue: 417,
        flows: 100,
        seconds: 60,
        buffer: 1 << 20,
        runs: 3,
        ns3_known: Some(28_500.0),
        wanted: 200.0,
    },
    // Its BBR comes to 1.2 Mbit/s here.
    Case {
        name: "1 BBR flow, 100 Mbit/s, 50 ms, 60 s",
        cc: "bbr",
        bps: 100_000_000,
        rtt_ms: 50,
        queue: 417,
        flows: 1,
        seconds: 60,
        buffer: 8 << 20,
        runs: 3,
        ns3_known: None,
        wanted: 0.0,
    },
    Case {
        name: "1 CUBIC flow, 1 Gbit/s, 50 ms, 6 s",
        cc: "cubic",
        bps: 1_000_000_000,
        rtt_ms: 50,
        queue: 4_167,
        flows: 1,
        seconds: 6,
        buffer: 64 << 20,
        runs: 1,
        ns3_known: None,
        wanted: 300.0,
    },
];

impl Case {
    fn run(&self) -> Report {
        let line = path(self.bps, Duration::from_millis(self.rtt_ms), self.queue);
        let stack = StackConfig {
            congestion_control: self.cc.to_owned(),
            sndbuf: Some(self.buffer),
            rmem: (131_072, self.buffer),
            ..StackConfig::default()
        };
        simulate(&line, self.flows, Amount::Time(Duration::from_secs(self.seconds)), &stack)
    }
}

/// Result of one run.
#[derive(Debug, Clone, Copy)]
struct Run {
    packets: f64,
    seconds: f64,
    /// Payload that arrived, bytes.
    bytes: f64,
    /// The most resident memory of its process, kB.
    peak_kb: f64,
}

impl Run {
    /// From a line of four numbers.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().ok());
        let mut next = || numbers.next().flatten();
        Some(Self { packets: next()?, seconds: next()?, bytes: next()?, peak_kb: next()? })
    }

    fn rate(self) -> f64 {
        self.packets / self.seconds
    }
}

/// The run in the middle.
fn median(mut runs: Vec<Run>) -> Option<Run> {
    runs.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
    runs.get(runs.len() / 2).copied()
}

fn path(bps: u64, rtt: Duration, queue: u32) -> PathConfig {
    let stages = || {
        let queue = StageConfig::Queue(QueueConfig::drop_tail(BitsPerSecond(bps), queue));
        vec![queue, StageConfig::Delay { delay: rtt / 2 }]
    };
    PathConfig { links: vec![LinkConfig { forward: stages(), backward: stages(), medium: None }] }
}

fn simulate(path: &PathConfig, flows: usize, amount: Amount, stack: &StackConfig) -> Report {
    let mut simulation = Simulation::new(path, Vec::new(), 1).expect("the path is valid");
    for n in 0..flows {
        let job = Job::Bulk { direction: Direction::Down, amount };
        let start = Duration::from_millis(n as u64);
        let spec = FlowSpec { client: stack.clone(), server: stack.clone(), job, start };
        simulation.add_flow(spec).expect("the flow is valid");
    }
    simulation.run(Duration::from_secs(100_000))
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begin = Instant::now();
    let result = work();
    (begin.elapsed().as_secs_f64(), result)
}

/// Packets on the paths both ways.
fn packets(report: &Report) -> u64 {
    report.paths.iter().map(|path| path.pushed).sum()
}

/// The most resident memory of this process so far, kB.
fn peak_kb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(f64::NAN)
}

/// Runs a case in this process and prints the result.
fn run_here(case: &Case) {
    let (seconds, report) = timed(|| case.run());
    let bytes: u64 = report.flows.iter().map(|flow| flow.bytes).sum();
    println!("{} {seconds} {bytes} {}", packets(&report), peak_kb());
}

/// Runs a case in a process of its own.
fn run_apart(number: usize) -> Option<Run> {
    let own = std::env::current_exe().ok()?;
    let output = Command::new(own).args([ONE, &number.to_string()]).output().ok()?;
    Run::parse(&String::from_utf8_lossy(&output.stdout))
}

fn compare(number: usize, peer: Option<&Ns3>) {
    let case = &CASES[number];
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // In turn, so that a change of the machine's load falls on both.
    for _ in 0..case.runs {
        ours.extend(run_apart(number));
        if case.wanted > 0.0 {
            theirs.extend(peer.and_then(|peer| peer.run(case)));
        }
    }
    let Some(own) = median(ours) else { return println!("{:<44} didn't run", case.name) };
    let goodput = |run: Run| run.bytes * 8e-6 / case.seconds as f64;
    println!(
        "{:<44} {:7.3} s {:>9.0} packets {:7.2} M packets/s {:6.1} MB {:7.1} Mbit/s",
        case.name,
        own.seconds,
        own.packets,
        own.rate() / 1e6,
        own.peak_kb / 1e3,
        goodput(own)
    );
    if let Some(run) = median(theirs) {
        println!(
            "{:<44} {:7.3} s {:>9.0} packets {:7.3} M packets/s {:6.1} MB {:7.1} Mbit/s",
            "    ns-3, in turn with it",
            run.seconds,
            run.packets,
            run.rate() / 1e6,
            run.peak_kb / 1e3,
            goodput(run)
        );
        println!(
            "{}, 1/{:.1} of its memory",
            Goal::AtLeast(case.wanted).line(&format!("{} over ns-3", case.name), own.rate() / run.rate(), "times"),
            run.peak_kb / own.peak_kb
        );
    } else if let Some(known) = case.ns3_known {
        println!("    {:.0} × {known:.0} packets a second, ns-3.37's figure elsewhere", own.rate() / known);
    }
}

/// What callgrind counts: two seconds of one flow.
fn short(cc: &str) -> u64 {
    let stack = StackConfig { congestion_control: cc.to_owned(), ..StackConfig::default() };
    let line = path(100_000_000, Duration::from_millis(50), 417);
    packets(&simulate(&line, 1, Amount::Time(Duration::from_secs(2)), &stack))
}

/// Instructions per packet, which no load of the machine changes, where valgrind is there.
fn count_instructions(cc: &str) {
    let Ok(own) = std::env::current_exe() else { return };
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(own).args([COUNT, cc]);
    let Ok(output) = command.output() else {
        println!("no instructions are counted: there is no valgrind (apt-get install valgrind)");
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = told.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse::<f64>().ok());
    let packets = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().ok();
    match (collected, packets) {
        (Some(instructions), Some(packets)) => println!(
            "{:<44} {:7.1} M instructions, {:.0} per packet",
            format!("2 s of one {cc} flow, by callgrind"),
            instructions / 1e6,
            instructions / packets
        ),
        _ => println!("callgrind counted nothing: {}", told.lines().last().unwrap_or_default()),
    }
}

/// Runs what is counted, and says how many packets that was.
const COUNT: &str = "--count";
/// Runs the case with this number.
const ONE: &str = "--one";

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() {
    let mut args = std::env::args().skip(1);
    let (first, second) = (args.next(), args.next().unwrap_or_default());
    match first.as_deref() {
        Some(COUNT) => return println!("{}", short(&second)),
        Some(ONE) => return CASES.get(second.parse::<usize>().unwrap_or(usize::MAX)).map_or((), run_here),
        _ => {}
    }
    let peer = match Ns3::build() {
        Ok(peer) => Some(peer),
        Err(why) => {
            println!("ns-3 isn't timed: {why}");
            None
        }
    };
    (0..CASES.len()).for_each(|number| compare(number, peer.as_ref()));
    dial_up(&StackConfig { congestion_control: "cubic".to_owned(), ..StackConfig::default() });
    ["cubic", "bbr"].into_iter().for_each(count_instructions);
}

/// Ten thousand transfers of 360 kB over a telephone line, on all processors.
fn dial_up(stack: &StackConfig) {
    const SCENARIOS: usize = 10_000;
    let line = path(26_400, Duration::from_millis(150), 20);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (seconds, ()) = timed(|| {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while next.fetch_add(1, Ordering::Relaxed) < SCENARIOS {
                        black_box(simulate(&line, 1, Amount::Size(Bytes(360_000)), stack));
                    }
                });
            }
        });
    });
    println!("{:<44} {seconds:7.3} s on {threads} threads", "10,000 transfers of 360 kB, 26.4 kbit/s");
}
